"""The attention field of n tokens against that of their law: mean-square error, its rate, and the entropy of attention.

A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322; Token Sample Complexity of Attention,
arXiv:2512.10656 (sub-parametric rates). Prefactors and exponents are derived. Queries are quadrature nodes of the law,
so that only the contexts are random.
"""

from __future__ import annotations

from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from pathlines.attention import SoftmaxAttention
from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import controlled_mean
from pathlines.claim.gaussian import reference_set as R
from pathlines.claim.gaussian.controls import modes, sample_controls
from pathlines.claim.tolerance import standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import ArgumentError, positive_integer
from pathlines.foundation.papers import UNIFIED
from pathlines.foundation.setting import Setting, means
from pathlines.kernels import attend
from pathlines.limit.gaussian.context import entropy_deficit, error_prefactor, rate_exponent
from pathlines.limit.gaussian.finite_n import field_errors, line_errors
from pathlines.model import SelfAttention
from pathlines.numerics.quadrature import WeightedNodes, gauss_hermite, trapezoid
from pathlines.weights import FixedWeights

WIDE = 2.0
"""Deviations by which one token of every other context is stretched: what few far tokens do is then not rare."""


def _square_errors(
    score: np.ndarray, value: np.ndarray, cov: np.ndarray, queries: WeightedNodes, n: int, runs: int, seed: int
) -> tuple[float, float]:
    """(E|Γ_n - Γ|², its standard error) over the queries and ``runs`` contexts of n tokens from N(0, Σ); Γ(x) = VΣAx.

    In every other context one token is drawn twice as wide, and contexts are weighted by the ratio of the laws, at most
    2 (tokens may be exchanged, so it is averaged over them). The weights and the modes of the samples are controls.
    """
    d = len(cov)
    normals = np.random.default_rng([seed, n]).standard_normal((runs, n, d))
    normals[::2, 0] *= WIDE
    wider = np.exp(np.sum(normals**2, axis=2) / 2 * (1 - WIDE**-2)).mean(axis=1) / WIDE**d
    weights = 2 / (1 + wider)
    contexts = jnp.asarray(normals @ R.root_of(cov))
    asked, masses = jnp.asarray(queries.tokens @ score.T), jnp.full(n, 1 / n)
    found = _answers(asked, contexts, masses)
    wrong = (np.asarray(found) - queries.tokens @ (cov @ score).T) @ value.T
    squares = np.sum(wrong**2, axis=-1) @ queries.masses
    pairs = sample_controls(modes(normals, 4 if d == 1 else 2))
    return controlled_mean(weights * squares, np.column_stack([weights - 1, weights[:, None] * pairs]))


@jax.jit
def _answers(asked: Any, contexts: Any, masses: Any) -> Any:
    return jax.lax.map(lambda x: attend(SoftmaxAttention(), asked, x, x, masses)[0], contexts)


# --- C04


class FieldError(Setting):
    """Contexts of several sizes."""

    A: of.QueryKey = R.A
    V: of.ValueMatrix = R.V
    covariance: of.Covariance = R.COVARIANCE
    scale: of.ScoreFactor = 0.8
    sizes: of.Sizes = (50, 400)
    runs: of.Runs = 1000
    order: Annotated[of.Count, means("Gauss-Hermite nodes per dimension for the queries")] = 12
    seed: of.Seed = 0


def simulate_prefactor(s: FieldError) -> Evidence:
    """n · MSE at each n."""
    A, V, cov = s.scale * np.asarray(s.A), np.asarray(s.V), np.asarray(s.covariance)
    queries = gauss_hermite(np.zeros(len(cov)), cov, s.order, 1e-12)
    rows = [_square_errors(A, V, cov, queries, n, s.runs, s.seed) for n in s.sizes]
    values, errors = np.array(rows).T * np.asarray(s.sizes)
    return Evidence({"prefactor": values}, {"prefactor": errors}, curves=(Curve("n · MSE", s.sizes, values, errors),))


NEARLY_ALL = 1e12
"""Tokens that count as infinitely many."""


