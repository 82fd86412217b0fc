"""Closed forms of l2 attention, the Lyapunov law of softmax, and the network's own layer map.

A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322; solutions derived.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import msgspec
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.fitting import Mistake
from pathlines.claim.gaussian.reference_set import COVARIANCE, MEAN, A, K, V
from pathlines.claim.tolerance import absolute, at_least, of_largest, relative, standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.papers import UNIFIED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow, layers
from pathlines.limit.gaussian.l2 import matrix_l2, scalar_l2
from pathlines.limit.gaussian.matrices import checked_covariance, square
from pathlines.limit.gaussian.matrices import root as symmetric_root
from pathlines.limit.gaussian.moments import head, moments
from pathlines.limit.gaussian.softmax import lyapunov_rate
from pathlines.model.gaussian.closure import Cloud, SoftmaxGaussian, sigma_points
from pathlines.model.gaussian.normalised import L2Gaussian

# --- C10: l2


class L2(Setting):
    """l2 attention on the line, and in the plane with Q = cK."""

    v: of.LineValue = 0.7
    q: Annotated[float, means("query on the line", "Q")] = 0.6
    k: Annotated[float, means("key on the line", "K")] = 0.9
    variance: Annotated[of.Positive, means("variance on the line", "σ₀")] = 1.3
    mean: Annotated[float, means("mean on the line", "α₀")] = 0.4
    c: Annotated[float, means("Q over K in the plane", "c")] = 0.5
    K: Annotated[of.Matrix, means("key matrix in the plane", "K")] = K
    covariance: of.Covariance = COVARIANCE
    until: of.Until = 2.0


def simulate_l2(s: L2) -> Evidence:
    """One dimension with a mean; a matrix with Q = cK, V = vI."""
    times = np.linspace(0, s.until, 21)
    options: dict[str, Any] = {"times": times, "method": "dop853", "rtol": 1e-12, "atol": 1e-14}
    scalar = L2Gaussian([[s.v]], [[s.q]], [[s.k]])
    start = sigma_points([s.mean], [[s.variance]])
    one = flow(scalar, start, record=("covariance_trace", "cloud_mean"), **options)
    key = np.asarray(s.K)
    matrix = L2Gaussian(s.v * np.eye(len(key)), s.c * key, key)
    many = flow(matrix, sigma_points(np.zeros(len(key)), s.covariance), record="covariance", **options)
    values = {
        "variance": one["covariance_trace"].values[-1],
        "mean": one["cloud_mean"].values[-1, 0],
        "matrix": many["covariance"].values[-1].ravel(),
    }
    curves = (
        Curve("σ", times, one["covariance_trace"].values),
        Curve("α", times, one["cloud_mean"].values[:, 0]),
    )
    return Evidence(values, curves=curves, runs=(one, many))


def predict_l2(s: L2) -> Evidence:
    """Wright's omega."""
    grid = np.linspace(0, s.until, 120)
    sigma, alpha = scalar_l2(grid, s.v, s.q, s.k, s.variance, s.mean)
    exact = matrix_l2(s.until, s.v, s.c, s.K, s.covariance)
    curves = (Curve("σ, Wright ω", grid, sigma), Curve("α, Wright ω", grid, alpha))
    return Evidence({"variance": sigma[-1], "mean": alpha[-1], "matrix": exact.ravel()}, curves=curves)


claim(
    "gaussian/C10",
    UNIFIED,
    "l2 attention in closed form (derived)",
    "In one dimension y = 1/(2K²σ) is ω(ln y₀ + y₀ − 2vQt/K) with Wright's ω, and α = α₀e^{−(y−y₀)K/2Q}√(y₀/y); for "
    "V = vI, Q = cK the eigenvalues of (2KᵀK)^{−½}Σ^{−1}(2KᵀK)^{−½} follow the same equation.",
    where="derived; on the covariance equation of L2 attention",
    models=("gaussian-l2",),
    quick=L2(),
    within={
        "variance": relative(1e-10, "rtol 1e-12 of the flow, a hundredfold"),
        "mean": relative(1e-10, "rtol 1e-12 of the flow, a hundredfold"),
        "matrix": of_largest(1e-10, "rtol 1e-12 of the flow, a hundredfold"),
    },
    simulate=simulate_l2,
    predict=predict_l2,
    axes=Axes("depth-time t", "variance σ and mean α"),
)


