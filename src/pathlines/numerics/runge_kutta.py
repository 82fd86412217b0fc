"""The classical Runge-Kutta method in NumPy, for theory that takes fixed steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

State = tuple[np.ndarray, ...]


def rk4_step(rate: Callable[..., State], state: State, h: float) -> State:
    """y + (h/6)(k_1 + 2k_2 + 2k_3 + k_4) of y' = rate(*y), y a tuple of arrays: order four, four rates."""
    slopes = [rate(*state)]
    for share in (0.5, 0.5, 1.0):
        slopes.append(rate(*(y + share * h * k for y, k in zip(state, slopes[-1], strict=True))))
    return tuple(y + h / 6 * (a + 2 * b + 2 * c + d) for y, a, b, c, d in zip(state, *slopes, strict=True))
