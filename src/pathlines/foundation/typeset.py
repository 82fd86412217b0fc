"""Statements as they would be written by hand: indices and powers set as such, all else as it is.

Statements of claims, equations of models and docstrings are Unicode text with e^{…}, x_{…}, R^d and E_β in it. One
pattern finds these marks, for the site and for pages.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

MARK = re.compile(
    r"(?:(?<=max)|(?<![A-Za-z]{3}))(?<=\S)(?P<sign>[\^_])"
    r"(?:\{(?P<braces>(?:[^{}]|\{[^{}]*\})+)\}|(?P<word>(?:[A-Za-z0-9]+?(?=[A-Za-z][_^])|[A-Za-z0-9]+|[Α-Ωα-ω∞*ℓ])[ᵢⱼₖ₀-₉]*))"
)


def parts(text: str) -> Iterator[tuple[str, str]]:
    """(text, raised or lowered text) pairs: ("", what stands as it is), ("^", a power), ("_", an index)."""
    last = 0
    for m in MARK.finditer(text):
        yield "", text[last : m.start()]
        yield m["sign"], m["braces"] or m["word"]
        last = m.end()
    yield "", text[last:]


def as_html(text: str) -> str:
    """Markup of a statement: everything is escaped, `code` is code, and only marks become elements."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return _marked(text)
    return "".join(f"<code>{html.escape(p)}</code>" if k % 2 else _marked(p) for k, p in enumerate(pieces) if p)


def _marked(text: str) -> str:
    tags = {"^": "sup", "_": "sub"}
    return "".join(
        f"<{tags[sign]}>{_marked(part)}</{tags[sign]}>" if sign else html.escape(part) for sign, part in parts(text)
    )
