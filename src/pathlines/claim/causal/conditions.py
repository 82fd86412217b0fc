"""What the theorems of retrieval need: a positive slope, exactly uniform prompts, tokens that are not neighbours.

Kinetic theory for Transformers and the lost-in-the-middle phenomenon, arXiv:2605.09213. Each condition is shown by what
happens without it; the numbers are derived.
"""

from __future__ import annotations

from typing import Annotated

import jax
import numpy as np
from msgspec import Meta
from scipy import special
from scipy.linalg import expm

from pathlines.attention.masks import AlibiMask
from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.causal.decoding import ERRORS, MEANINGFUL
from pathlines.claim.causal.vocabulary import Codewords, Deep, Length, Prompts, Slope
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.fitting import simulated_at
from pathlines.claim.tolerance import exactly, standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import KINETIC
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.prompts import decoded
from pathlines.integrate.retrieval import retrieval
from pathlines.limit.causal.layered import layer_grid, layered_mean_field, von_mises
from pathlines.limit.causal.profile import retrieval_profile
from pathlines.limit.causal.rates import retrieval_rates
from pathlines.limit.causal.response import positional_kernel
from pathlines.model.causal.decoder import CausalDecoder

# --- L19: no positive slope


class NoBias(Setting):
    """Decoders that prefer distant tokens, or none."""

    beta: of.Beta = 1.0
    slopes: Annotated[tuple[Annotated[float, Meta(le=0)], ...], means("ALiBi slopes, in units of 1/N", "λ")] = (
        -3.0,
        -1.0,
        0.0,
    )
    vocabulary: Codewords = 8
    depth: Deep = 0.7
    n: Annotated[int, Meta(ge=4), means("tokens of a prompt", "N")] = 48


def _paths(beta: float, slope: float, vocabulary: int, depth: float, n: int) -> np.ndarray:
    """Σ_m w_m N[e^{a_m t P}]_{Ni}, i < N, by exponentials of the engine's mask."""
    mask = np.asarray(AlibiMask(slope).rows(n))
    modes = np.arange(1, 20 + int(3 * beta))
    weights, rates = np.exp(-((np.pi * modes / vocabulary) ** 2) / 2), modes**2 * special.iv(modes, beta)
    kept = weights * rates > 1e-14 * (weights * rates).max()
    return sum(w * n * expm(a * depth * mask)[-1, :-1] for w, a in zip(weights[kept], rates[kept], strict=True))


def simulate_no_bias(s: NoBias) -> Evidence:
    """The slope at the end, extrapolated from N, 2N, 4N, and the number of tokens before which the profile rises."""
    ends, rises, curves = [], 0, []
    for slope in s.slopes:
        rows = [_paths(s.beta, slope, s.vocabulary, s.depth, k * s.n) for k in (1, 2, 4)]
        one, two, four = (k * s.n * (row[-1] - row[-2]) for k, row in zip((1, 2, 4), rows, strict=True))
        ends.append((8 * four - 6 * two + one) / 3)
        rises += int((np.diff(rows[-1]) > 0).sum())
        curves.append(Curve(f"λ = {slope:g}, N = {4 * s.n}", np.arange(1, 4 * s.n) / (4 * s.n), rows[-1]))
    return Evidence({"end": ends, "rises": rises}, curves=tuple(curves))


def predict_no_bias(s: NoBias) -> Evidence:
    """κ Σ w x (λ − κx/2), κ = k_λ(1,1), from the closed form; it never rises."""
    profiles = [retrieval_profile(s.beta, slope, s.vocabulary, s.depth) for slope in s.slopes]
    x = s.depth * max(profiles[0].rates)
    left = [(max(-slope, 1.0) + 2 * x) ** 3 / s.n**3 for slope in s.slopes]
    ends = [p.slope_at_end for p in profiles]
    grid = np.linspace(0.02, 1, 200)
    curves = tuple(Curve(f"λ = {lam:g}", grid, p(grid)) for lam, p in zip(s.slopes, profiles, strict=True))
    return Evidence({"end": ends, "rises": 0}, {"end": left * np.abs(ends)}, curves=curves)


claim(
    "causal/L19",
    KINETIC,
    "without a positive slope there is no recency",
    "For λ ≤ 0 the profile falls from the first token to the last at every depth, with slope κ Σ wₙxₙ(λ − κxₙ/2) at "
    "its end, κ = k_λ(1,1): the U needs λ > 0.",
    where="derived; the theorem on the U-shape assumes λ > 0",
    models=(),
    quick=NoBias(),
    full=NoBias(n=192),
    within={
        "end": standard_errors(3.0, "the third order of the extrapolation, ((|λ| + 2x)/N)³"),
        "rises": exactly("a count"),
    },
    simulate=simulate_no_bias,
    predict=predict_no_bias,
    mistakes=(
        simulated_at("slopes too large by {:g}", (1.0, 4.0), slopes=lambda found, size: tuple(x + size for x in found)),
    ),
    axes=Axes("source position σ₀ = i/N", "retrieval profile S"),
)


# --- L20: neighbours


class Neighbours(Setting):
    """A token of the middle and the next one."""

    beta: of.Beta = 1.0
    slope: Slope = 2.0
    depth: Deep = 0.8
    source: Annotated[of.Share, means("relative position of the source", "σ₀")] = 0.5
    n: Length = 128
    prompts: Prompts = 20_000
    modes: Annotated[tuple[of.Count, ...], means("Fourier modes", "n")] = (1, 2)
    seed: of.Seed = 21


