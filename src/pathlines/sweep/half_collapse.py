"""The collapse map of *Homogenized Transformers* (arXiv:2604.01978) as a study over context length and logit scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from pathlines.foundation.errors import PathlinesError
from pathlines.limit.homogenized import collapse
from pathlines.sweep.study import study


def half_collapse_time(n: int, b: float) -> dict[str, Any]:
    """τ_½ of many n at one b: they share the integrals behind f and g."""
    return {"tau": collapse.collapse_map(n, [b])[:, 0]}


def half_collapse_times(ns: np.ndarray, bs: list[float]) -> np.ndarray:
    """τ_½ over (n, b), kept column by column."""
    found = study(half_collapse_time, {"n": ns, "b": bs}, many=len(ns), along=["n"]).run()
    if found.attrs["errors"]:
        raise PathlinesError(found.attrs["errors"])
    return np.asarray(found["tau"].values)
