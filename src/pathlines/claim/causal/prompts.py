"""Simulated retrieval against theory: the profile, its shape, the estimator, layers, softmax, saturation.

Kinetic theory for Transformers and the lost-in-the-middle phenomenon, arXiv:2605.09213. The adjoint estimator, finite-N
paths, layers and softmax rates are derived. Linear theory leaves out third cumulants, of relative order e^{2x}/N with
x = T sup aₙ; where a claim extrapolates in N, numbers at N and 2N are combined as 2r(2N) − r(N), which leaves its
square.
"""

from __future__ import annotations

from typing import Annotated, Any

import jax
import numpy as np
from scipy import special

from pathlines.attention.masks import AlibiMask, WindowMask
from pathlines.claim.base import Axes, Curve, Evidence, claim, known
from pathlines.claim.causal.vocabulary import Codewords, Deep, Length, Mode, Positions, Prompts, Slope
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.tolerance import at_least, at_most, of_largest, relative, standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import KINETIC
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.prompts import decoded
from pathlines.integrate.retrieval import retrieval
from pathlines.limit.causal.few_tokens import few_token_influence
from pathlines.limit.causal.paths import path_influence, path_profile
from pathlines.limit.causal.profile import Profile, retrieval_profile
from pathlines.limit.causal.rates import retrieval_rates
from pathlines.model.causal.decoder import CausalDecoder

ERRORS = 5.0
MEANINGFUL = 0.1
"""e^{2x}/N beyond which linear theory decides nothing: its remainder is as large as what it predicts."""


class Decoder(Setting):
    """Uniform prompts through the decoder."""

    beta: of.Beta = 1.0
    slope: Slope = 2.0
    vocabulary: Codewords = 8
    depth: Deep = 1.0
    n: Length = 64
    prompts: Prompts = 20_000
    sources: Positions = (0.25, 0.5, 0.75)
    seed: of.Seed = 3


def _profile(s: Decoder, softmax: bool = False) -> Profile:
    return retrieval_profile(s.beta, s.slope, s.vocabulary, s.depth, softmax=softmax)


def _remainder(s: Decoder, n: int, softmax: bool = False) -> float:
    """e^{2x}/N, the relative size of what linear theory leaves out."""
    return float(np.exp(2 * s.depth * max(_profile(s, softmax).rates)) / n)


def _undecided(s: Decoder, n: int, *quantities: str, softmax: bool = False) -> dict[str, str]:
    size = _remainder(s, n, softmax)
    return dict.fromkeys(quantities, f"e^(2x)/N = {size:.2g}: a smaller depth or larger n") if size > MEANINGFUL else {}


def _measured(s: Decoder, n: int, seed: int, **options: Any) -> tuple[np.ndarray, np.ndarray, Curve]:
    found = retrieval(
        CausalDecoder(s.beta, s.slope), n, s.depth, key=jax.random.key(seed), prompts=s.prompts,
        vocabulary=s.vocabulary, progress=False, **options,
    )  # fmt: skip
    values, errors = found["profile"].values, found["error"].values
    return values, errors, Curve(f"{s.prompts} prompts, N = {n}", np.arange(1, n) / n, values, errors)


def _at(s: Decoder, fine: int = 1) -> np.ndarray:
    """Indices, among ``fine`` N tokens, of the relative positions of N tokens that are nearest to ``sources``."""
    return fine * np.clip(np.round(np.asarray(s.sources) * s.n).astype(int), 1, s.n - 1) - 1


def _sources(s: Decoder) -> np.ndarray:
    """Their relative positions."""
    return (_at(s) + 1) / s.n


def _closed(s: Decoder) -> Curve:
    grid = np.linspace(0.01, 1, 200)
    return Curve("closed form, N = ∞", grid, _profile(s)(grid))


# --- L3: extrapolated to N = ∞


def simulate_extrapolated(s: Decoder) -> Evidence:
    """2 S_2N - S_N at the same relative positions, from independent prompts."""
    (one, e1, c1), (two, e2, c2) = (_measured(s, n, s.seed + n) for n in (s.n, 2 * s.n))
    i, j = _at(s), _at(s, 2)
    values = {"profile": 2 * two[j] - one[i]}
    return Evidence(values, {"profile": np.hypot(2 * e2[j], e1[i])}, curves=(c1, c2))


def predict_extrapolated(s: Decoder) -> Evidence:
    """S_t(σ0), with the square of e^{2x}/N left out by the extrapolation."""
    expected = _profile(s)(_sources(s))
    left = expected * _remainder(s, s.n) ** 2 / ERRORS
    return Evidence(
        {"profile": expected}, {"profile": left}, curves=(_closed(s),), undecided=_undecided(s, s.n, "profile")
    )


