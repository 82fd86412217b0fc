"""One token alone, for each kind of attention (A Unified Perspective, arXiv:2501.18322; solutions derived)."""

from __future__ import annotations

import numpy as np
from scipy.special import exp1

from pathlines.foundation.errors import finite_number
from pathlines.foundation.papers import UNIFIED

SOURCES = (UNIFIED,)


def linear_token(t: float, v: float, a: float, start: float) -> float:
    """Linear attention, d = 1: x^{-2} = x_0^{-2} - 2vat (NaN from the blow-up on)."""
    begin = finite_number("start", start)
    left = 1 - 2 * v * a * begin**2 * finite_number("t", t, 0.0)
    return float(begin / np.sqrt(left)) if left > 0 else float("nan")


def unnormalised_blow_up(v: float, a: float, start: float) -> float:
    """Unnormalised attention, d = 1, a, v > 0: E_1(ax²) = E_1(ax_0²) - 2vt, so T* = E_1(ax_0²)/(2v)."""
    a, v = (finite_number(n, x, 0.0, open_low=True) for n, x in (("a", a), ("v", v)))
    return float(exp1(a * start**2) / (2 * v))
