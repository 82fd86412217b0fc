"""Figures that were drawn before are not computed again: a killed command for many of them goes on where it stopped."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import matplotlib as mpl
import msgspec

from pathlines.draw.gallery import Picture
from pathlines.draw.style import figure_bytes
from pathlines.foundation.errors import PathlinesWarning, StoreError
from pathlines.store.address import address
from pathlines.store.code import fingerprint
from pathlines.store.results import Store, bytes_dataset, dataset_bytes

ASSEMBLY = "pathlines.draw.kept"


def drawn(
    picture: Picture[Any],
    size: str,
    changes: dict[str, Any] | None,
    suffix: str,
    *,
    files: tuple[str, ...] = (),
    store: Store | None = None,
    fresh: bool = False,
) -> tuple[bytes, bool]:
    """(content of the file, whether it was stored).

    Addressed by setting, format, the code behind the figure (``files`` of the user included) and how Matplotlib is set.
    """
    store = Store() if store is None else store
    look = {"matplotlib": mpl.__version__} | {k: str(v) for k, v in mpl.rcParams.items() if "backend" not in k}
    asked = msgspec.to_builtins([size, picture.setting(size, changes), suffix, look])
    name = address(f"figure/{picture.name}", asked, fingerprint(_home(picture.make), ASSEMBLY, files=files))
    kept = None if fresh else store.get(name)
    if kept is not None:
        return dataset_bytes(kept), True
    content = figure_bytes(picture.draw(size, changes), suffix)
    try:
        store.put(name, bytes_dataset(content))
    except StoreError as error:
        warnings.warn(f"The figure is drawn but not kept: {error}", PathlinesWarning, stacklevel=2)
    return content, False


def _home(function: Any) -> str:
    return _home(function.func) if isinstance(function, partial) else str(function.__module__)
