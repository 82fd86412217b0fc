"""Advice that was given before: kept in the user's cache, by everything that it depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from pathlines.architecture.read import Reading
from pathlines.foundation.errors import PathlinesError
from pathlines.foundation.files import default_root, write_whole
from pathlines.store.code import fingerprint

if TYPE_CHECKING:
    from pathlines.advice.advice import Advice
    from pathlines.advice.target import Target

_CODE = "pathlines.advice.advice"
MOST = 500
"""Files that are kept; the oldest go first."""


def kept(
    compute: Callable[..., Advice], reading: Reading, tokens: Any, target: Target | None, what_if: bool, *, fresh: bool
) -> Advice:
    """The answer of an earlier call with the same record, tokens, target and code; else ``compute`` and keep it."""
    from pathlines.advice.advice import Advice

    file = default_root() / "advice" / f"{_address(reading, tokens, target, what_if)}.msgpack"
    if not fresh:
        with suppress(OSError, ValueError, TypeError, PathlinesError):  # whatever is wrong with it, it is made anew
            content = file.read_bytes()
            if hashlib.sha256(content[32:]).digest() == content[:32]:
                return msgspec.msgpack.decode(content[32:], type=Advice, dec_hook=_array)
    found = compute(reading, tokens, target, what_if)
    content = msgspec.msgpack.encode(found, enc_hook=_plain)
    with suppress(OSError, PathlinesError):  # a cache that cannot be written to is no reason to fail
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, hashlib.sha256(content).digest() + content)
        _thinned(file.parent)
    return found


def _address(reading: Reading, tokens: Any, target: Target | None, what_if: bool) -> str:
    ids = int(tokens) if isinstance(tokens, (int, np.integer)) else np.asarray(tokens).tolist()
    asked = [reading.architecture, reading.source, reading.unknown, reading.assumed, ids, target, what_if]
    return hashlib.sha256(msgspec.json.encode([asked, fingerprint(_CODE)])).hexdigest()[:40]


def _thinned(folder: Path) -> None:
    files = sorted(folder.glob("*.msgpack"), key=lambda file: file.stat().st_mtime)
    for file in files[:-MOST]:
        file.unlink(missing_ok=True)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, np.ascontiguousarray(value).tobytes())
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not kept")


def _array(kind: type[Any], value: Any) -> Any:
    if kind is np.ndarray:
        dtype, shape, content = value
        return np.frombuffer(content, dtype).reshape(shape)
    raise TypeError(f"{kind.__name__} is not kept")
