"""What a layer's law depends on: not on the number of heads at fixed v, and not on how it is sampled.

Chains of Gaussian heads (Homogenized Transformers, arXiv:2604.01978) from orthogonal tokens; the second opinion is a
chain in NumPy that draws every matrix.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.homogenized import direct
from pathlines.claim.tolerance import standard_errors
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import chain
from pathlines.integrate.run import Run
from pathlines.model.homogenized.random_transformer import RandomTransformer


class Sampled(Setting):
    """Chains from orthogonal tokens beside a chain that draws every matrix."""

    n: of.Tokens = 4
    d: of.Dimension = 16
    b: of.LogitScale = 2.0
    qk_dim: Annotated[of.Count | None, means("width of the query-key factors; none for d", "p")] = None
    depth: of.Depth = 11
    every: of.Every = 11
    runs: of.Runs = 6000
    check_runs: of.CheckRuns = 8000
    seed: of.Seed = 5


def _run(s: Sampled, eta: float, heads: int, runs: int, seed: int, sampler: str = "auto") -> Run:
    net = RandomTransformer(s.d, heads=heads, step=eta, logit_scale=s.b, qk_dim=s.qk_dim)
    start = Sphere(s.d).simplex(s.n)
    return chain(
        net, start, depth=s.depth, every=s.every, key=jax.random.key(seed), runs=runs, record="mean_overlap",
        sampler=sampler,
    )  # fmt: skip


@cache
def _numpy(n: int, d: int, b: float, p: int | None, eta: float, heads: int, depth: int, runs: int, seed: int) -> Any:
    """Mean overlap after every layer and its standard error, by the chain in NumPy."""
    curve = direct.mean_overlap(direct.random_layers(np.eye(n, d), b, eta, heads, depth, runs, seed, p))
    return mean_and_error(curve)


Pairs = Annotated[tuple[tuple[of.Positive, of.Count], ...], means("residual steps and heads", "η, H")]


class StepsAndHeads(Sampled):
    """Steps and heads of one v = η²/H."""

    pairs: Pairs = ((0.3, 1), (0.6, 4))


def simulate_heads(s: StepsAndHeads) -> Evidence:
    """The mean overlap after the last layer for each (η, H)."""
    times = [eta**2 / heads for eta, heads in s.pairs]
    require(max(times) < min(times) * (1 + 1e-9), "pairs", "have the same η²/H", s.pairs)
    finals, spreads, curves, runs = [], [], [], []
    for k, (eta, heads) in enumerate(s.pairs):
        run = _run(s, eta, heads, s.runs, s.seed + k)
        mean, error = mean_and_error(run["mean_overlap"].values)
        finals.append(mean[-1])
        spreads.append(error[-1])
        curves.append(Curve(f"η={eta:g} H={heads}", run.data["tau"].values, mean, error))
        runs.append(run)
    return Evidence({"overlap": finals}, {"overlap": spreads}, curves=tuple(curves), runs=tuple(runs))


def predict_heads(s: StepsAndHeads) -> Evidence:
    """One head of the same v, in NumPy."""
    eta = float(np.sqrt(s.pairs[0][0] ** 2 / s.pairs[0][1]))
    mean, error = _numpy(s.n, s.d, s.b, s.qk_dim, eta, 1, s.depth, s.check_runs, s.seed)
    layers = np.arange(0, s.depth + 1, s.every)
    curve = Curve("one head, NumPy", eta**2 * layers, mean[layers], error[layers])
    return Evidence({"overlap": mean[-1]}, {"overlap": error[-1]}, curves=(curve,), source="NumPy Monte Carlo")


class Samplers(Sampled):
    """Several samplers of one chain."""

    eta: of.Step = 0.3
    heads: of.Heads = 1
    samplers: Annotated[tuple[str, ...], means("samplers: gram, low-rank, naive")] = ("gram", "low-rank")
    naive_runs: Annotated[of.Count, means("runs of the naive sampler")] = 1000


def simulate_samplers(s: Samplers) -> Evidence:
    """The mean overlap at recorded layers, by each sampler with its own keys."""
    means, errors, curves, runs = [], [], [], []
    for k, sampler in enumerate(s.samplers):
        count = s.naive_runs if sampler == "naive" else s.runs
        run = _run(s, s.eta, s.heads, count, s.seed + k, sampler)
        mean, error = mean_and_error(run["mean_overlap"].values)
        means.append(mean[1:])
        errors.append(error[1:])
        curves.append(Curve(sampler, run.data["tau"].values, mean, error))
        runs.append(run)
    values, spread = {"overlap": np.concatenate(means)}, {"overlap": np.concatenate(errors)}
    return Evidence(values, spread, curves=tuple(curves), runs=tuple(runs))


def predict_samplers(s: Samplers) -> Evidence:
    """The chain in NumPy, every matrix drawn."""
    mean, error = _numpy(s.n, s.d, s.b, s.qk_dim, s.eta, s.heads, s.depth, s.check_runs, s.seed)
    layers = np.arange(0, s.depth + 1, s.every)
    count = len(s.samplers)
    curve = Curve("matrices, NumPy", s.eta**2 / s.heads * layers, mean[layers], error[layers])
    values, spread = np.tile(mean[layers[1:]], count), np.tile(error[layers[1:]], count)
    return Evidence({"overlap": values}, {"overlap": spread}, curves=(curve,), source="NumPy Monte Carlo")


_AXES = Axes("diffusive time τ = vℓ", "mean overlap γ̄")

claim(
    "homogenized/C04",
    HOMOGENIZED,
    "heads enter through v only (derived)",
    "At fixed v = η²/H and fixed τ the number of heads does not matter (up to O(v)): from orthogonal tokens, chains "
    "with H heads and step η√H have the mean overlap of one head with step η.",
    where="derived; on the Gaussian case of §2.3.3",
    models=("random",),
    quick=StepsAndHeads(),
    full=StepsAndHeads(runs=16000, check_runs=16000, pairs=((0.3, 1), (0.6, 4), (1.2, 16))),
    within={"overlap": standard_errors(5.0, "standard errors over runs, those of the NumPy chain included")},
    simulate=simulate_heads,
    predict=predict_heads,
    blind={"overlap": "both sides are drawn: 3 % would take 30 000 runs of each"},
    axes=_AXES,
    note="Heads differ at order v: with many more runs than here the difference itself would be seen.",
)

claim(
    "homogenized/C05",
    HOMOGENIZED,
    "exact samplers (derived)",
    "Drawing whole matrices, drawing only what a factor of the Gram matrix needs (Bartlett), and moving only the Gram "
    "matrix are the same chain in law: the mean overlaps agree at every depth.",
    where="derived; numerical methods, no statement in the paper",
    models=("random",),
    quick=Samplers(),
    full=Samplers(
        depth=22, runs=16000, check_runs=16000, heads=2, samplers=("gram", "low-rank", "naive"), naive_runs=8000
    ),
    within={"overlap": standard_errors(5.0, "standard errors over runs, those of the NumPy chain included")},
    simulate=simulate_samplers,
    predict=predict_samplers,
    blind={"overlap": "both sides are drawn: 3 % would take 30 000 runs of each"},
    axes=_AXES,
)
