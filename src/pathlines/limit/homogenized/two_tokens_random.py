"""Two tokens with random query-keys as well as random values (p = ∞): the antipodal phase disappears for d ≥ 4.

The weights are (1 ± tanh u_i)/2 with u_i = s Z_i, s = b√((1-R)/2), corr(Z_1, Z_2) = R. In U = u_1+u_2 and D = u_1-u_2,
which are independent normals of standard deviations 2s√c and 2s√a (a = (1-R)/2, c = (1+R)/2),

    T = E tanh²(sZ),     T + C = ½E(tanh u_1 + tanh u_2)² = 2 E[sinh²U/(cosh U + cosh D)²],     Ψ = (T+C)/(2c),

which is what ``limit.homogenized.two_tokens`` needs. At R = -1, Ψ = b² E sech⁴(bZ), hence antipodal tokens attract iff

    (d-1) E sech²(bZ) + (d-3) b² E sech⁴(bZ) < 2:

true for d ≤ 3 and every b > 0, false for every b when d ≥ 4. Derived, in the setting of Homogenized Transformers,
arXiv:2604.01978. Expectations by trapezoid rules whose step follows the poles at |Im u| = π/2: exponentially accurate.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from pathlines.foundation.errors import finite_number, positive_integer
from pathlines.foundation.numbers import real_array
from pathlines.foundation.papers import HOMOGENIZED, STOCHASTIC_CLUSTERING
from pathlines.limit.homogenized.overlap_diffusion import OverlapDiffusion
from pathlines.limit.homogenized.two_tokens import complements, two_token_diffusion

SOURCES = (HOMOGENIZED, STOCHASTIC_CLUSTERING)
LARGEST_SCALE = 100.0  # the two-dimensional rule needs about 200 b² points
_REACH = 8.5  # normal deviates beyond are rarer than 1e-16
_NODES = 241


def _half_line(pole_scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Trapezoid points z ≥ 0 and weights of an even normal expectation with poles at Im z = π/(2·pole_scale)."""
    step = min(0.4, 0.22 / max(pole_scale, 1e-300))
    z = step * np.arange(int(np.ceil(_REACH / step)) + 1)
    weight = np.exp(-z * z / 2)
    weight[0] *= 0.5
    return z, weight / weight.sum()


def sech_power(scale: float, power: int) -> float:
    """E sech^k(bZ), Z standard normal; in u = bZ once the normal is wider than the function."""
    b = finite_number("scale", scale, 0.0)
    if b <= 1:
        z, weight = _half_line(b)
        return float(weight @ np.cosh(b * z) ** -float(power))
    step = 0.25
    u = step * np.arange(int(min(_REACH * b, 45.0) / step) + 2)
    density = np.exp(-((u / b) ** 2) / 2) / np.cosh(u) ** power
    return float(2 * step / (b * np.sqrt(2 * np.pi)) * (density.sum() - density[0] / 2))


def _psi(s: float, a: float, c: float) -> float:
    """E[sinh²U/(cosh U + cosh D)²]/c with U = 2s√c G, D = 2s√a H; c = 0 is read as its limit."""
    c = max(c, 1e-30)
    g, weight_g = _half_line(s * np.sqrt(c))
    h, weight_h = _half_line(s * np.sqrt(a))
    u, spread = 2 * s * np.sqrt(c) * g[:, None], 2 * s * np.sqrt(a) * h
    with np.errstate(over="ignore"):
        ratio = -np.expm1(-2 * u) / (1 + np.exp(-2 * u) + np.exp(spread - u) + np.exp(-spread - u))
    return float(weight_g @ (ratio / np.sqrt(c)) ** 2 @ weight_h)


def _moments(y: float, b: float) -> tuple[float, float]:
    """(T, Ψ) at R = tanh y."""
    a, c = (float(v) for v in complements(np.array(y)))
    s = b * np.sqrt(a)
    z, weight = _half_line(s)
    return float(weight @ np.tanh(s * z) ** 2), _psi(s, a, c)


@lru_cache(maxsize=32)
def _table(b: float) -> tuple[float, np.ndarray]:
    """(Y, coefficients): T and Ψ as Chebyshev series in x = asinh(y/2)/asinh(Y/2), constant beyond Y."""
    reach = 20.0 + np.log1p(b)
    x = np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)
    values = np.array([_moments(2 * np.sinh(np.arcsinh(reach / 2) * point), b) for point in x])
    return reach, np.polynomial.chebyshev.chebfit(x, values, _NODES - 1)


def random_diffusion(d: int, logit_scale: float) -> OverlapDiffusion:
    """Random values and random query-keys of logit scale b ≤ 100 at p = ∞ (O(b²) for the table, then cached)."""
    b = finite_number("logit_scale", logit_scale, 0.0, LARGEST_SCALE)
    reach, series = _table(b)

    def moments(y: np.ndarray) -> np.ndarray:
        x = np.arcsinh(np.clip(y, -reach, reach) / 2) / np.arcsinh(reach / 2)
        return np.polynomial.chebyshev.chebval(x, series)

    return two_token_diffusion(d, moments, extent=reach)


def random_covariance(overlap: ArrayLike, logit_scale: float) -> tuple[np.ndarray, np.ndarray]:
    """(s_11, s_12) = (c + aT, c + aC) for random query-keys, p = ∞; independent of d."""
    r = real_array("overlap", overlap, -1.0, 1.0)
    b = finite_number("logit_scale", logit_scale, 0.0, LARGEST_SCALE)
    y = np.arctanh(np.clip(r, -1 + 1e-16, 1 - 1e-16))
    moments = np.array([_moments(float(v), b) for v in y.ravel()]).reshape(*r.shape, 2)
    spread, psi = moments[..., 0], moments[..., 1]
    a, c = (1 - r) / 2, (1 + r) / 2
    return (c + a * spread)[()], (c + a * (2 * c * psi - spread))[()]


def antipode_criterion(d: int, logit_scale: float) -> float:
    """(d-1)E sech²(bZ) + (d-3)b²E sech⁴(bZ): log(1+R) drifts at (this - 2)/d, so below 2 antipodal tokens attract."""
    d, b = positive_integer("d", d, least=2), finite_number("logit_scale", logit_scale, 0.0)
    return (d - 1) * sech_power(b, 2) + (d - 3) * b * b * sech_power(b, 4)


def smallest_criterion(d: int) -> tuple[float, float]:
    """(b, value) at the minimum of ``antipode_criterion`` over b, for d ≥ 4; 2.107 at b = 1.78 for d = 4."""
    d = positive_integer("d", d, least=4)
    found = optimize.minimize_scalar(
        lambda b: antipode_criterion(d, b), bounds=(0.0, 10.0), method="bounded", options={"xatol": 1e-10}
    )
    return float(found.x), float(found.fun)


def random_antipode_probability(d: int, logit_scale: float, start: ArrayLike = 0.0) -> np.ndarray:
    """P(the tokens end antipodal) with random query-keys, p = ∞, from R_0 = ``start``; 0 for d ≥ 4."""
    return random_diffusion(d, logit_scale).antipode_probability(start)
