"""Increasing piecewise linear maps of the line as ReLU pieces, exactly: K knots are K + 2 pieces.

Knots x_0 < … < x_{K-1}, values y_k, inner slopes m_k, tail slopes m_L and m_R. In this order: the translation by y_0
- x_0; the left dilation about y_0 by m_L; the right dilation about y_0 by m_1; right dilations about y_k by
m_{k+1}/m_k, m_K = m_R. P pieces make at most P kinks, so K + 2 is optimal up to 2 [derived].
"""

from __future__ import annotations

import numpy as np

from pathlines.foundation.errors import ArgumentError, finite_array, finite_number
from pathlines.transport.euclid.schedule import EuclideanSchedule


def increasing_schedule(
    knots: np.ndarray, values: np.ndarray, left: float, right: float, direction: np.ndarray | None = None
) -> EuclideanSchedule:
    """The schedule x → x + e(f(e·x) - e·x), f the map through (knots, values) with tail slopes ``left``, ``right``.

    ``direction`` is a unit vector e, by default the one of the line.
    """
    e = np.ones(1) if direction is None else finite_array("direction", direction, ("d",)).astype(float)
    x, y = finite_array("knots", knots, ("K",)).astype(float), finite_array("values", values, ("K",)).astype(float)
    for name, array in (("knots", x), ("values", y)):
        if len(array) == 0 or (np.diff(array) <= 0).any():
            raise ArgumentError(f"Argument `{name}` must increase strictly and have an entry.")
    if len(x) != len(y):
        raise ArgumentError(f"Argument `values` must have {len(x)} entries like `knots`, but has {len(y)}.")
    tails = [finite_number(n, v, 0.0, open_low=True) for n, v in (("left", left), ("right", right))]
    slopes = np.concatenate([np.diff(y) / np.diff(x), tails[1:]])
    rates = np.diff(np.log(slopes), prepend=0.0)
    count = len(x)
    w = np.concatenate([[y[0] - x[0], -np.log(tails[0])], rates])
    a = np.concatenate([[0.0, -1.0], np.ones(count)])
    b = np.concatenate([[1.0, y[0]], -y])
    return EuclideanSchedule(w[:, None] * e, a[:, None] * e, b, np.ones(count + 2))
