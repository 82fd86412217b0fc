"""The attention field of n tokens against that of their law: mean-square error, its rate, and the entropy of attention.

A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322; Token Sample Complexity of Attention,
arXiv:2512.10656 (sub-parametric rates). Prefactors and exponents are derived. Queries are quadrature nodes of the law,
so that only the contexts are random.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathlines.attention import Softmax
from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.gaussian import reference_set as R
from pathlines.claim.tolerance import absolute, standard_errors
from pathlines.domain.quadrature import Markers, gauss_hermite, trapezoid
from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.papers import UNIFIED
from pathlines.kernels import attend
from pathlines.limit.gaussian.context import entropy_deficit, error_prefactor, rate_exponent, reached_prefactor
from pathlines.model import SelfAttention
from pathlines.weights import Fixed


def _square_errors(
    score: np.ndarray, value: np.ndarray, cov: np.ndarray, queries: Markers, n: int, runs: int, seed: int
) -> np.ndarray:
    """E|Γ_n - Γ|² over the queries, for each of ``runs`` contexts of n tokens from N(0, Σ); Γ(x) = VΣAx."""
    draws = np.random.default_rng([seed, n]).standard_normal((runs, n, len(cov)))
    contexts = jnp.asarray(draws @ R.root_of(cov))
    asked, masses = jnp.asarray(queries.tokens @ score.T), jnp.full(n, 1 / n)
    found = jax.vmap(lambda x: attend(Softmax(), asked, x, x, masses)[0])(contexts)
    wrong = (np.asarray(found) - queries.tokens @ (cov @ score).T) @ value.T
    return np.sum(wrong**2, axis=-1) @ queries.masses


# --- C04


def simulate_prefactor(s: Any) -> Evidence:
    """n · MSE at each n."""
    A, V, cov = s.scale * np.asarray(s.A), np.asarray(s.V), np.asarray(s.covariance)
    queries = gauss_hermite(np.zeros(len(cov)), cov, s.order, 1e-12)
    rows = [n * _square_errors(A, V, cov, queries, n, s.runs, s.seed) for n in s.sizes]
    values = np.array([r.mean() for r in rows])
    errors = np.array([r.std(ddof=1) / np.sqrt(len(r)) for r in rows])
    curves = (Curve("n · MSE", s.sizes, values, errors),)
    return Evidence({"prefactor": values[-1]}, {"prefactor": errors[-1]}, curves=curves)


def predict_prefactor(s: Any) -> Evidence:
    """det(I - 2ΣW)^{-1/2}[tr VΣVᵀ + tr VΣA(Σ^{-1} - 2W)^{-1}AᵀΣVᵀ], W = AᵀΣA; infinite from θ = 1/√2 on."""
    limit = error_prefactor(s.scale * np.asarray(s.A), s.V, s.covariance)
    if not np.isfinite(limit):
        return Evidence({"prefactor": None}, source="θ ≥ 1/√2: no such constant")
    missing = abs(limit - reached_prefactor(s.scale * np.asarray(s.A), s.V, s.covariance, s.sizes[-1]))
    curves = (Curve("n → ∞", s.sizes, limit * np.ones(len(s.sizes))),)
    return Evidence({"prefactor": limit}, {"prefactor": missing}, curves=curves)


claim(
    "gaussian/C04",
    UNIFIED,
    "mean-square error of the softmax field (derived)",
    "For Gaussian tokens with θ = |Σ^½AΣ^½| < 1/√2, n E|Γₙ − Γ|² → det(I − 2ΣW)^{−½}[tr VΣVᵀ + "
    "tr VΣA(Σ⁻¹ − 2W)⁻¹AᵀΣVᵀ], W = AᵀΣA; for larger θ it is infinite.",
    models=("sa",),
    quick={
        "A": R.A,
        "V": R.V,
        "covariance": R.COVARIANCE,
        "scale": 0.8,
        "sizes": [200, 1000],
        "runs": 600,
        "order": 16,
        "seed": 0,
    },
    full={"sizes": [200, 2000], "runs": 2000, "order": 24},
    within={"prefactor": standard_errors(4.0, "contexts are independent; beside it what queries too far for n leave")},
    simulate=simulate_prefactor,
    predict=predict_prefactor,
    axes=Axes("tokens n", "n · E|Γₙ − Γ|²", x_scale="log"),
)


# --- C05


def simulate_exponent(s: Any) -> Evidence:
    """Slopes of ln MSE against ln n, unit Gaussian tokens on a line."""
    queries, one, slopes, curves = trapezoid([0.0], [[1.0]], 0.1), np.eye(1), {}, []
    if len(s.strengths) != 3:
        raise ArgumentError(f"Setting `strengths` must hold three numbers θ, but has {len(s.strengths)}.")
    for name, strength in zip(("weak", "critical", "strong"), s.strengths, strict=True):
        counts = [max(s.least, int(s.draws / n)) for n in s.sizes]
        pairs = zip(s.sizes, counts, strict=True)
        errors = [float(_square_errors(strength * one, one, one, queries, n, r, s.seed).mean()) for n, r in pairs]
        slopes[name] = -float(np.polyfit(np.log(s.sizes), np.log(errors), 1)[0])
        curves.append(Curve(f"θ = {strength:g}", s.sizes, errors))
    return Evidence(slopes, curves=tuple(curves))


def predict_exponent(s: Any) -> Evidence:
    """1 up to θ = 1/√2, √(1/θ² + 1/4) - 1/2 beyond."""
    rates = rate_exponent(s.strengths)
    curves = tuple(Curve(f"n^−{p:.3f}", s.sizes, (np.asarray(s.sizes) / s.sizes[0]) ** -p) for p in rates)
    return Evidence(dict(zip(("weak", "critical", "strong"), rates, strict=True)), curves=curves)


claim(
    "gaussian/C05",
    UNIFIED,
    "the rate of the field error depends on θ (derived, leading order)",
    "On a line E|Γₙ − Γ|² ~ n^{−p} with p = 1 for θ ≤ 1/√2 and p = √(1/θ² + 1/4) − 1/2 beyond, up to logarithms.",
    models=("sa",),
    quick={"strengths": [0.5, 1.0, 2.0], "sizes": [100, 1000, 10000], "draws": 400_000, "least": 20, "seed": 0},
    full={"sizes": [100, 1000, 10_000, 100_000], "draws": 4_000_000},
    within={
        "weak": absolute(0.12, "sampling of a heavy-tailed square, 400 000 tokens a size"),
        "critical": absolute(0.15, "logarithms of n and sampling"),
        "strong": absolute(0.25, "logarithms of n are large here: the law is that of the leading order"),
    },
    simulate=simulate_exponent,
    predict=predict_exponent,
    axes=Axes("tokens n", "E|Γₙ − Γ|²", x_scale="log", y_scale="log"),
)


# --- C25


def simulate_entropy(s: Any) -> Evidence:
    """Mean over tokens and runs of ln n - H(P_i)."""
    mean, cov = np.asarray(s.mean), np.asarray(s.covariance)
    model = SelfAttention(1.0, weights=Fixed(np.eye(len(mean)), np.asarray(s.A)), space="euclidean")
    rng = np.random.default_rng(s.seed)
    look = jax.jit(lambda x: _deficit(model.attention_matrix(x, jnp.zeros(()))))
    draws = rng.standard_normal((s.runs, s.n, len(mean))) @ R.root_of(cov) + mean
    found, half = (np.array([float(look(jnp.asarray(x[:n]))) for x in draws]) for n in (s.n, s.n // 2))
    # an error of order 1/n is as large as what n/2 tokens change
    error = np.hypot(found.std(ddof=1) / np.sqrt(s.runs), found.mean() - half.mean())
    return Evidence({"deficit": found.mean()}, {"deficit": error}, curves=(Curve("runs", np.arange(s.runs), found),))


def _deficit(weights: Any) -> Any:
    entropy = -jnp.sum(jnp.where(weights > 0, weights * jnp.log(weights), 0.0), axis=1)
    return jnp.mean(jnp.log(weights.shape[1]) - entropy)


def predict_entropy(s: Any) -> Evidence:
    """½[tr AᵀΣAΣ + αᵀAᵀΣAα]."""
    limit = entropy_deficit(s.A, s.mean, s.covariance)
    return Evidence({"deficit": limit}, curves=(Curve("n → ∞", np.arange(s.runs), limit * np.ones(s.runs)),))


claim(
    "gaussian/C25",
    UNIFIED,
    "entropy of attention on a Gaussian cloud (derived)",
    "The mean of ln n − H(P_i) tends to ½[tr AᵀΣAΣ + αᵀAᵀΣAα]: how far attention is from uniform, in nats.",
    models=("sa",),
    quick={"A": R.A, "mean": R.MEAN, "covariance": R.COVARIANCE, "n": 500, "runs": 60, "seed": 0},
    full={"n": 2000, "runs": 120},
    within={"deficit": standard_errors(3.0, "of the runs, and the change from n/2 to n for the bias O(1/n)")},
    simulate=simulate_entropy,
    predict=predict_entropy,
    axes=Axes("run", "ln n − H"),
)