def predict_prefactor(s: FieldError) -> Evidence:
    """det(I - 2ΣW)^{-1/2}[tr VΣVᵀ + tr VΣA(Σ^{-1} - 2W)^{-1}AᵀΣVᵀ], W = AᵀΣA, and what is missing of it at finite n.

    That is the difference between the exact integral at n and at n = 10¹²; infinite from θ = 1/√2 on.
    """
    score = s.scale * np.asarray(s.A)
    limit = error_prefactor(score, s.V, s.covariance)
    if not np.isfinite(limit):
        return Evidence({"prefactor": None}, source="θ ≥ 1/√2: no such constant")
    sizes = np.array([*s.sizes, 1e-2 * NEARLY_ALL, NEARLY_ALL])
    exact = sizes * field_errors(score, s.V, s.covariance, sizes, s.order)
    curves = (Curve("exact at n", s.sizes, exact[:-2]), Curve("n → ∞", s.sizes, limit * np.ones(len(s.sizes))))
    slow = abs(exact[-1] - exact[-2]) > 1e-3 * limit or abs(exact[-1] - limit) > 0.01 * limit
    advice = {"prefactor": "so close to θ = 1/√2 even 10¹² tokens are few: a smaller scale"} if slow else {}
    return Evidence({"prefactor": limit + exact[:-2] - exact[-1]}, curves=curves, undecided=advice)


claim(
    "gaussian/C04",
    UNIFIED,
    "mean-square error of the softmax field (derived)",
    "For Gaussian tokens with θ = |Σ^½AΣ^½| < 1/√2, n E|Γₙ − Γ|² → det(I − 2ΣW)^{−½}[tr VΣVᵀ + "
    "tr VΣA(Σ⁻¹ − 2W)⁻¹AᵀΣVᵀ], W = AᵀΣA; for larger θ it is infinite. At finite n it is an integral over one Laplace "
    "variable, exactly.",
    where="derived; no statement in the paper",
    models=("sa",),
    quick=FieldError(),
    full=FieldError(sizes=(50, 200, 1000), runs=6000, order=16),
    within={"prefactor": standard_errors(5.0, "contexts are independent; the expectation is exact at each n")},
    simulate=simulate_prefactor,
    predict=predict_prefactor,
    axes=Axes("tokens n", "n · E|Γₙ − Γ|²", x_scale="log"),
)


# --- C05

NAMES = ("weak", "critical", "strong")


class FieldRate(Setting):
    """Contexts on a line at several strengths of the scores."""

    strengths: Annotated[tuple[of.Positive, ...], means("strengths of the scores", "θ")] = (0.5, 1.0, 2.0)
    sizes: of.Sizes = (30, 300, 3000)
    draws: Annotated[of.Count, means("tokens that are drawn in all, for each size")] = 1_500_000
    least: Annotated[of.Count, means("least contexts of each size")] = 60
    seed: of.Seed = 0


def simulate_exponent(s: FieldRate) -> Evidence:
    """MSE at each n, and slopes of ln MSE against ln n; unit Gaussian tokens on a line."""
    queries, one, curves = trapezoid([0.0], [[1.0]], 0.1), np.eye(1), []
    if len(s.strengths) != len(NAMES) or len(s.sizes) < 2:
        raise ArgumentError(f"Settings `strengths` and `sizes` must hold three numbers θ and two or more n, but have "
                            f"{len(s.strengths)} and {len(s.sizes)}.")  # fmt: skip
    logs = np.log(s.sizes)
    share = (logs - logs.mean()) / np.sum((logs - logs.mean()) ** 2)  # slope = Σ share · ln MSE
    values, errors = {}, {}
    for name, strength in zip(NAMES, s.strengths, strict=True):
        counts = [max(s.least, int(s.draws / n)) for n in s.sizes]
        pairs = zip(s.sizes, counts, strict=True)
        found = [_square_errors(strength * one, one, one, queries, n, r, s.seed) for n, r in pairs]
        mean, error = np.array(found).T
        values[name], errors[name] = -float(share @ np.log(mean)), float(np.linalg.norm(share * error / mean))
        values[f"{name}_size"], errors[f"{name}_size"] = mean, error
        curves.append(Curve(f"θ = {strength:g}", s.sizes, mean, error))
    return Evidence(values, errors, curves=tuple(curves))


def predict_exponent(s: FieldRate) -> Evidence:
    """The exact integral at each n, and its slope; as n → ∞ that is 1 up to θ = 1/√2, √(1/θ² + 1/4) - 1/2 beyond."""
    logs = np.log(s.sizes)
    share = (logs - logs.mean()) / np.sum((logs - logs.mean()) ** 2)
    values: dict[str, Any] = {}
    curves = []
    for name, strength, p in zip(NAMES, s.strengths, rate_exponent(s.strengths), strict=True):
        exact = line_errors(strength, s.sizes)
        values[name], values[f"{name}_size"] = -float(share @ np.log(exact)), exact
        curves.append(Curve(f"θ = {strength:g}, exact, n^−{p:.3f} for n → ∞", s.sizes, exact))
    return Evidence(values, curves=tuple(curves), source="integral over one Laplace variable")