POSITION = Axes("source position σ₀ = i/N", "retrieval profile S")

L3 = claim(
    "causal/L3",
    KINETIC,
    "the simulated profile tends to the closed form",
    "Measured by the adjoint estimator on prompts of N and 2N tokens and extrapolated to N = ∞, the retrieval profile "
    "of the last token is the closed form Σ wₙ g_{aₙ}(t,1;σ₀).",
    where="the expansion of the soft accuracy for uniform prompts",
    models=("causal-decoder",),
    quick=Decoder(),
    full=Decoder(prompts=200_000),
    within={"profile": standard_errors(ERRORS, "standard errors over prompts, and (e^{2x}/N)² of the extrapolation")},
    simulate=simulate_extrapolated,
    predict=predict_extrapolated,
    axes=POSITION,
)


def predict_unnormalised_integrals(s: Decoder) -> Evidence:
    """The closed form with ŵ(n) = ∫ e^{-inθ} w dθ over the circle, as printed, 2π I_n(β)."""
    profile = _profile(s)
    wrong = Profile(profile.weights, tuple(2 * np.pi * a for a in profile.rates), s.slope, s.depth)
    return Evidence({"profile": wrong(_sources(s))}, {"profile": 0.0})


L3.printed_as(
    "causal/ER-01",
    "Fourier coefficients without 1/2π",
    "With Fourier coefficients as integrals over the circle, as printed, the rates are 2π n² Iₙ(β).",
    where="the definition of Fourier coefficients",
    predict=predict_unnormalised_integrals,
    note="The paper uses ŵ_β(n) = I_n(β) and the uniform density 1, which need the normalised integral.",
)

# --- L4, L6: one long prompt length


def simulate_long_prompts(s: Decoder) -> Evidence:
    """S_N at relative positions; how far both ends lie above the lowest of them, in standard errors."""
    values, errors, curve = _measured(s, s.n, s.seed)
    places = _at(s)
    low = places[np.argmin(values[places])]
    ends = [(values[k] - values[low]) / np.hypot(errors[k], errors[low]) for k in (0, s.n - 2)]
    return Evidence({"profile": values[places], "ends": ends}, {"profile": errors[places]}, curves=(curve,))


def predict_paths(s: Decoder) -> Evidence:
    """Σ_n w_n N[e^{a_n t P}]_{Ni}, up to 1.5 e^{2x}/N; ten standard errors between the ends and the middle."""
    p = _profile(s)
    row = path_profile((s.n, s.slope), np.asarray(p.weights), np.asarray(p.rates), s.depth)
    expected = row[_at(s)]
    return Evidence(
        {"profile": expected, "ends": [10.0, 10.0]},
        {"profile": expected * 1.5 * _remainder(s, s.n) / ERRORS},
        curves=(Curve("paths of attention", np.arange(1, s.n) / s.n, row[:-1]), _closed(s)),
        undecided=_undecided(s, s.n, "profile", "ends"),
    )


L4 = claim(
    "causal/L4",
    KINETIC,
    "the profile at N = 256 is the sum over paths",
    "At finite N the retrieval profile is Σ wₙ N[e^{aₙtP}]_{Ni} up to terms of relative order e^{2x}/N.",
    where="derived; the paper has its limit N → ∞",
    models=("causal-decoder",),
    quick=Decoder(n=256, prompts=8000, sources=(0.125, 0.25, 0.5, 0.75, 0.875)),
    full=Decoder(n=512, prompts=60_000, sources=(0.125, 0.25, 0.5, 0.75, 0.875)),
    within={
        "profile": standard_errors(ERRORS, "standard errors, and 1.5 e^{2x}/N for third cumulants (0.6 to 1.1 seen)"),
    },
    simulate=simulate_long_prompts,
    predict=predict_paths,
    axes=POSITION,
)

claim(
    "causal/L6",
    KINETIC,
    "the U is visible in simulation",
    "The first and the last token before the end are retrieved better than the middle of the prompt, by more than ten "
    "standard errors.",
    where="the phenomenon of the paper's title",
    models=("causal-decoder",),
    quick=Decoder(n=256, prompts=8000, sources=(0.0625, 0.125, 0.25)),
    within={"ends": at_least("ten standard errors of a difference")},
    simulate=simulate_long_prompts,
    predict=predict_paths,
    axes=POSITION,
)

# --- L5: the estimator


class Estimator(Decoder):
    """One mode, with the adjoint and without."""

    mode: Mode = 1
    prompts: Prompts = 6000