# --- C24: Lyapunov law


class Lyapunov(Setting):
    """One cloud, and random ones."""

    V: Annotated[of.Matrix, means("value matrix, symmetric and positive definite", "V")] = ((0.9, 0.4), (0.4, 0.6))
    A: of.QueryKey = A
    covariance: of.Covariance = COVARIANCE
    d: Annotated[of.Count, means("dimension of the random clouds", "d")] = 3
    draws: Annotated[of.Count, means("random V, A and Σ")] = 8
    seed: of.Seed = 3


def _matrices(s: Lyapunov) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """V symmetric positive definite, any A, a factor L, of the seed."""
    G, score, L = np.random.default_rng(s.seed).standard_normal((3, s.draws, s.d, s.d)) / np.sqrt(s.d)
    return G @ np.swapaxes(G, 1, 2) + 0.1 * np.eye(s.d), score, L


def _given(s: Lyapunov) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """V, A and L of the setting, as a batch of one."""
    value = checked_covariance("V", s.V)
    if np.linalg.eigvalsh(value)[0] <= 0:
        raise ArgumentError(f"Setting `V` must be positive definite, but has the eigenvalue "
                            f"{np.linalg.eigvalsh(value)[0]:.6g}.")  # fmt: skip
    d = len(value)
    L = symmetric_root(checked_covariance("covariance", s.covariance, d))
    return value[None], square("A", s.A, d)[None], L[None]


def simulate_lyapunov(s: Lyapunov) -> Evidence:
    """2 tr(LᵀV^{-1}L') from the drift of the engine."""

    def rate(V: Any, A: Any, L: Any) -> Any:
        model = jax.tree.unflatten(structure, (V[None], A[None], jnp.eye(len(V))[None]))
        moving = model.drift(Cloud(jnp.zeros(len(V)), L), jnp.zeros(())).factor
        return 2 * jnp.sum(jnp.linalg.solve(V, moving) * L)

    structure = jax.tree.structure(SoftmaxGaussian(np.eye(2), np.eye(2)))
    given, drawn = (jax.jit(jax.vmap(rate))(*map(jnp.asarray, m)) for m in (_given(s), _matrices(s)))
    return Evidence({"rate": given[0], "drawn": drawn})


def predict_lyapunov(s: Lyapunov) -> Evidence:
    """tr(Σ(A + Aᵀ)Σ)."""
    drawn = [lyapunov_rate(a, L @ L.T) for _, a, L in zip(*_matrices(s), strict=True)]
    return Evidence({"rate": lyapunov_rate(s.A, s.covariance), "drawn": drawn})


claim(
    "gaussian/C24",
    UNIFIED,
    "a Lyapunov law of softmax attention (derived)",
    "For V symmetric positive definite and any A, d/dt tr(V⁻¹Σ) = tr(Σ(A+Aᵀ)Σ): bounded if A+Aᵀ ≤ 0, blow-up if "
    "A+Aᵀ > 0.",
    where="derived; no statement in the paper",
    models=("gaussian-softmax",),
    quick=Lyapunov(),
    full=Lyapunov(draws=64),
    within={
        "rate": absolute(1e-12, "rounding of products of matrices of order one, and of a solve with V"),
        "drawn": of_largest(1e-12, "the same for random V, A and Σ"),
    },
    simulate=simulate_lyapunov,
    predict=predict_lyapunov,
)


# --- C28: the layer map


class LayerSteps(Setting):
    """Residual layers of several steps."""

    V: of.ValueMatrix = V
    A: of.QueryKey = A
    mean: of.CloudMean = MEAN
    covariance: of.Covariance = COVARIANCE
    until: of.Until = 1.0
    steps: Annotated[tuple[of.Positive, ...], means("steps of a layer, descending", "η")] = (0.1, 0.05)


COARSE = 16.0
"""Step, over ``until``, of one more layer, with -V: the map is positive at any step, and an expansion in it is not."""


