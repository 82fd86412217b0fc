"""What a sum by harmonics costs."""

from __future__ import annotations

import os

import numpy as np
from jaxtyping import DTypeLike

from pathlines.kernels.native import native_serves
from pathlines.kernels.spectral.bessel import coefficients, degree

GATHERED = {2: {"float32": (1.0, 0.045), "float64": (2.3, 0.09)}, 3: {"float32": (3.0, 0.07), "float64": (8.0, 0.105)}}
"""Nanoseconds of one core for a source: a constant, and one for each coefficient of the series."""
EVALUATED = {
    2: {"float32": (1.8, 0.075), "float64": (6.0, 0.145)},
    3: {"float32": (4.0, 0.16), "float64": (10.0, 0.32)},
}
"""Nanoseconds of one core for a target: a constant, and one for each coefficient of the series."""
TURNED = {2: 50.0, 3: 15.0}
"""Nanoseconds for each coefficient to turn moments into the series of U and A."""
BLOCK = {2: 64, 3: 128}
"""Rows of a masked block: the series change once for each, and a row sums as many pairs directly."""
PAIR = {"float32": 0.15, "float64": 0.35}
"""Nanoseconds of one core for such a pair."""
CALL = 2e3
MATRICES = 1.0
"""Nanoseconds for a coefficient and a token where harmonics are matrices in plain JAX (d ≥ 4), in float32."""
PORTABLE = {2: 8.0, 3: 10.0}
"""How many times longer plain JAX takes."""
ALONE = 3e4
"""Nanoseconds of work below which a second core is not asked."""


def spectral_cost(
    n: int, m: int, d: int, beta: float, tolerance: float, dtype: DTypeLike = "float64", masked: bool = False
) -> float:
    """Predicted nanoseconds of ``spectral_attend`` with n targets and m sources, by prefix sums if ``masked``.

    Linear in n and m and in the ``coefficients`` of the series; the constants were measured on two cores with AVX2.
    """
    count, kind = coefficients(d, degree(beta, d, tolerance)), np.dtype(dtype).name
    if d not in TURNED:
        return MATRICES * count * (n + m) * (2 if kind == "float64" else 1)
    source, target = (base + each * count for base, each in (GATHERED[d][kind], EVALUATED[d][kind]))
    work = m * source + n * target
    if masked:
        work += m * source + n * (BLOCK[d] * PAIR[kind] + TURNED[d] * count / BLOCK[d])
    work *= 1.0 if native_serves(dtype) else PORTABLE[d]
    return CALL + TURNED[d] * count + (work if work < ALONE else work / (os.cpu_count() or 1))
