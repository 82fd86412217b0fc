"""The address of a result: its setting and the code that computes it."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import msgspec


@cache
def code_fingerprint() -> str:
    """A hash of the package's source: a result computed by other code is another result."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted(f for kind in ("*.py", "*.cpp", "*.h") for f in root.rglob(kind)):
        if not {"cli", "draw", "view"} & set(file.relative_to(root).parts):
            digest.update(str(file.relative_to(root)).encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def address(kind: str, setting: Any, extra: str = "") -> str:
    """A readable name with a hash of the canonical JSON of (kind, setting, code, extra)."""
    canonical = msgspec.json.encode([kind, setting, code_fingerprint(), extra], order="sorted")
    return f"{kind.replace('/', '-')}-{hashlib.sha256(canonical).hexdigest()[:20]}"
