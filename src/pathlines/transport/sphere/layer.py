"""One layer of a transformer as a piece of a schedule: five parameters held for a duration."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pathlines.foundation.errors import finite_array, finite_number


class Layer(NamedTuple):
    """ẋ = P_x(V A_B[μ](x) + W(Ux + b)₊) for a duration; V, B, W, U are d × d and b has d entries."""

    V: np.ndarray
    B: np.ndarray
    W: np.ndarray
    U: np.ndarray
    b: np.ndarray
    duration: float


def layer(
    d: int,
    duration: object,
    V: object = None,
    B: object = None,
    W: object = None,
    U: object = None,
    b: object = None,
) -> Layer:
    """A checked layer; what is not given is zero."""
    value, score, outer, inner = (
        np.zeros((d, d)) if m is None else finite_array(name, m, (d, d)).astype(float)
        for name, m in zip("VBWU", (V, B, W, U), strict=True)
    )
    bias = np.zeros(d) if b is None else finite_array("b", b, (d,)).astype(float)
    return Layer(value, score, outer, inner, bias, finite_number("duration", duration, 0.0))