def simulate_estimators(s: Estimator) -> Evidence:
    """Standard deviation of the naive estimator, and the smallest ratio of variances."""
    (_, naive, _), (_, error, curve) = (
        _measured(s, s.n, s.seed + k, mode=s.mode, estimator=e) for k, e in enumerate(("naive", "adjoint"))
    )
    gain = ((naive / error) ** 2).min()
    return Evidence({"naive_error": naive.mean() * np.sqrt(s.prompts), "gain": gain}, curves=(curve,))


def predict_estimators(s: Estimator) -> Evidence:
    """N/√2; at least N²/8 while e^{2x}/N is small: deep prompts have heavy tails, and the gain is lost."""
    return Evidence({"naive_error": s.n / np.sqrt(2), "gain": s.n**2 / 8}, undecided=_undecided(s, s.n, "gain"))


claim(
    "causal/L5",
    KINETIC,
    "the adjoint removes the noise",
    "Integrated by parts, E cos n(θ_N−θ_i) = E[J_i cos n(θ_N−θ_i)] (exactly: L16): the naive estimator has a "
    "standard deviation of N/√2 per prompt, the adjoint one a variance smaller by order N² (500 times at N = 64).",
    where="derived",
    models=("causal-decoder",),
    quick=Estimator(),
    full=Estimator(prompts=20_000),
    within={
        "naive_error": relative(0.02, "the mean over 63 positions of sample deviations of 6000 prompts: 0.2 %"),
        "gain": at_least("every position"),
    },
    simulate=simulate_estimators,
    predict=predict_estimators,
)

# --- L13: softmax; L14: layers; both extrapolated to N = ∞


class Softmax(Decoder):
    """Softmax attention at N and 2N."""

    beta: of.Beta = 2.0
    depth: Deep = 0.8
    n: Length = 32
    prompts: Prompts = 12_000
    after: Annotated[of.Share, means("positions from this one on are summed")] = 0.125


BATCHES = 12
"""Of prompts, each with a sum over positions of its own: those of one prompt are not independent."""


def simulate_softmax(s: Softmax) -> Evidence:
    """Σ_i S_N(i) over the positions, over what paths say, modes 1 and 2: extrapolated from N and 2N."""
    (one, e1), (two, e2) = (mean_and_error(_softmax_ratios(s, n)) for n in (s.n, 2 * s.n))
    return Evidence({"ratio": 2 * two - one}, {"ratio": np.hypot(2 * e2, e1)})


