"""Names for shell completion, kept on disk: listing claims imports every room, too slow for a tabulator key."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

KEPT = "names.json"


def models(incomplete: str) -> list[tuple[str, str]]:
    """Models that begin so."""
    return _beginning(incomplete, "models")


def claims(incomplete: str) -> list[tuple[str, str]]:
    """Claims that begin so."""
    return _beginning(incomplete, "claims")


def figures(incomplete: str) -> list[tuple[str, str]]:
    """Figures that begin so."""
    return _beginning(incomplete, "figures")


def animations(incomplete: str) -> list[tuple[str, str]]:
    """Animations that begin so."""
    return _beginning(incomplete, "animations")


def anything(incomplete: str) -> list[tuple[str, str]]:
    """Whatever `pathlines show` knows."""
    return _beginning(incomplete, "models", "claims", "observables", "figures", "animations", "papers")


def cited(incomplete: str) -> list[tuple[str, str]]:
    """Whatever `pathlines cite` knows."""
    return _beginning(incomplete, "models", "claims", "figures")


def _beginning(incomplete: str, *kinds: str) -> list[tuple[str, str]]:
    known = names()
    return [(name, line) for kind in kinds for name, line in known[kind] if name.startswith(incomplete)]


def names() -> dict[str, list[tuple[str, str]]]:
    """(name, one line) of all things of every kind; made again when a source file changed."""
    from pathlines.foundation.files import default_root, write_whole

    file, state = default_root() / KEPT, _state()
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(file.read_text(encoding="utf-8"))
        if kept["state"] == state:
            return {kind: [(name, line) for name, line in rows] for kind, rows in kept["names"].items()}
    from pathlines.cli.listing import KINDS, entries

    found = {kind: entries(kind) for kind in KINDS}
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps({"state": state, "names": found}, ensure_ascii=False).encode())
    return found


def _state() -> list[float]:
    times = [f.stat().st_mtime for f in Path(__file__).parents[1].rglob("*.py")]
    return [len(times), max(times)]