_CONTEXTS = standard_errors(5.0, "contexts are independent; the expectation is exact at each n")

claim(
    "gaussian/C05",
    UNIFIED,
    "the rate of the field error depends on θ (derived)",
    "On a line E|Γₙ − Γ|² ~ n^{−p} with p = 1 for θ ≤ 1/√2 and p = √(1/θ² + 1/4) − 1/2 beyond, approached "
    "logarithmically: for n = 10² … 10⁴ the slopes of the exact expectation are 0.97, 0.63 and 0.32 at θ = ½, 1 and 2.",
    where="derived; no statement in the paper",
    models=("sa",),
    quick=FieldRate(),
    full=FieldRate(sizes=(100, 1000, 10000), draws=8_000_000),
    within={k: _CONTEXTS for name in NAMES for k in (name, f"{name}_size")},
    simulate=simulate_exponent,
    predict=predict_exponent,
    axes=Axes("tokens n", "E|Γₙ − Γ|²", x_scale="log", y_scale="log"),
    blind=dict.fromkeys(("critical", "strong"), "squares of heavy-tailed averages: 3 % takes 4·10⁷ draws"),
)


# --- C25


class Entropy(Setting):
    """Attention of many tokens."""

    A: of.QueryKey = R.A
    mean: of.CloudMean = R.MEAN
    covariance: of.Covariance = R.COVARIANCE
    n: of.Tokens = 500
    runs: of.Runs = 60
    seed: of.Seed = 0


def simulate_entropy(s: Entropy) -> Evidence:
    """Mean over tokens and runs of ln n - H(P_i)."""
    mean, cov = np.asarray(s.mean), np.asarray(s.covariance)
    model = SelfAttention(1.0, weights=FixedWeights(np.eye(len(mean)), np.asarray(s.A)), space="euclidean")
    rng = np.random.default_rng(s.seed)
    look = jax.jit(lambda x: _deficit(model.attention_matrix(x, jnp.zeros(()))))
    normals = rng.standard_normal((s.runs, positive_integer("n", s.n, 4), len(mean)))
    rows = []
    for n in (s.n, s.n // 2):
        found = np.array([float(look(jnp.asarray(x[:n] @ R.root_of(cov) + mean))) for x in normals])
        sampled = modes(normals[:, :n], 2)
        controls = np.column_stack([sampled.mean(axis=2).T, sample_controls(sampled)])
        rows.append((*controlled_mean(found, controls), found))
    (deficit, chance, found), (half, _, _) = rows
    # an error of order 1/n is as large as what n/2 tokens change: five times half of it are allowed
    error = np.hypot(chance, (deficit - half) / 2)
    return Evidence({"deficit": deficit}, {"deficit": error}, curves=(Curve("runs", np.arange(s.runs), found),))


def _deficit(weights: Any) -> Any:
    entropy = -jnp.sum(jnp.where(weights > 0, weights * jnp.log(weights), 0.0), axis=1)
    return jnp.mean(jnp.log(weights.shape[1]) - entropy)


def predict_entropy(s: Entropy) -> Evidence:
    """½[tr AᵀΣAΣ + αᵀAᵀΣAα]."""
    limit = entropy_deficit(s.A, s.mean, s.covariance)
    return Evidence({"deficit": limit}, curves=(Curve("n → ∞", np.arange(s.runs), limit * np.ones(s.runs)),))


claim(
    "gaussian/C25",
    UNIFIED,
    "entropy of attention on a Gaussian cloud (derived)",
    "The mean of ln n − H(P_i) tends to ½[tr AᵀΣAΣ + αᵀAᵀΣAα]: how far attention is from uniform, in nats.",
    where="derived; no statement in the paper",
    models=("sa",),
    quick=Entropy(),
    full=Entropy(n=2000, runs=120),
    within={"deficit": standard_errors(5.0, "of the runs, and half the change from n/2 to n for the bias O(1/n)")},
    simulate=simulate_entropy,
    predict=predict_entropy,
    axes=Axes("run", "ln n − H"),
)
