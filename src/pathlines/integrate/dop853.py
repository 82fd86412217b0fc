"""The method of Dormand and Prince of order 8(5,3), whose tableau is read from SciPy rather than typed in again."""

from __future__ import annotations

import numpy as np
from scipy.integrate import DOP853

from pathlines.integrate.methods import METHODS, RungeKutta

_STAGES = len(DOP853.B)
_A = np.zeros((_STAGES, _STAGES))
_A[:, : DOP853.A.shape[1]] = DOP853.A[:_STAGES]

METHODS.register(
    "dop853",
    RungeKutta(
        DOP853.order,
        DOP853.error_estimator_order,
        _A,
        DOP853.B,
        DOP853.C[:_STAGES],
        (DOP853.E5, DOP853.E3),
    ),
)
