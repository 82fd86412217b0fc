"""Libraries that others load because they are installed, and that a program of ours hardly ever uses.

xarray imports the whole of Dask (a third of a second) to ask whether an array is one of Dask's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

SPARED = {"dask": "xarray"}
"""Library → who loads it, and finds out about it once and for all."""


@contextmanager
def sparing() -> Iterator[None]:
    """Do without them inside, until somebody asks for one with ``use``: for programs, not for libraries."""
    for name, loader in SPARED.items():
        if loader not in sys.modules:
            sys.modules.setdefault(name, None)  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in SPARED:
            use(name)


def use(name: str) -> None:
    """From now on the library can be imported again."""
    if sys.modules.get(name, sys) is None:
        del sys.modules[name]
