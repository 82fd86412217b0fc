"""Sigmoid attention as it is used, summed over the tokens with the bias -ln n, is unnormalised in a long context.

A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322, names the kinds; limit and rate derived.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from pathlines.attention import Attention, SigmoidAttention, UnnormalisedAttention
from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.gaussian import reference_set as R
from pathlines.claim.tolerance import of_largest, standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import UNIFIED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import Run, flow
from pathlines.limit.gaussian.long_context import long_context, summed_sigmoid
from pathlines.model import SelfAttention
from pathlines.weights import FixedWeights

ACCURATE: dict[str, Any] = {"method": "dop853", "rtol": 1e-12, "atol": 1e-13}
FAR = 0.1
"""Change of n(x_n - x) from n to 4n, over its size, above which two sizes do not extrapolate it."""


class Practice(Setting):
    """Tokens of a Gaussian, each there many times, so that the law stays while the context grows."""

    V: of.ValueMatrix = R.V
    A: of.QueryKey = R.A
    mean: of.CloudMean = R.MEAN
    covariance: of.Covariance = R.COVARIANCE
    scale: of.ScoreFactor = 0.2
    distinct: Annotated[of.Count, means("distinct tokens")] = 8
    copies: Annotated[of.Count, means("copies of each in the shorter context; four times as many in the longer")] = 10
    bias: Annotated[float, means("bias beside −ln n", "b")] = 0.0
    until: of.Until = 0.5
    seed: of.Seed = 0


def _start(s: Practice) -> np.ndarray:
    rng = np.random.default_rng(s.seed)
    return rng.multivariate_normal(s.mean, s.covariance, s.distinct, method="eigh")


def _sizes(s: Practice) -> tuple[int, int]:
    return s.distinct * s.copies, 4 * s.distinct * s.copies


def simulate(s: Practice) -> Evidence:
    """Tokens in two contexts and under unnormalised attention; n(x_n - x) from both sizes, extrapolated.

    With n(x_n - x) = y + z/n + O(1/n²) two sizes give y up to the square of what they change it by.
    """
    x0, weights = _start(s), FixedWeights(np.asarray(s.V), s.scale * np.asarray(s.A))

    def moved(kind: Attention, copies: int, until: float) -> Run:
        model = SelfAttention(1.0, attention=kind, weights=weights, space="euclidean")
        return flow(model, np.repeat(x0, copies, axis=0), until=until, record="tokens", **ACCURATE)

    run = moved(UnnormalisedAttention(), 1, np.exp(s.bias) * s.until)
    late = run["tokens"].values[-1]
    sizes = _sizes(s)
    contexts = [moved(SigmoidAttention(s.bias, summed=True), n // s.distinct, s.until) for n in sizes]
    found = [r["tokens"].values[-1][:: n // s.distinct] for r, n in zip(contexts, sizes, strict=True)]
    scaled = [n * (x - late) for n, x in zip(sizes, found, strict=True)]
    slope = (4 * scaled[1] - scaled[0]) / 3
    change, size = np.abs(slope - scaled[1]).max(), np.abs(slope).max()
    values = {"limit": late, "contexts": np.stack(found), "correction": slope}
    advice = f"n(xₙ − x) still changes by {change / size:.2g} of itself: more copies"
    return Evidence(
        {name: np.ravel(v) for name, v in values.items()},
        {"correction": 4 * change**2 / size + 1e-8},
        curves=(Curve("sigmoid attention, summed", sizes, [np.abs(x - late).max() for x in found]),),
        runs=(run, *contexts),
        undecided={} if change < FAR * size else {"correction": advice},
    )


def predict(s: Practice) -> Evidence:
    """Unnormalised attention, its first correction, and both contexts, by SciPy."""
    x0 = _start(s)
    score = s.scale * np.asarray(s.A)
    late, slope = long_context(s.V, score, x0, s.until, s.bias)
    found = [summed_sigmoid(s.V, score, x0, n, s.until, s.bias) for n in _sizes(s)]
    n = np.geomspace(*_sizes(s), 20)
    values = {"limit": late, "contexts": np.stack(found), "correction": slope}
    return Evidence(
        {name: np.ravel(v) for name, v in values.items()},
        curves=(Curve("linear response", n, np.abs(slope).max() / n),),
        source="another solver; linear response",
    )


claim(
    "gaussian/C15b",
    UNIFIED,
    "sigmoid attention with bias −ln n is unnormalised in a long context",
    "Summed over n tokens with the bias b − ln n, sigmoid attention weighs a token n σ(s + b − ln n) = eᵘ/(1 + eᵘ/n), "
    "u = s + b: as n grows with the law of the tokens fixed they follow unnormalised attention (eᵇ times faster), and "
    "n(xₙ − x) tends to the response of that flow to −e²ᵘ.",
    where="derived; on sigmoid attention",
    models=("sigmoid", "unnormalised"),
    quick=Practice(),
    full=Practice(distinct=12, copies=40),
    within={
        "limit": of_largest(1e-9, "two solvers of tolerance 1e-12"),
        "contexts": of_largest(1e-9, "two solvers of tolerance 1e-12"),
        "correction": standard_errors(
            4.0, "the square of the change between the sizes, over its size; 1e-8 of n·1e-12"
        ),
    },
    simulate=simulate,
    predict=predict,
    axes=Axes("tokens n", "max |xₙ − x|", "log", "log"),
)
