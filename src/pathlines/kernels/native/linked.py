"""Clusters of many snapshots in one native call."""

from __future__ import annotations

from ctypes import c_double, c_int64, c_void_p

import numpy as np

from pathlines.kernels.native.build import native_library


def native_cluster_counts(states: np.ndarray, delta: float, threads: int = 1) -> np.ndarray:
    """Connected components of the graphs ½|x_i - x_j|² ≤ δ of states (k, n, d): O(nd) for one cluster, else O(n²d)."""
    rows = np.ascontiguousarray(states)
    found = np.zeros(len(rows), np.int64)
    library = native_library()
    assert library is not None
    call = getattr(library, f"pathlines_linked_{rows.dtype.name}")
    call.argtypes, call.restype = None, None
    sizes = (c_int64(k) for k in rows.shape)
    call(c_void_p(rows.ctypes.data), *sizes, c_double(delta), c_int64(threads), c_void_p(found.ctypes.data))
    return found
