"""How well a statement is known to be the paper's own: marks that go with claims and models to whoever reads them."""

from __future__ import annotations

from pathlines.foundation.errors import ArgumentError

MARKS = {
    "abstract": "the statement is in the abstract of the paper",
    "secondary": "taken from a later survey, formalisation or reproduction that states it",
    "derived": "derived here, not in the paper",
    "assumed": "the form that the paper uses was not available, and a natural one was fixed here",
    "unverified": "nobody had checked it before this claim did",
}


def check_marks(marks: tuple[str, ...], convention: str) -> None:
    """Known marks; who assumes says what."""
    for mark in marks:
        if mark not in MARKS:
            raise ArgumentError(f"Argument `marks` must consist of {', '.join(MARKS)}, but has {mark!r}.")
    if "assumed" in marks and not convention:
        raise ArgumentError("Argument `convention` must say in a sentence what is assumed, but is empty.")


def standing(marks: tuple[str, ...] | list[str], convention: str = "") -> str:
    """[derived] derived here, not in the paper. Our convention: …"""
    words = "; ".join(f"[{mark}] {MARKS[mark]}" for mark in marks)
    said = f"Our convention: {convention}" if convention else ""
    return ". ".join(filter(None, (words, said)))
