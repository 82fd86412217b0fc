"""What the estimator of retrieval stands on: variance, the identity by parts, the sum of all influences.

Kinetic theory for Transformers and the lost-in-the-middle phenomenon, arXiv:2605.09213, for the model; identities are
derived.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from pathlines.attention.masks import AlibiMask, WindowMask
from pathlines.claim.base import Evidence, claim
from pathlines.claim.causal.decoding import Decoder, measured, undecided
from pathlines.claim.causal.vocabulary import Deep, Length, Mode, Prompts, Slope
from pathlines.claim.tolerance import at_least, of_largest, relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import KINETIC
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.prompts import decoded
from pathlines.limit.causal.few_tokens import few_token_influence
from pathlines.limit.causal.rates import retrieval_rates
from pathlines.model.causal.decoder import CausalDecoder

# --- L5: the estimator


class Estimator(Decoder):
    """One mode, with the adjoint and without."""

    mode: Mode = 1
    prompts: Prompts = 6000


def simulate_estimators(s: Estimator) -> Evidence:
    """Standard deviation of the naive estimator, and the smallest ratio of variances."""
    (_, naive, _), (_, error, curve) = (
        measured(s, s.n, s.seed + k, mode=s.mode, estimator=e) for k, e in enumerate(("naive", "adjoint"))
    )
    gain = ((naive / error) ** 2).min()
    return Evidence({"naive_error": naive.mean() * np.sqrt(s.prompts), "gain": gain}, curves=(curve,))


def predict_estimators(s: Estimator) -> Evidence:
    """N/√2; at least N²/8 while e^{2x}/N is small: deep prompts have heavy tails, and the gain is lost."""
    return Evidence({"naive_error": s.n / np.sqrt(2), "gain": s.n**2 / 8}, undecided=undecided(s, s.n, "gain"))


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
