"""Two tokens under random values: consensus, antipodes, and who decides between them.

Token i attends with weights (1 ± t_i)/2. With a = (1-R)/2, c = (1+R)/2, T = E t_1² and C = E t_1 t_2 the noise has
covariance s_11 = c + aT, s_12 = c + aC, and in y = artanh R the overlap obeys (derived)

    μ = (1/d)[s_12 + (d-3)((1-T)/2 + Ψ/2)],    σ² = (1/d)[1 - C + Ψ],    Ψ = (T+C)/(2c),

from drift (1/d)[(d-2+R²)s_12 - (d-1)R s_11] and quadratic variation (2/d)(1-R²)(s_11 - R s_12) of R: no differences of
nearly equal numbers are left at R = ±1. This file has the cases with closed coefficients:

    uniform attention (β = 0)   T = C = 0
    query-key product βI        t_1 = -t_2 = tanh(β(1-R)/2): T = -C = t², Ψ = 0

You will see consensus attract always, at rate (d-1)/d of log(1-R), and with fixed query-keys the antipode as well once
cosh²β > (d-1)/2. Random query-keys are in ``limit.homogenized.two_tokens_random``. Homogenized Transformers,
arXiv:2604.01978, for β = 0; the phase transition: Clustering in Deep Stochastic Transformers, arXiv:2601.21942.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from pathlines.foundation.errors import finite_number, positive_integer
from pathlines.foundation.numbers import real_array
from pathlines.foundation.papers import HOMOGENIZED, STOCHASTIC_CLUSTERING
from pathlines.limit.homogenized.backward_equation import Function
from pathlines.limit.homogenized.overlap_diffusion import OverlapDiffusion
from pathlines.limit.homogenized.wishart import chi_square_rule

SOURCES = (HOMOGENIZED, STOCHASTIC_CLUSTERING)
_GAUSS = 14  # nodes each way, for layers of small noise


def complements(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(a, c) = ((1-R)/2, (1+R)/2) at R = tanh y, both with full relative precision."""
    return special.expit(-2 * y), special.expit(2 * y)


def two_token_diffusion(d: int, moments: Function, extent: float = 20.0) -> OverlapDiffusion:
    """The diffusion at the top of this file; ``moments`` returns the rows T, Ψ at an array of y."""
    d = positive_integer("d", d, least=2)

    def drift(y: np.ndarray) -> np.ndarray:
        (spread, psi), (a, c) = moments(y), complements(y)
        cross = c + a * (2 * c * psi - spread)
        return (cross + (d - 3) * (1 - spread + psi) / 2) / d

    def variance(y: np.ndarray) -> np.ndarray:
        spread, psi = moments(y)
        _, c = complements(y)
        return (1 + spread + (1 - 2 * c) * psi) / d

    return OverlapDiffusion(drift, variance, extent)


def uniform_diffusion(d: int) -> OverlapDiffusion:
    """β = 0: both tokens take the mean; μ = (d-2+R)/(2d), σ² = 1/d, so that R -> 1 always."""
    return two_token_diffusion(d, lambda y: np.zeros((2, *y.shape)))


def uniform_expectation(time: ArrayLike, d: int, start: float = 0.0, power: int = 1) -> np.ndarray:
    """E[R_τ^k] of two tokens at β = 0 from R_0 = ``start``: the reference of weak-error studies (about 1e-11)."""
    power, law = positive_integer("power", power), uniform_diffusion(d)
    times = real_array("time", time, 0.0)
    found = [law.expectation(lambda r: r**power, float(t), start) for t in times.ravel()]
    return np.array(found).reshape(times.shape)[()]


def self_preference(overlap: ArrayLike, beta: float) -> np.ndarray:
    """t = tanh(β(1-R)/2): the weight a token gives itself minus the one it gives the other, query-keys βI."""
    r = real_array("overlap", overlap, -1.0, 1.0)
    return np.tanh(finite_number("beta", beta, 0.0) * (1 - r) / 2)[()]


