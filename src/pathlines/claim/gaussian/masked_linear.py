"""Masked linear attention keeps every block of positions Gaussian, unlike masked softmax (claim C14).

A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322; the closure is derived.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from pathlines.attention import LinearAttention, PlacedMask
from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.gaussian import reference_set as R
from pathlines.claim.tolerance import absolute, of_largest
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import UNIFIED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.limit.gaussian.masked import masked_linear_moments
from pathlines.limit.gaussian.moments import head
from pathlines.model import SelfAttention
from pathlines.model.gaussian.closure import sigma_points
from pathlines.model.gaussian.masked import MaskedLinearGaussian
from pathlines.weights import FixedWeights

ItsBlocks = Annotated[
    tuple[tuple[of.Count, of.Vector, of.Matrix], ...], means("tokens, mean and covariance of each block", "n, α, Σ")
]


class BlocksOfTokens(Setting):
    """Blocks of positions, each with a Gaussian law of its own."""

    V: of.ValueMatrix = R.V
    A: of.QueryKey = R.A
    blocks: ItsBlocks = (
        (40, R.MEAN, R.COVARIANCE),
        (20, (-0.5, 0.4), ((0.4, -0.1), (-0.1, 0.9))),
        (30, (0.1, 0.6), ((0.6, 0.2), (0.2, 0.3))),
    )
    reduce: Annotated[str, means("whether prefixes are summed (sum) or averaged (mean)")] = "mean"
    until: of.Until = 1.0
    rtol: of.Rtol = 1e-10
    seed: of.Seed = 0


def _starts(s: BlocksOfTokens) -> list[np.ndarray]:
    """Tokens drawn from the laws of the blocks."""
    rng = np.random.default_rng(s.seed)
    return [rng.multivariate_normal(mean, cov, n, method="eigh") for n, mean, cov in s.blocks]


def _moments(x: np.ndarray) -> np.ndarray:
    """Mean and covariance (1/n) of some tokens, in one row."""
    centred = x - x.mean(axis=0)
    return np.concatenate([x.mean(axis=0), (centred.T @ centred / len(x)).ravel()])


def _kurtosis(x: np.ndarray) -> float:
    """Mardia's: the mean of |Σ^{-1/2}(x - α)|⁴, which no linear map changes."""
    centred = x - x.mean(axis=0)
    return float(np.mean(np.sum(centred @ np.linalg.pinv(centred.T @ centred / len(x)) * centred, axis=1) ** 2))


def simulate(s: BlocksOfTokens) -> Evidence:
    """Moments of tokens that share the position of their block, and of the closure from the exact laws."""
    parts, points = _starts(s), [sigma_points(mean, cov) for _, mean, cov in s.blocks]
    place, marks = (np.repeat(np.arange(len(b)), [len(p) for p in b]).astype(float) for b in (parts, points))
    weights = FixedWeights(np.asarray(s.V), np.asarray(s.A))
    tokens = SelfAttention(
        1.0,
        attention=LinearAttention(),
        weights=weights,
        space="euclidean",
        mask=PlacedMask(place, reduce=s.reduce),
    )
    closed = MaskedLinearGaussian(s.V, s.A, blocks=marks, shares=[n for n, _, _ in s.blocks], reduce=s.reduce)
    alike: Any = {"times": np.linspace(0, s.until, 7)[1:], "method": "dop853", "rtol": s.rtol, "atol": 1e-2 * s.rtol}
    run = flow(tokens, np.concatenate(parts), record="tokens", **alike)
    theory = flow(closed, np.concatenate(points), record=("block_means", "block_covariances"), **alike)
    split = [[x[place == b] for b in range(len(parts))] for x in run["tokens"].values]
    values = {
        "tokens": np.ravel([_moments(p) for p in split[-1]]),
        "closure": _flat(theory["block_means"].values[-1], theory["block_covariances"].values[-1]),
        "shape": [_kurtosis(late) / _kurtosis(early) - 1 for late, early in zip(split[-1], parts, strict=True)],
    }
    curves = [Curve(f"block {b + 1}", run.time, [x[b].var(axis=0).sum() for x in split]) for b in range(len(parts))]
    return Evidence(values, curves=tuple(curves), runs=(run, theory))


def _flat(means: np.ndarray, covariances: np.ndarray) -> np.ndarray:
    """A row of mean and covariance for each block, one after the other."""
    return np.concatenate([means, covariances.reshape(len(means), -1)], axis=1).ravel()


def predict(s: BlocksOfTokens) -> Evidence:
    """The closed equations by SciPy, from the moments of the same tokens and from those of the laws."""
    times, d = np.linspace(0, s.until, 25)[1:], len(s.V)
    counts = np.array([n for n, _, _ in s.blocks])
    drawn = np.stack([_moments(p) for p in _starts(s)])
    laws = np.stack([np.concatenate([mean, np.ravel(cov)]) for _, mean, cov in s.blocks])
    ways = [
        masked_linear_moments(
            [head(s.V, s.A)], counts / counts.sum(), start[:, :d], start[:, d:].reshape(-1, d, d), times, s.reduce
        )
        for start in (drawn, laws)
    ]
    values = {n: _flat(w.mean[-1], w.covariance[-1]) for n, w in zip(("tokens", "closure"), ways, strict=True)}
    traces = np.trace(ways[0].covariance, axis1=2, axis2=3).T
    return Evidence(
        {**values, "shape": np.zeros(len(counts))},
        curves=tuple(Curve(f"closure, block {b + 1}", times, y) for b, y in enumerate(traces)),
        source="closed equations by SciPy",
    )


claim(
    "gaussian/C14b",
    UNIFIED,
    "masked linear attention: every block keeps its law",
    "Under masked linear attention a token hears the blocks of positions up to its own and moves linearly: mean and "
    "covariance of every block follow αₛ′ = VM≤ₛAαₛ, Σₛ′ = VM≤ₛAΣₛ + (·)ᵀ for any tokens, whether prefixes are summed "
    "or averaged, and the shape of the cloud never changes, so that Gaussian blocks stay Gaussian.",
    where="derived; on masked attention",
    models=("linear", "masked-gaussian-linear"),
    quick=BlocksOfTokens(),
    full=BlocksOfTokens(
        reduce="sum",
        blocks=(
            (400, R.MEAN, R.COVARIANCE),
            (200, (-0.5, 0.4), ((0.4, -0.1), (-0.1, 0.9))),
            (300, (0.1, 0.6), ((0.6, 0.2), (0.2, 0.3))),
        ),
    ),
    within={
        "tokens": of_largest(1e-7, "1000 times the tolerance 1e-10 of the integrator, for few steps of growing clouds"),
        "closure": of_largest(1e-7, "the same, factor form against covariance form"),
        "shape": absolute(1e-6, "1e-7 of the tokens, in a ratio of fourth moments"),
    },
    simulate=simulate,
    predict=predict,
    axes=Axes("depth-time t", "tr Σₛ"),
)