def _layers(s: LayerSteps, step: float) -> np.ndarray:
    depth = max(1, round(s.until / step))
    start = sigma_points(s.mean, s.covariance)
    run = layers(SoftmaxGaussian(s.V, s.A), start, depth=depth, every=depth, step=step, record="covariance")
    return run["covariance"].values[-1]


def _expanded(right: Any, size: float) -> Any:
    """A layer whose covariance lacks the share ``size`` of its second order in the step, (ηB)Σ(ηB)ᵀ."""

    def wrong(s: LayerSteps, step: float) -> np.ndarray:
        covariance = np.asarray(s.covariance)
        push = step * np.asarray(s.V) @ covariance @ np.asarray(s.A)
        return right(s, step) - size * push @ covariance @ push.T

    return wrong


def simulate_layers(s: LayerSteps) -> Evidence:
    """Error of the stack of layers against the flow, both by the engine, and the smallest eigenvalue."""
    options: dict[str, Any] = {"times": [s.until], "record": "covariance", "method": "dop853", "rtol": 1e-11}
    run = flow(SoftmaxGaussian(s.V, s.A), sigma_points(s.mean, s.covariance), **options)
    ends = [_layers(s, h) for h in s.steps]
    errors = [float(np.abs(e - run["covariance"].values[-1]).max()) for e in ends]
    ratios = [a / b for a, b in pairwise(errors)]
    against = msgspec.structs.replace(s, V=tuple(tuple(-v for v in row) for row in s.V))
    lowest = min(float(np.linalg.eigvalsh(e)[0]) for e in (*ends, _layers(against, COARSE * s.until)))
    curves = (Curve("layers", s.steps, errors),)
    return Evidence({"ratio": ratios, "errors": errors, "lowest": lowest}, curves=curves, runs=(run,))


def predict_layers(s: LayerSteps) -> Evidence:
    """First order; the errors themselves by NumPy and SciPy."""
    one, d = head(s.V, s.A), len(s.mean)
    exact = moments("softmax", [one], s.mean, s.covariance, [s.until]).covariance[-1]

    def error(h: float) -> float:
        cov = np.asarray(s.covariance, float)
        for _ in range(round(s.until / h)):
            push = np.eye(d) + h * one.value @ cov @ one.score
            cov = push @ cov @ push.T
        return float(np.abs(cov - exact).max())

    errors = [error(h) for h in s.steps]
    ratio = [a / b for a, b in pairwise(s.steps)]
    next_order = [2 * abs(error(a / 2) / error(b / 2) - a / b) for a, b in pairwise(s.steps)]
    guide = errors[-1] * np.asarray(s.steps) / s.steps[-1]
    curves = (Curve("first order", s.steps, guide),)
    values = {"ratio": ratio, "errors": errors, "lowest": 0.0}
    return Evidence(values, {"ratio": np.maximum(1e-6, next_order)}, curves=curves, source="order; NumPy and SciPy")


claim(
    "gaussian/C28",
    UNIFIED,
    "the layer map keeps covariances positive, first order in the step (derived)",
    "A residual layer of step η maps N(α,Σ) to N(α+η(c+Bα), (I+ηB)Σ(I+ηB)ᵀ): positive semidefinite for every η, with "
    "an error of first order against the flow.",
    where="derived; a residual layer as an explicit Euler step",
    models=("gaussian-softmax",),
    quick=LayerSteps(),
    full=LayerSteps(steps=(0.1, 0.05, 0.025, 0.0125)),
    within={
        "ratio": standard_errors(1.5, "next order of the error: twice what the ratio at half the steps leaves"),
        "errors": relative(1e-6, "two programs, with flows at 1e-11 and 1e-12"),
        "lowest": at_least("eigenvalues of a product GGᵀ"),
    },
    simulate=simulate_layers,
    predict=predict_layers,
    axes=Axes("step η", "largest error of Σ at t = 1", x_scale="log", y_scale="log"),
    mistakes=(Mistake("_layers", "{:.0%} of the second order in η missing", _expanded, (0.01, 0.1, 0.5, 1.0)),),
)
