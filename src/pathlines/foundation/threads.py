"""Products of small matrices by one thread: the others of a linear-algebra library only spin, at full load."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np

_SUFFIXES = ("64_", "", "64")
_PREFIXES = ("scipy_openblas", "openblas")


@contextmanager
def one_thread() -> Iterator[None]:
    """NumPy's OpenBLAS, where it came with NumPy, works alone inside; other libraries are left as they are."""
    switches = _switches()
    if switches is None:
        yield
        return
    read, put = switches
    before = read()
    put(1)
    try:
        yield
    finally:
        put(before)


@cache
def _switches() -> tuple[Callable[[], int], Callable[[int], object]] | None:
    """How many threads it uses, and a function that sets it."""
    root = Path(np.__file__).parent
    for file in [*root.parent.glob("numpy.libs/*openblas*"), *root.glob(".dylibs/*openblas*")]:
        try:
            library = ctypes.CDLL(str(file))
        except OSError:
            continue
        for prefix in _PREFIXES:
            for suffix in _SUFFIXES:
                read = getattr(library, f"{prefix}_get_num_threads{suffix}", None)
                put = getattr(library, f"{prefix}_set_num_threads{suffix}", None)
                if read is not None and put is not None:
                    return read, put
    return None