def _length(s: Neighbours) -> int:
    """The source is the last but one of so many tokens: later ones are not heard."""
    return max(2, round(s.source * s.n) + 1)


def simulate_neighbours(s: Neighbours) -> Evidence:
    """N E cos(m(θ_{i+1}(t) − θ_i(0))) by the adjoint, in the prompt that ends there."""
    length = _length(s)
    net, values, errors = CausalDecoder(s.beta, s.slope * length / s.n), [], []
    for mode in s.modes:
        key = jax.random.fold_in(jax.random.key(s.seed), mode)
        data = retrieval(net, length, s.depth, key=key, prompts=s.prompts, mode=mode, progress=False)
        values.append(s.n / length * data["profile"].values[-1])
        errors.append(s.n / length * data["error"].values[-1])
    return Evidence({"covariance": values}, {"covariance": errors})


def predict_neighbours(s: Neighbours) -> Evidence:
    """t a_m k_λ(σ0,σ0), with k taken half-way between the two tokens."""
    length = _length(s)
    middle = (length - 0.5) / s.n
    kernel = float(positional_kernel(middle, middle, s.slope))
    rates = retrieval_rates(s.beta, max(s.modes))
    x = s.depth * rates[np.asarray(s.modes) - 1]
    size = float(np.exp(2 * s.depth * retrieval_rates(s.beta, 20).max()) / length)
    few = {"covariance": f"e^(2x)/i = {size:.2g}: a smaller depth or larger n"} if size > MEANINGFUL else {}
    return Evidence({"covariance": x * kernel}, {"covariance": x * kernel * size / ERRORS}, undecided=few)


claim(
    "causal/L20",
    KINETIC,
    "neighbours stay correlated",
    "As σ ↓ σ₀ the covariance N E cos(n(θ_σ(t) − θ_{σ₀}(0))) tends to t aₙ k_λ(σ₀,σ₀), not to zero: a token and the "
    "next one are as correlated as one hop makes them.",
    where="derived; the estimate of covariances is for distinct tokens",
    models=("causal-decoder",),
    quick=Neighbours(),
    full=Neighbours(n=512, prompts=100_000),
    within={"covariance": standard_errors(ERRORS, "standard errors over prompts, and e^{2x}/i of linear theory")},
    simulate=simulate_neighbours,
    predict=predict_neighbours,
)

# --- L21: prompts that are not uniform


class Directed(Setting):
    """Prompts of two lengths with a preferred direction."""

    beta: of.Beta = 1.0
    slope: Slope = 2.0
    depth: Deep = 0.5
    kappa: Annotated[of.Positive, means("concentration of the von Mises start", "κ")] = 1.0
    n: Length = 64
    prompts: Prompts = 4000
    seed: of.Seed = 22


def _mean_cosine(kappa: float) -> float:
    return float(special.i1(kappa) / special.i0(kappa))


def simulate_directed(s: Directed) -> Evidence:
    """E cos(θ_N(t) − θ_i(0)), the mean over i < N, extrapolated from N and 2N; cos θ_N(0) is a control."""
    rng, found = np.random.default_rng(s.seed), []
    for n in (s.n, 2 * s.n):
        starts = rng.vonmises(0.0, s.kappa, (s.prompts, n))
        ends, _ = decoded(CausalDecoder(s.beta, s.slope), starts, s.depth, adjoint=False)
        value, control = np.cos(ends[:, -1:] - starts[:, :-1]).mean(axis=1), np.cos(starts[:, -1])
        slope = np.cov(value, control)[0, 1] / control.var(ddof=1)
        found.append(mean_and_error(value - slope * (control - _mean_cosine(s.kappa))))
    (one, e1), (two, e2) = found
    return Evidence({"cosine": 2 * two - one}, {"cosine": np.hypot(2 * e2, e1)})


def _left(s: Directed) -> float:
    """(4/N)², the square of what a finite prompt adds."""
    return (4 / s.n) ** 2 / ERRORS


def predict_directed(s: Directed) -> Evidence:
    """Re f̂(t,1) f̂(0,1): the product of the means of the mean field."""
    grid = layer_grid(s.beta, 0.0, cells=2)
    f = layered_mean_field(grid, von_mises(s.kappa, grid.modes), s.depth, steps=60)
    value = f[0, len(grid.modes) // 2 + 1].real * _mean_cosine(s.kappa)
    return Evidence({"cosine": value}, {"cosine": _left(s)})


def predict_covariance_alone(s: Directed) -> Evidence:
    """N⁻¹ ∫ g(t,1;σ) dσ = (e^x - 1)/N, as if prompts were uniform: extrapolated to N = ∞, nothing."""
    return Evidence({"cosine": 0.0}, {"cosine": _left(s)})


L21 = claim(
    "causal/L21",
    KINETIC,
    "prompts with a preferred direction: the means come first",
    "If tokens are not exactly uniform, E cos(θ_N(t) − θ_i(0)) tends to the product of their means, of order one and "
    "the same at every position; retrieval, of order 1/N, is the covariance beside it.",
    where="derived; the expansion of the accuracy is for uniform prompts",
    models=("causal-decoder",),
    quick=Directed(),
    full=Directed(n=256, prompts=20_000),
    within={"cosine": standard_errors(ERRORS, "standard errors over prompts, and (4/N)² of finite prompts")},
    simulate=simulate_directed,
    predict=predict_directed,
)

L21.printed_as(
    "causal/ER-06",
    "the expansion for prompts of any law",
    "The retrieval of a token is g(t,1;σ₀)/N above chance, for prompts of any law.",
    where="the expansion of the accuracy, read without its condition",
    predict=predict_covariance_alone,
)
