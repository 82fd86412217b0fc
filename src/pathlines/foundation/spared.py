"""Libraries that others load because they are installed, and that a program of ours hardly ever uses.

xarray imports the whole of Dask (a third of a second) to ask whether an array is one of Dask's.
"""

from __future__ import annotations

import sys

SPARED = ("dask",)


def spare() -> None:
    """Let this process do without them until somebody asks for one with ``use``: for programs, not for libraries."""
    for name in SPARED:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]


def use(name: str) -> None:
    """From now on the library can be imported again."""
    if sys.modules.get(name, sys) is None:
        del sys.modules[name]