def _softmax_ratios(s: Softmax, n: int) -> np.ndarray:
    """(batch, mode)."""
    net, later = CausalDecoder(s.beta, s.slope, softmax=True), slice(int(s.after * n), None)
    ratios = np.zeros((BATCHES, 2))
    for mode in (1, 2):
        expected = path_influence((n, s.slope), s.depth * _softmax_rate(s, mode))[:-1][later].sum()
        for k in range(BATCHES):
            key = jax.random.fold_in(jax.random.key(s.seed), (n * BATCHES + k) * 2 + mode)
            data = retrieval(net, n, s.depth, key=key, prompts=max(2, s.prompts // BATCHES), mode=mode, progress=False)
            ratios[k, mode - 1] = data["profile"].values[later].sum() / expected
    return ratios


def _softmax_rate(s: Softmax, mode: int) -> float:
    return float(retrieval_rates(s.beta, mode, softmax=True)[-1])


def predict_softmax(s: Softmax) -> Evidence:
    """One."""
    left = _remainder(s, s.n, softmax=True) ** 2 / ERRORS
    return Evidence({"ratio": [1.0, 1.0]}, {"ratio": left}, undecided=_undecided(s, s.n, "ratio", softmax=True))


claim(
    "causal/L13",
    KINETIC,
    "softmax attention: the same theory with its own rates",
    "With softmax attention the response has the rates aₙ = n²Iₙ(β)/(βI₀(β)): the partition function does not "
    "fluctuate to first order. Summed over positions, simulation over theory tends to 1 like 1/N.",
    where="derived; the paper treats the unnormalised kernel",
    models=("causal-decoder",),
    quick=Softmax(),
    full=Softmax(n=64, prompts=60_000),
    within={
        "ratio": standard_errors(ERRORS, "Student's errors over twelve batches, and (e^{2x}/N)² of the extrapolation")
    },
    simulate=simulate_softmax,
    predict=predict_softmax,
)


class Layered(Decoder):
    """A decoder of a few residual layers."""

    depth: Deep = 1.5
    layers: Annotated[of.Count, means("residual layers", "L")] = 3
    prompts: Prompts = 30_000
    sources: Positions = (0.25, 0.5, 0.75)


def simulate_layers(s: Layered) -> Evidence:
    """2 S_2N - S_N of mode 1 after L residual layers."""
    (one, e1, c1), (two, e2, c2) = (_measured(s, n, s.seed + n, mode=1, layers=s.layers) for n in (s.n, 2 * s.n))
    i, j = _at(s), _at(s, 2)
    value, error = 2 * two[j] - one[i], np.hypot(2 * e2[j], e1[i])
    n = FINE * s.n
    flow = path_influence((n, s.slope), s.depth * special.iv(1, s.beta))[_at(s, FINE)]
    below = ((flow - value) / error).min()
    return Evidence({"influence": value, "below_flow": below}, {"influence": error}, curves=(c1, c2))


FINE = 64
"""Times N tokens: the influence of paths is then within 1e-3 of its limit."""


def predict_layers(s: Layered) -> Evidence:
    """N[(I + aT/L P)^L]_{Ni} at many tokens."""
    n, x = FINE * s.n, s.depth * float(retrieval_rates(s.beta, 1)[0])
    row = path_influence((n, s.slope), x, layers=s.layers)
    expected = row[_at(s, FINE)]
    left = expected * (1.5 / n + _remainder(s, s.n) ** 2) / ERRORS
    return Evidence(
        {"influence": expected, "below_flow": ERRORS},
        {"influence": left},
        curves=(Curve("paths of attention, N = ∞", np.arange(1, n)[:: n // 256] / n, row[:-1][:: n // 256]),),
        undecided=_undecided(s, s.n, "influence", "below_flow"),
    )


claim(
    "causal/L14",
    KINETIC,
    "layers: paths of at most L hops",
    "A decoder of L residual layers of step T/L has the influence N[(I+aₙT/L P)^L]_{Ni}: at most L hops, k of them "
    "with weight C(L,k)(x/L)^k. Three layers lie 30 % below the flow.",
    where="derived; the paper has continuous depth",
    models=("causal-decoder",),
    quick=Layered(),
    full=Layered(prompts=200_000),
    within={
        "influence": standard_errors(ERRORS, "standard errors, (e^{2x}/N)² of the extrapolation, 1.5/N of the limit"),
        "below_flow": at_least("five standard errors below the flow at every position"),
    },
    simulate=simulate_layers,
    predict=predict_layers,
    axes=Axes("source position σ₀ = i/N", "N E cos(θ_N − θ_i)"),
)

# --- L16, L17: exact identities


class FewTokens(Setting):
    """Three tokens on a grid of starts."""

    beta: of.Beta = 1.0
    slope: Slope = 2.0
    depth: Deep = 1.0
    modes: of.FourierModes = 3
    nodes: of.Nodes = 48
    steps: Annotated[of.Count, means("steps of the integrator")] = 60


def simulate_stein(s: FewTokens) -> Evidence:
    """Both sides of the identity on the grid, θ_1 = 0."""
    grid = 2 * np.pi * np.arange(s.nodes) / s.nodes
    second, third = (g.ravel() for g in np.meshgrid(grid, grid))
    starts = np.stack([np.zeros_like(second), second, third], axis=1)
    ends, gradient = decoded(CausalDecoder(s.beta, s.slope), starts, s.depth, steps=s.steps)
    assert gradient is not None
    wave = 3 * np.cos(np.arange(1, s.modes + 1)[:, None, None] * (ends[:, 2:] - starts[:, :2]))
    both = {"direct": wave, "adjoint": gradient[:, :2] * wave}
    values = {name: v.mean(axis=1) for name, v in both.items()}
    coarse = (np.arange(s.nodes) % 2 == 0)[:, None] & (np.arange(s.nodes) % 2 == 0)
    # the trapezoid rule squares its error when the nodes are doubled
    left = max(np.abs(v[:, coarse.ravel()].mean(axis=1) - values[name]).max() ** 2 for name, v in both.items())
    rate = s.depth * float(retrieval_rates(s.beta, 20).max())
    left += rate * (rate / s.steps) ** 4
    few = {} if left < 5e-7 else dict.fromkeys(both, f"more nodes or steps: these leave about {left:.1g}")
    return Evidence(values, undecided=few)


def predict_stein(s: FewTokens) -> Evidence:
    """N E cos n(θ_3 - θ_i) by another program."""
    exact = few_token_influence(3, s.beta, s.depth, s.modes, slope=s.slope, nodes=2 * s.nodes)
    return Evidence({"direct": exact, "adjoint": exact}, source="quadrature of an adaptive solution")


claim(
    "causal/L16",
    KINETIC,
    "the identity behind the estimator is exact",
    "For three tokens and every mode, N E cos n(θ_N−θ_i) and N E[J_i cos n(θ_N−θ_i)] are the same number, also where "
    "it is negative.",
    where="derived",
    models=("causal-decoder",),
    quick=FewTokens(),
    full=FewTokens(nodes=64, steps=200),
    within=dict.fromkeys(
        ("direct", "adjoint"), of_largest(1e-6, "48 nodes per token and 60 steps: 1e-7 of the largest")
    ),
    simulate=simulate_stein,
    predict=predict_stein,
)


class AnyStart(Setting):
    """A few prompts through decoders with several masks."""

    beta: of.Beta = 2.0
    slope: Slope = 1.5
    depth: Deep = 1.0
    n: Length = 24
    prompts: Prompts = 16
    window: Annotated[of.Count, means("width of the window")] = 5
    seed: of.Seed = 17


def simulate_sum(s: AnyStart) -> Evidence:
    """Σ_i J_i of every prompt: unnormalised and softmax, ALiBi and a window with a sink; smallest and largest."""
    starts = np.random.default_rng(s.seed).uniform(0, 2 * np.pi, (s.prompts, s.n))
    masks = (AlibiMask(s.slope), WindowMask(s.window, sinks=1, slope=s.slope))
    sums = []
    for mask in masks:
        for softmax in (False, True):
            _, gradient = decoded(CausalDecoder(s.beta, mask, softmax=softmax), starts, s.depth)
            assert gradient is not None
            sums.append(gradient.sum(axis=1))
    return Evidence({"smallest": np.min(sums), "largest": np.max(sums)})


def predict_sum(s: AnyStart) -> Evidence:
    """One: rotating all starts rotates the last token as far."""
    return Evidence({"smallest": 1.0, "largest": 1.0})


claim(
    "causal/L17",
    KINETIC,
    "influences of all starts add up to one",
    "Σᵢ ∂θ_N(t)/∂θᵢ(0) = 1 for every prompt, mask and kind of attention: the dynamics rotate with their tokens.",
    where="derived",
    models=("causal-decoder",),
    quick=AnyStart(),
    within=dict.fromkeys(("smallest", "largest"), relative(1e-10, "rounding of some thousand operations")),
    simulate=simulate_sum,
    predict=predict_sum,
)

# --- L18


class Saturated(Decoder):
    """A depth at which linear theory overshoots."""

    slope: Slope = 4.0
    depth: Deep = 3.0
    n: Length = 256
    prompts: Prompts = 8000


def simulate_saturation(s: Saturated) -> Evidence:
    """S_N over the closed form; the largest, with five standard errors."""
    values, errors, curve = _measured(s, s.n, s.seed)
    places, closed = _at(s), _profile(s)(_sources(s))
    ratio, error = values[places] / closed, errors[places] / closed
    return Evidence({"ratio": ratio, "below": (ratio + ERRORS * error).max()}, {"ratio": error}, curves=(curve,))


def predict_saturation(s: Saturated) -> Evidence:
    """Reference values at one setting; below one wherever e^{2x}/N is above 0.05."""
    setting = {"beta": 1.0, "slope": 4.0, "vocabulary": 8, "depth": 3.0, "n": 256, "sources": (0.25, 0.5, 0.75)}
    measured = known({"ratio": [0.83, 0.80, 0.85]}, s, setting)
    small = "e^(2x)/N is below 0.05: nothing saturates; a larger depth"
    return Evidence(
        {**measured.values, "below": 1.0},
        {"ratio": 0.02},
        curves=(_closed(s),),
        source="reference value; bound",
        undecided={"below": small} if _remainder(s, s.n) < 0.05 else {},
    )


claim(
    "causal/L18",
    KINETIC,
    "deep decoders saturate",
    "When e^{2x}/N is not small the closed form overshoots: clusters have formed and the response saturates (at 80 to "
    "85 % of it for β=1, λ=4, t=3, N=256).",
    where="derived; outside the paper's range of times",
    models=("causal-decoder",),
    quick=Saturated(),
    full=Saturated(prompts=60_000),
    within={
        "ratio": standard_errors(4.0, "standard errors of both, the reference's being 0.02"),
        "below": at_most("five standard errors are in the measured number"),
    },
    simulate=simulate_saturation,
    predict=predict_saturation,
    axes=POSITION,
    blind={"ratio": "reference values are known to 0.02, 2.4 % of them"},
)
