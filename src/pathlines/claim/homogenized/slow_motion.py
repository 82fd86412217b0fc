"""The temperature of the slow-motion theorem, and the interpolation lemma behind it (arXiv:2604.01978)."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from pathlines.attention import SoftmaxAttention
from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.tolerance import absolute, standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.kernels import attend
from pathlines.limit.homogenized.uniform_attention import uniform_attention
from pathlines.weights.gaussian import GaussianHeads

# --- ER-06: which β is large


Sigmas = Annotated[tuple[of.Positive, ...], means("standard deviations of the entries of the query-key factors", "σ_A")]


class ColdAttention(Setting):
    """Attention to evenly spaced tokens at a large β."""

    beta: of.Beta = 20.0
    sigmas: Sigmas = (0.5, 1.0, 1.5)
    points: Annotated[of.Count, means("tokens, evenly spaced on the circle")] = 2048
    heads: of.DrawnHeads = 4000
    seed: of.Seed = 6


def simulate_deficit(s: ColdAttention) -> Evidence:
    """1 - |m_A(x)|² of heads drawn by the engine, attending to N even points of the circle, over heads."""
    angles = 2 * np.pi * np.arange(s.points) / s.points
    y = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
    masses = jnp.full(s.points, 1 / s.points)

    def deficit(query: Any, key: Any) -> Any:
        mean = attend(SoftmaxAttention(), s.beta * (query @ y[0])[None], y @ key.T, y, masses)[0][0]
        return 1 - jnp.sum(mean**2)

    found = []
    for i, sigma in enumerate(s.sigmas):
        heads = GaussianHeads(2, sigma_a=sigma).heads(jax.random.fold_in(jax.random.key(s.seed), i), s.heads)
        found.append(mean_and_error(jax.vmap(deficit)(heads.query, heads.key)))
    values, errors = np.array(found).T
    return Evidence({"deficit": values}, {"deficit": errors}, (Curve("heads", s.sigmas, values, errors),))


def predict_deficit(s: ColdAttention, printed: bool = False) -> Evidence:
    """1 - s_11 at β_eff = 2βσ_A²; read as printed, at β whatever σ_A."""
    require(
        max(s.sigmas) ** 2 * s.beta * 30 < s.points, "points", "exceed 30 β σ_A² to resolve the attention", s.points
    )
    sigmas = [0.5**0.5] * len(s.sigmas) if printed else s.sigmas
    values = np.array([1 - uniform_attention(2, s.beta, sigma) for sigma in sigmas])
    return Evidence({"deficit": values}, curves=(Curve("theory", s.sigmas, values),), source="quadrature")


_DEFICIT: dict[str, Any] = {
    "models": ("random",),
    "quick": ColdAttention(),
    "full": ColdAttention(heads=40000),
    "within": {
        "deficit": standard_errors(5.0, "standard errors over heads; the points resolve the attention to rounding")
    },
    "simulate": simulate_deficit,
    "axes": Axes("σ_A", "1 − E|m_A(x)|²", y_scale="log"),
}

claim(
    "homogenized/ER-06",
    HOMOGENIZED,
    "low temperature of the slow-motion theorem, as printed",
    "Attention is near its limit of zero temperature as soon as β is large: E|m_A(x)|² − 1 depends on β and not on the "
    "size σ_A of the factors of the query-key matrix.",
    where="theorem on slow motion at low temperature, its β",
    predict=partial(predict_deficit, printed=True),
    expected="refuted",
    corrected_by="homogenized/ER-06b",
    note="The printed last term, β^{-1/2}, also lacks a factor T. That factor is not tested: a pair moves by less than "
    "T/d, the first term of the bound, at every horizon that was tried.",
    **_DEFICIT,
)

claim(
    "homogenized/ER-06b",
    HOMOGENIZED,
    "low temperature of the slow-motion theorem (derived)",
    "What must be large is β_eff = βdσ_A²: for the uniform measure of the circle 1 − E|m_A(x)|² = 1 − ∫ r(βσ_A²z)² "
    "zK₀(z) dz, r = I₁/I₀.",
    where="derived; on the theorem on slow motion at low temperature",
    predict=predict_deficit,
    **_DEFICIT,
)

# --- ER-21: Gaussian interpolation


def _expectation(function: Any, variance: float, reach: float) -> float:
    """E f(√v Z) over |√v Z| ≤ reach, by the trapezoid rule in 20,000 steps."""
    x = np.linspace(-reach, reach, 20001)
    return float(np.trapezoid(function(x) * np.exp(-(x**2) / (2 * variance)), x) / np.sqrt(2 * np.pi * variance))


class Interpolation(Setting):
    """A function that grows like a Gaussian."""

    rate: Annotated[float, means("the function is e^{rate·x²}")] = 1 / 3
    variance: Annotated[of.Positive, means("variance of the wider Gaussian")] = 2.0
    reach: Annotated[of.Positive, means("where sums are cut off", "R")] = 20.0


def _growing(s: Interpolation, x: np.ndarray) -> np.ndarray:
    return np.exp(s.rate * x**2)


def simulate_growth(s: Interpolation) -> Evidence:
    """ln of E e^{ax²} over |x| ≤ 2R against |x| ≤ R, at the end of the interpolation."""
    sums = [_expectation(partial(_growing, s), s.variance, r * s.reach) for r in (1.0, 2.0)]
    bounded = _expectation(np.cos, s.variance, 40.0) - _expectation(np.cos, 1.0, 40.0)
    return Evidence({"growth": np.log(sums[1] / sums[0]), "bounded": bounded})


def predict_growth(s: Interpolation, printed: bool = False) -> Evidence:
    """(a - 1/2v)·3R² less the logarithm of the prefactor; as printed, both sides are finite and nothing is left.

    E f(√v Z) - E f(Z) = ½ ∫_1^v E f''(√u Z) du = e^{-v/2} - e^{-1/2} for f = cos.
    """
    bounded = np.exp(-s.variance / 2) - np.exp(-0.5)
    excess = s.rate - 1 / (2 * s.variance)
    if excess <= 0:
        reason = f"rate > 1/(2·variance) = {1 / (2 * s.variance):.3g} makes the expectation infinite"
        return Evidence({"growth": 0.0, "bounded": bounded}, undecided={"growth": reason})
    growth = 0.0 if printed else 3 * excess * s.reach**2 - np.log(2)
    # Dawson's integral: ∫_0^R e^{cx²} = e^{cR²}/(2cR)·(1 + 1/(2cR²) + …)
    return Evidence({"growth": growth, "bounded": bounded}, {"growth": 1 / (excess * s.reach**2)})


_GROWTH: dict[str, Any] = {
    "models": (),
    "quick": Interpolation(),
    "within": {
        "growth": standard_errors(1.0, "the next term of the asymptotic series of the integral, 1/(cR²)"),
        "bounded": absolute(1e-10, "trapezoid rule of an analytic function"),
    },
    "simulate": simulate_growth,
}

claim(
    "homogenized/ER-21",
    HOMOGENIZED,
    "Gaussian interpolation lemma, as printed",
    "E f(X) − E f(Y) = ½∫Σ(C^X−C^Y)_ij E ∂_ij f(√t X + √(1−t) Y) dt for every twice differentiable f: both sides are "
    "finite, so sums over |x| ≤ R settle.",
    where="proofs: lemma on Gaussian interpolation, as printed",
    predict=partial(predict_growth, printed=True),
    expected="refuted",
    corrected_by="homogenized/ER-21b",
    note="f = e^{ax²} has an infinite expectation as soon as 2av ≥ 1. The paper applies the lemma to functions with "
    "bounded derivatives.",
    **_GROWTH,
)

claim(
    "homogenized/ER-21b",
    HOMOGENIZED,
    "Gaussian interpolation needs bounded derivatives",
    "For f = cos the identity gives e^{−v/2} − e^{−1/2}; for f = e^{ax²} with 2av > 1 the expectation over |x| ≤ R "
    "grows like e^{(a−1/2v)R²}/R without end.",
    where="proofs: lemma on Gaussian interpolation, corrected",
    predict=predict_growth,
    **_GROWTH,
)