def fixed_covariance(overlap: ArrayLike, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """(s_11, s_12) = ((1+R) ± t²(1-R))/2 for query-keys βI."""
    r, t = real_array("overlap", overlap, -1.0, 1.0), self_preference(overlap, beta)
    return ((1 + r + t * t * (1 - r)) / 2)[()], ((1 + r - t * t * (1 - r)) / 2)[()]


def fixed_diffusion(d: int, beta: float) -> OverlapDiffusion:
    """Query-key product βI, values random: dR of this file with T = t², Ψ = 0; σ² = (1+t²)/d in y."""
    beta = finite_number("beta", beta, 0.0)

    def moments(y: np.ndarray) -> np.ndarray:
        a, _ = complements(y)
        t = np.tanh(beta * a)
        return np.stack([t * t, np.zeros_like(t)])

    return two_token_diffusion(d, moments, extent=20.0 + np.log1p(beta))


def fixed_antipode_rate(d: int, beta: float) -> float:
    """Drift of log(1+R) at R = -1, query-keys βI: (1/d)[(d-1)/cosh²β - 2]; negative when the antipode attracts."""
    d, beta = positive_integer("d", d, least=2), finite_number("beta", beta, 0.0)
    fading = np.exp(-2 * beta)
    return float(((d - 1) * 4 * fading / (1 + fading) ** 2 - 2) / d)


def layer_antipode_rate(d: int, beta: float, v: float) -> float:
    """``fixed_antipode_rate`` of layers with diffusive time v instead of the diffusion (derived): → it as v → 0.

    Near R = -1 a layer moves x = (x_1-x_2)/2 to u = x + tanh(β)g and s = x_1+x_2 to s + h, with g and h/|s| independent
    Gaussian vectors of variance v/d, so that 1+R is multiplied by |P_u(s+h)|²/(|s|²|u|²). Mean logarithm over v, by
    tensor Gauss rules: P_u s has the length √(1 - ⟨u,ŝ⟩²/|u|²), and h is Gaussian in the d-1 directions left.
    """
    others = positive_integer("d", d, least=3) - 2
    scale = finite_number("v", v, 0.0, open_low=True) / d
    g, along = np.polynomial.hermite_e.hermegauss(_GAUSS)
    rest, across = chi_square_rule(others, _GAUSS)
    pull = np.tanh(beta) ** 2 * scale
    first, side, beyond = np.meshgrid(
        (1 + np.sqrt(pull) * g) ** 2, pull * g**2, pull * others * rest, indexing="ij", sparse=True
    )
    length = first + side + beyond
    left = np.sqrt(1 - side / length)[..., None, None]
    gap = (left + np.sqrt(scale) * g[:, None]) ** 2 + scale * others * rest
    inner = np.log(gap) @ (across / across.sum()) @ (along / along.sum())
    weights = along[:, None, None] * along[:, None] * across
    return float(np.sum(weights * (inner - np.log(length))) / weights.sum() / v)


def layer_critical_beta(d: int, v: float) -> float:
    """Where ``layer_antipode_rate`` changes sign; β_c as v → 0 (d ≥ 4)."""
    limit = critical_beta(positive_integer("d", d, least=4))
    return float(optimize.brentq(lambda beta: layer_antipode_rate(d, beta, v), limit / 4, 4 * limit + 1, xtol=1e-10))


def critical_beta(d: int) -> float:
    """β_c = arcosh √((d-1)/2), above which antipodal tokens attract (≈ ½ ln 2d); 0 for d ≤ 3: then every β > 0 does.

    At d = 2 the antipode attracts at β = 0 as well.
    """
    d = positive_integer("d", d, least=2)
    return float(np.arccosh(np.sqrt(max((d - 1) / 2, 1.0))))


def fixed_antipode_probability(d: int, beta: float, start: ArrayLike = 0.0) -> np.ndarray:
    """P(the tokens end antipodal) with query-keys βI, from R_0 = ``start``; 0 for β ≤ β_c."""
    return fixed_diffusion(d, beta).antipode_probability(start)
