"""The address of a result: its setting and the code that computes it."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec


def address(kind: str, setting: Any, code: str) -> str:
    """A readable name with a hash of the canonical JSON of (kind, setting, code); ``code`` is a ``fingerprint``."""
    canonical = msgspec.json.encode([kind, setting, code], order="sorted")
    return f"{kind.replace('/', '-')}-{hashlib.sha256(canonical).hexdigest()[:20]}"
