"""Masked attention: the first token, errors by position, mixtures that do not stay Gaussian.

A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322; How Smooth Is Attention?,
arXiv:2312.14820. The prefactor of the positional error is derived.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import expm

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.gaussian import reference_set as R
from pathlines.claim.tolerance import absolute, standard_errors
from pathlines.domain.quadrature import gauss_hermite
from pathlines.foundation.papers import UNIFIED
from pathlines.integrate import flow
from pathlines.integrate.coupling import synchronous_coupling
from pathlines.limit.gaussian.context import CRITICAL, theta
from pathlines.limit.gaussian.fluctuation import masked_draws, masked_size, response
from pathlines.limit.gaussian.markers import hermite_nodes, masked_softmax
from pathlines.limit.gaussian.moments import head, moments
from pathlines.model import SelfAttention
from pathlines.weights import Fixed

# --- C13


def simulate_positions(s: Any) -> Evidence:
    """x_1 against its start, and root mean squares of x_i - x̄_i by position."""
    cov = np.asarray(s.covariance)
    weights = Fixed(np.asarray(s.V), s.scale * np.asarray(s.A))
    build = partial(SelfAttention, 1.0, weights=weights, space="euclidean")
    draws = np.random.default_rng(s.seed).standard_normal((s.runs, s.n, len(cov))) @ R.root_of(cov)
    law = gauss_hermite(np.zeros(len(cov)), cov, s.nodes, 1e-12)
    pair = synchronous_coupling(build(causal=True), build, law, draws, times=[s.until], method="dop853", rtol=s.rtol)
    squares = np.sum((pair.tokens - pair.copies)[:, -1] ** 2, axis=-1)
    first = np.abs(pair.tokens[:, -1, 0] - draws[:, 0] @ expm(s.until * np.asarray(s.V)).T).max()
    found = _sizes(squares, s.after)
    curves = (Curve("RMS(xᵢ − x̄ᵢ)", np.arange(1, s.n + 1), np.sqrt(squares.mean(axis=0))),)
    values, errors = ({k: v[j] for k, v in found.items()} for j in (0, 1))
    return Evidence({"first": first, **values}, errors, curves=curves, runs=(pair.run,))


def _sizes(squares: np.ndarray, after: int) -> dict[str, tuple[float, float]]:
    """Root mean squares over runs (rows) with standard errors: of √i|x_i - x̄_i| for i > ``after``, of |x_i - x̄_i|."""
    i = np.arange(1, squares.shape[1] + 1)
    rows = {"size": (i * squares)[:, i > after].mean(axis=1), "overall": squares.mean(axis=1)}
    found = {}
    for name, row in rows.items():
        root = float(np.sqrt(row.mean()))
        found[name] = (root, float(row.std(ddof=1) / np.sqrt(len(row)) / (2 * root)))
    return found


def predict_positions(s: Any) -> Evidence:
    """x_1(T) = e^{TV}x_1(0); the masked linear response on Gauss-Hermite nodes while θ < 1/√2; else other draws."""
    score = s.scale * np.asarray(s.A)
    squares = masked_draws(score, s.V, s.covariance, s.n, s.runs, s.until, seed=s.seed + 1)
    found = _sizes(squares, s.after)
    last = moments("softmax", [head(s.V, score)], np.zeros(len(score)), s.covariance, [s.until]).covariance[-1]
    source = "draws of another program"
    if max(theta(score, s.covariance), theta(score, last)) < CRITICAL:
        nodes, masses = hermite_nodes(s.covariance, 8)
        found["size"] = (masked_size(response(score, s.V, nodes, masses, s.until, steps=10, orders=8), masses), 0.0)
        source = "linear response; draws of another program"
    i = np.arange(s.after, s.n + 1)
    curves = (Curve(f"{found['size'][0]:.3g}/√i", i, found["size"][0] / np.sqrt(i)),)
    values, errors = ({k: v[j] for k, v in found.items()} for j in (0, 1))
    return Evidence({"first": 0.0, **values}, errors, curves=curves, source=source)


claim(
    "gaussian/C13",
    UNIFIED,
    "masked tokens: the first follows e^{tV}, the others stray like i^{-1/2}",
    "Under causal softmax token 1 obeys x′ = Vx, and √i (E|xᵢ − x̄ᵢ|²)^½ tends to a constant: token i sees i samples, "
    "and the errors of those before it on top (a constant of linear response while θ < 1/√2).",
    models=("sa",),
    quick={
        "A": R.A,
        "V": R.V,
        "covariance": R.COVARIANCE,
        "scale": 1.0,
        "n": 300,
        "runs": 30,
        "until": 1.0,
        "rtol": 1e-9,
        "nodes": 16,
        "after": 30,
        "seed": 0,
    },
    full={"n": 1000, "runs": 60, "nodes": 20},
    within={
        "first": absolute(1e-6, "a thousand times the rtol of the flow"),
        "size": standard_errors(4.5, "runs are independent, positions of one run are not"),
        "overall": standard_errors(4.5, "runs are independent"),
    },
    simulate=simulate_positions,
    predict=predict_positions,
    axes=Axes("position i", "RMS(xᵢ − x̄ᵢ)", "log", "log"),
)


# --- C14


def simulate_mixture(s: Any) -> Evidence:
    """Mean and variance of both blocks and skewness of the second, from 60 markers each."""
    blocks = [gauss_hermite([mean], [[deviation**2]], s.nodes, 1e-25) for _, mean, deviation in s.blocks]
    tokens = np.concatenate([b.tokens for b in blocks])
    masses = np.concatenate([m * b.masses for (m, _, _), b in zip(s.blocks, blocks, strict=True)])
    place = np.repeat(np.arange(len(blocks)), [len(b.masses) for b in blocks])
    weights = Fixed([[s.v]], [[s.a]])
    model = SelfAttention(1.0, weights=weights, space="euclidean", multiplicities=masses, causal=place)
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


def predict_mixture(s: Any) -> Evidence:
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
    models=("sa",),
    quick={"v": -0.8, "a": 0.7, "blocks": [[0.5, 0.5, 1.0], [0.5, -0.8, 0.6]], "until": 1.5, "nodes": 60},
    within={"moments": absolute(1e-6, "60 Gauss-Hermite nodes a block")},
    simulate=simulate_mixture,
    predict=predict_mixture,
    axes=Axes("depth-time t", "moments"),
)
