"""Masked attention: the first token, errors by position, mixtures that do not stay Gaussian.

A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322; How Smooth Is Attention?,
arXiv:2312.14820. The prefactor of the positional error is derived.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import numpy as np
from scipy.linalg import expm

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import controlled_mean, root_and_error
from pathlines.claim.gaussian import reference_set as R
from pathlines.claim.gaussian.controls import modes, prefix_controls
from pathlines.claim.tolerance import absolute, relative, standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.papers import UNIFIED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.integrate.coupling import synchronous_coupling
from pathlines.limit.gaussian.context import CRITICAL, score_strength
from pathlines.limit.gaussian.fluctuation import TAME, masked_draws, masked_size, response
from pathlines.limit.gaussian.markers import hermite_nodes, masked_softmax
from pathlines.limit.gaussian.moments import head, moments
from pathlines.model import SelfAttention
from pathlines.numerics.quadrature import gauss_hermite
from pathlines.weights import FixedWeights

# --- C13


class Masked(Setting):
    """Gaussian tokens under the causal mask."""

    A: of.QueryKey = R.A
    V: of.ValueMatrix = R.V
    covariance: of.Covariance = R.COVARIANCE
    scale: of.ScoreFactor = 0.5
    n: of.Tokens = 200
    runs: of.Runs = 300
    until: of.Until = 1.0
    step: of.TimeStep = 0.1
    nodes: of.HermiteNodes = 12
    after: Annotated[of.Count, means("positions before this one are not compared")] = 60
    again: Annotated[of.Count, means("runs that are computed again in NumPy")] = 4
    seed: of.Seed = 0


def simulate_positions(s: Masked) -> Evidence:
    """x_1 against its start, root mean squares of √i|x_i - x̄_i| by position, and of |x_i - x̄_i| in the first runs.

    Beside chance the error counts half of what positions half as far change: the remainder is of order 1/i.
    """
    cov, after = np.asarray(s.covariance), _after(s)
    weights = FixedWeights(np.asarray(s.V), s.scale * np.asarray(s.A))
    build = partial(SelfAttention, 1.0, weights=weights, space="euclidean")
    normals = np.random.default_rng(s.seed).standard_normal((s.runs, s.n, len(cov)))
    law = gauss_hermite(np.zeros(len(cov)), cov, s.nodes, 1e-12)
    starts = normals @ R.root_of(cov)
    pair = synchronous_coupling(build(mask="causal"), build, law, starts, times=[s.until], method="rk4", step=s.step)
    squares = np.sum((pair.tokens - pair.copies)[:, -1] ** 2, axis=-1)
    first = np.abs(pair.tokens[:, -1, 0] - starts[:, 0] @ expm(s.until * np.asarray(s.V)).T).max()
    found = modes(normals, 2)
    scaled = np.arange(1, s.n + 1) * squares
    (size, error), (half, _) = (
        root_and_error(*controlled_mean(scaled[:, low:high].mean(axis=1), prefix_controls(found, low, high)))
        for low, high in ((after, s.n), (after // 2, s.n // 2))
    )
    size_of_V, largest = float(np.linalg.norm(s.V, 2)), float(np.abs(starts[:, 0]).max())
    order = s.until * s.step**4 * size_of_V**5 / 120 * np.exp(size_of_V * s.until) * largest
    values = {"first": first, "size": size, "again": np.sqrt(squares[: s.again].mean(axis=0))}
    curves = (Curve("RMS(xᵢ − x̄ᵢ)", np.arange(1, s.n + 1), np.sqrt(squares.mean(axis=0))),)
    errors = {"first": order, "size": np.hypot(error, (size - half) / 2)}
    return Evidence(values, errors, curves=curves, runs=(pair.run,))


def _after(s: Masked) -> int:
    if not 0 < s.after < s.n:
        raise ArgumentError(f"Setting `after` must be between 1 and n - 1 = {s.n - 1}, but is {s.after}.")
    return int(s.after)


def predict_positions(s: Masked) -> Evidence:
    """x_1(T) = e^{TV}x_1(0); the masked linear response on Gauss-Hermite nodes; the first runs by another program."""
    score = s.scale * np.asarray(s.A)
    squares = masked_draws(score, s.V, s.covariance, s.n, s.again, s.until, max(10, round(s.until / s.step)), s.seed)
    last = moments("softmax", [head(s.V, score)], np.zeros(len(score)), s.covariance, [s.until]).covariance[-1]
    strength = max(score_strength(score, s.covariance), score_strength(score, last))
    values: dict[str, Any] = {"first": 0.0, "size": None, "again": np.sqrt(squares.mean(axis=0))}
    if strength >= CRITICAL:
        advice = f"θ reaches {strength:.2g} ≥ 1/√2, and markers do not carry the law: a smaller scale or until"
        return Evidence(values, undecided=dict.fromkeys(("size", "again"), advice))
    nodes, masses = hermite_nodes(s.covariance, 8)
    values["size"] = masked_size(response(score, s.V, nodes, masses, s.until, steps=10, orders=8), masses)
    i = np.arange(s.after, s.n + 1)
    curves = (Curve(f"{values['size']:.3g}/√i", i, values["size"] / np.sqrt(i)),)
    advice = f"θ reaches {strength:.2g}: below 1/√6 the remainder would be O(1/i), with a smaller scale or until"
    return Evidence(
        values,
        curves=curves,
        source="linear response; the same starts by another program",
        undecided={} if strength < TAME else {"size": advice},
    )


claim(
    "gaussian/C13",
    UNIFIED,
    "masked tokens: the first follows e^{tV}, the others stray like i^{-1/2}",
    "Under causal softmax token 1 obeys x′ = Vx, and √i (E|xᵢ − x̄ᵢ|²)^½ tends to a constant of linear response while "
    "θ < 1/√2: token i sees i samples, and the errors of those before it on top. The remainder is O(1/i) for θ < 1/√6.",
    where="masked attention: mean-field limit in the conditional framework; rates derived",
    models=("sa",),
    quick=Masked(),
    full=Masked(n=400, runs=1500, after=120),
    within={
        "first": absolute(1e-12, "Runge-Kutta of order 4: T step⁴|V|⁵/120 of the largest first token, twice", 2.0),
        "size": standard_errors(5.0, "runs are independent; half of what positions half as far change for O(1/i)"),
        "again": relative(1e-3, "two programs of order 4 at step 0.1, differences of nearly equal tokens"),
    },
    simulate=simulate_positions,
    predict=predict_positions,
    axes=Axes("position i", "RMS(xᵢ − x̄ᵢ)", "log", "log"),
)


# --- C14


ItsBlocks = Annotated[tuple[tuple[float, float, float], ...], means("share, mean and deviation", "m, α, σ")]


class Blocks(Setting):
    """Blocks of positions with laws of their own."""

    v: of.LineValue = -0.8
    a: of.LineScore = 0.7
    blocks: ItsBlocks = ((0.5, 0.5, 1.0), (0.5, -0.8, 0.6))
    until: of.Until = 1.5
    nodes: of.Nodes = 60


def simulate_mixture(s: Blocks) -> Evidence:
    """Mean and variance of both blocks and skewness of the second, from 60 markers each."""
    blocks = [gauss_hermite([mean], [[deviation**2]], s.nodes, 1e-25) for _, mean, deviation in s.blocks]
    tokens = np.concatenate([b.tokens for b in blocks])
    masses = np.concatenate([m * b.masses for (m, _, _), b in zip(s.blocks, blocks, strict=True)])
    place = np.repeat(np.arange(len(blocks)), [len(b.masses) for b in blocks])
    weights = FixedWeights([[s.v]], [[s.a]])
    model = SelfAttention(1.0, weights=weights, space="euclidean", multiplicities=masses, mask=place)
    run = flow(model, tokens, times=np.linspace(0, s.until, 7)[1:], record="tokens", method="dop853", rtol=1e-10)
    rows = [_row(x[:, 0], masses, place, len(blocks)) for x in run["tokens"].values]
    labels = ("mean", "variance", "skewness")
    curves = [
        Curve(f"block {b + 1}, {labels[k]}", run.time, [r[b][k] for r in rows])
        for b in range(len(blocks))
        for k in range(3)
    ]
    return Evidence({"moments": np.ravel(rows[-1])}, curves=tuple(curves), runs=(run,))


def _row(x: np.ndarray, masses: np.ndarray, place: np.ndarray, count: int) -> list[list[float]]:
    rows = []
    for b in range(count):
        w = masses[place == b] / masses[place == b].sum()
        mean = w @ x[place == b]
        away = x[place == b] - mean
        rows.append([float(mean), float(w @ away**2), float(w @ away**3 / (w @ away**2) ** 1.5)])
    return rows


def predict_mixture(s: Blocks) -> Evidence:
    """Block 1 in closed form, α e^{vt}(1 - 2vaσt)^{-1/2} and σ/(1 - 2vaσt); the others by markers in NumPy."""
    found = [list(m[:3]) for m in masked_softmax(s.v, s.a, s.blocks, s.until)]
    _, mean, deviation = s.blocks[0]
    room = 1 - 2 * s.v * s.a * deviation**2 * s.until
    found[0] = [mean * np.exp(s.v * s.until) / np.sqrt(room), deviation**2 / room, 0.0]
    return Evidence({"moments": np.ravel(found)}, source="closed form for block 1, trapezoid markers for the others")


claim(
    "gaussian/C14",
    UNIFIED,
    "masked softmax: the first block stays Gaussian, later ones do not",
    "With blocks of positions of different Gaussian laws the first follows the unmasked closure; the second sees a "
    "mixture, and becomes skew.",
    where="derived; on masked attention",
    models=("sa",),
    quick=Blocks(),
    within={"moments": absolute(1e-6, "60 Gauss-Hermite nodes per block")},
    simulate=simulate_mixture,
    predict=predict_mixture,
    axes=Axes("depth-time t", "moments"),
)
