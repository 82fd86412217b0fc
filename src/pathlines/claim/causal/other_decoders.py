"""The same theory for softmax attention, for residual layers and on spheres.

Kinetic theory for Transformers and the lost-in-the-middle phenomenon, arXiv:2605.09213, has the unnormalised kernel,
continuous depth and the circle; rates and sums over paths of the others are derived.
"""

from __future__ import annotations

from typing import Annotated

import jax
import numpy as np
from scipy import special

from pathlines.attention.masks import AlibiMask
from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.causal.decoding import ERRORS, MEANINGFUL, Decoder, measured, nearest, remainder, undecided
from pathlines.claim.causal.vocabulary import Deep, Length, Positions, Prompts
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.tolerance import at_least, standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import KINETIC
from pathlines.foundation.setting import means
from pathlines.integrate.retrieval import retrieval
from pathlines.limit.causal.paths import path_influence
from pathlines.limit.causal.rates import retrieval_rates
from pathlines.model import SelfAttention
from pathlines.model.causal.decoder import CausalDecoder

# --- L13: softmax; L14: layers; L15: spheres; all extrapolated to N = ∞


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
    left = remainder(s, s.n, softmax=True) ** 2 / ERRORS
    return Evidence({"ratio": [1.0, 1.0]}, {"ratio": left}, undecided=undecided(s, s.n, "ratio", softmax=True))


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
    (one, e1, c1), (two, e2, c2) = (measured(s, n, s.seed + n, mode=1, layers=s.layers) for n in (s.n, 2 * s.n))
    i, j = nearest(s), nearest(s, 2)
    value, error = 2 * two[j] - one[i], np.hypot(2 * e2[j], e1[i])
    n = FINE * s.n
    flow = path_influence((n, s.slope), s.depth * special.iv(1, s.beta))[nearest(s, FINE)]
    below = ((flow - value) / error).min()
    return Evidence({"influence": value, "below_flow": below}, {"influence": error}, curves=(c1, c2))


FINE = 64
"""Times N tokens: the influence of paths is then within 1e-3 of its limit."""


def predict_layers(s: Layered) -> Evidence:
    """N[(I + aT/L P)^L]_{Ni} at many tokens."""
    n, x = FINE * s.n, s.depth * float(retrieval_rates(s.beta, 1)[0])
    row = path_influence((n, s.slope), x, layers=s.layers)
    expected = row[nearest(s, FINE)]
    left = expected * (1.5 / n + remainder(s, s.n) ** 2) / ERRORS
    return Evidence(
        {"influence": expected, "below_flow": ERRORS},
        {"influence": left},
        curves=(Curve("paths of attention, N = ∞", np.arange(1, n)[:: n // 256] / n, row[:-1][:: n // 256]),),
        undecided=undecided(s, s.n, "influence", "below_flow"),
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


class OnSphere(Softmax):
    """Tokens on S^{d-1} at N and 2N; the clock is that of the sphere."""

    beta: of.Beta = 1.5
    depth: Deep = 0.5
    n: Length = 24
    prompts: Prompts = 768
    d: of.Dimension = 3
    degrees: Annotated[tuple[of.Count, ...], means("degrees of the harmonics", "ℓ")] = (1, 2)


def simulate_sphere(s: OnSphere) -> Evidence:
    """Σ_i N E P_ℓ(<x_N,x_i>) over the positions, over what paths say: extrapolated from N and 2N."""
    (one, e1), (two, e2) = (mean_and_error(_sphere_ratios(s, n)) for n in (s.n, 2 * s.n))
    return Evidence({"ratio": 2 * two - one}, {"ratio": np.hypot(2 * e2, e1)})


def _sphere_ratios(s: OnSphere, n: int) -> np.ndarray:
    """(batch, degree)."""
    later = slice(int(s.after * n), None)
    net = SelfAttention(s.beta, attention="unnormalised", mask=AlibiMask(s.slope))
    rates = retrieval_rates(s.beta, max(s.degrees), d=s.d)
    ratios = np.zeros((BATCHES, len(s.degrees)))
    for column, degree in enumerate(s.degrees):
        expected = path_influence((n, s.slope), s.depth * rates[degree - 1])[:-1][later].sum()
        for k in range(BATCHES):
            key = jax.random.fold_in(jax.random.key(s.seed), (n * BATCHES + k) * 16 + degree)
            share = max(2, s.prompts // BATCHES)
            data = retrieval(net, n, s.depth, key=key, prompts=share, mode=degree, d=s.d, progress=False)
            ratios[k, column] = data["profile"].values[later].sum() / expected
    return ratios


def predict_sphere(s: OnSphere) -> Evidence:
    """One."""
    size = float(np.exp(2 * s.depth * retrieval_rates(s.beta, 20, d=s.d).max()) / s.n)
    few = {"ratio": f"e^(2x)/N = {size:.2g}: a smaller depth or larger n"} if size > MEANINGFUL else {}
    return Evidence({"ratio": [1.0] * len(s.degrees)}, {"ratio": size**2 / ERRORS}, undecided=few)


claim(
    "causal/L15",
    KINETIC,
    "spheres: harmonics with their own rates",
    "On S^{d−1} the response N E P_ℓ(⟨x_N,x_i⟩) has the rates a_ℓ = ℓ(ℓ+d−2)/β · Γ(d/2)(2/β)^{d/2−1} I_{ℓ+d/2−1}(β), "
    "and otherwise the theory of the circle. Summed over positions, simulation over theory tends to 1 like 1/N.",
    where="derived; the paper has the circle",
    models=("usa",),
    quick=OnSphere(),
    full=OnSphere(n=48, prompts=6000, depth=0.8),
    within={
        "ratio": standard_errors(ERRORS, "Student's errors over twelve batches, and (e^{2x}/N)² of the extrapolation")
    },
    simulate=simulate_sphere,
    predict=predict_sphere,
)
