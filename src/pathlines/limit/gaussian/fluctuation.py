"""How far n tokens stray from their mean-field copies: the linear response of softmax attention to sampling (derived).

Drive copies x̄_i of the same starts by the exact mean field of the law μ. To first order in n^{-1/2} a token strays by
x_i - x̄_i = n^{-1} Σ_j R_t(i, j), and R solves, along the mean field,

    R'(x, y) = DΓ(x)R(x, y) + V ∫κ(x,z)[I + (z - m(x))(Ax)ᵀ]R(z, y)dμ(z) + V κ(x,y)(y - m(x)),   R_0 = 0,

κ = e^{Ax·y}/Z(x), m(x) = ∫yκdμ, DΓ = V Cov_κ A. Hence n E C_n² → ∬|R(x,y)|²dμdμ, finite while θ < 1/√2 for Gaussian
laws. The next term has the third moment E e^{3h·y}/Z³ = e^{3hᵀΣh} over n², h = Ax: averaged over queries it is O(1/n)
of the first for θ < 1/√6. From there on single tokens of weight one decide, P(e^{h·y} ≥ nZ) at the worst query, and it
is n^{-(p-1)}, p = √(1/θ² + 1/4) - 1/2. The variance of nC_n² from run to run has the same border, E e^{4θ²y²/(1+2θ²)}.
In masked attention token i sees i samples; with L = ln(i/j) the same argument gives R(L) = Σ_k R_k L^k/k!,
R_k' = DΓR_k + K R_{k-1} (K the integral above), R_0' = DΓR_0 + Vκ(y - m), and
i E|x_i - x̄_i|² → Σ_{kq} binom(k+q, k)⟨R_k, R_q⟩: every prefix passes its error on, as in a Hardy average.

The law is given by quadrature nodes and masses, of any kind; A Unified Perspective, arXiv:2501.18322, for the system.
"""

from __future__ import annotations

from math import comb
from typing import Any, NamedTuple

import numpy as np

from pathlines.foundation.errors import finite_array, finite_number, positive_integer
from pathlines.foundation.papers import UNIFIED
from pathlines.limit.gaussian.matrices import checked_covariance, root, square
from pathlines.numerics.runge_kutta import rk4_step

SOURCES = (UNIFIED,)
TAME = 1 / np.sqrt(6)
"""θ below which √n C_n of Gaussian tokens is within O(1/n) of its limit."""
HALVED = 1 / np.sqrt(12)
"""θ below which half the tokens show that remainder: the term after it has the fourth moment, e^{6hᵀΣh}."""


class Response(NamedTuple):
    """Nodes at the end (m, d), and R_k(node, component, source) for k = 0 … (one R without a mask)."""

    nodes: np.ndarray
    kernels: np.ndarray


def response(A: Any, V: Any, nodes: Any, masses: Any, until: float, steps: int = 20, orders: int = 0) -> Response:
    """R at time ``until`` by RK4; ``orders`` > 0 keeps that many terms of the masked series. Cost O(m³d²) per stage."""
    score = square("A", A)
    value, x = square("V", V, len(score)), finite_array("nodes", nodes, ("m", len(score))).astype(float)
    w = finite_array("masses", masses, (len(x),)).astype(float)
    h = finite_number("until", until, 0.0, open_low=True) / positive_integer("steps", steps)
    R = np.zeros((max(1, orders), x.size, len(x)))

    def rate(x: np.ndarray, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        field, own, pull, noise = _linearised(score, value, x, w)
        fed = np.concatenate([np.zeros_like(R[:1]), R[:-1]]) if orders else R
        moved = np.einsum("iab,kibs->kias", own, R.reshape(len(R), *x.shape, -1)).reshape(R.shape) + pull @ fed
        moved[0] += noise
        return field, moved

    for _ in range(steps):
        x, R = rk4_step(rate, (x, R), h)
    return Response(x, R.reshape(len(R), *x.shape, len(x)))


def _linearised(
    score: np.ndarray, value: np.ndarray, x: np.ndarray, w: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(Γ, DΓ, K as an (md, md) matrix, noise as (md, m)) at the nodes."""
    m, d = x.shape
    asked = x @ score.T
    scores = asked @ x.T
    kappa = np.exp(scores - scores.max(axis=1, keepdims=True))
    kappa /= (kappa @ w)[:, None]
    P = kappa * w
    mean = P @ x
    away = x[None] - mean[:, None]
    spread = np.einsum("ij,ija,ijb->iab", P, away, away)
    own = value @ spread @ score
    inner = np.eye(d) + away[..., :, None] * asked[:, None, None, :]
    pull = np.einsum("ac,ij,ijcb->iajb", value, P, inner, optimize=True).reshape(m * d, m * d)
    noise = np.einsum("ij,ija->iaj", kappa, away @ value.T).reshape(m * d, m)
    return mean @ value.T, own, pull, noise


def coupling_size(found: Response, masses: Any) -> float:
    """lim √n C_n = (∬|R|²)^{1/2}, C_n = (n^{-1} Σ_i |x_i - x̄_i|²)^{1/2}."""
    w = np.asarray(masses, float)
    return float(np.sqrt(np.einsum("i,s,ias->", w, w, found.kernels[0] ** 2)))


def masked_size(found: Response, masses: Any) -> float:
    """lim √i (E|x_i - x̄_i|²)^{1/2} under a causal mask."""
    w = np.asarray(masses, float)
    inner = np.einsum("i,s,kias,qias->kq", w, w, found.kernels, found.kernels, optimize=True)
    return float(np.sqrt(sum(comb(k + q, k) * x for (k, q), x in np.ndenumerate(inner))))


def masked_draws(
    A: Any, V: Any, cov: Any, n: int, runs: int, until: float, steps: int = 10, seed: int = 0
) -> np.ndarray:
    """|x_i - x̄_i|² (runs, n) of causal softmax tokens from N(0, Σ) by RK4: sampled, for any θ.

    Copies follow the mean field of the cloud itself, x̄' = VΣ_tAx̄ with Σ' = VΣAΣ + (·)ᵀ. Cost O(runs · n²) per stage.
    """
    score, sigma = square("A", A), checked_covariance("cov", cov)
    value, h = square("V", V, len(score)), finite_number("until", until, 0.0, open_low=True) / steps
    seen = np.tri(positive_integer("n", n), dtype=bool)

    def rate(x: np.ndarray, copy: np.ndarray, cov: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        scores = np.where(seen, x @ score.T @ x.T, -np.inf)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        push = value @ cov @ score
        moving = push @ cov
        return (weights @ x) / weights.sum(axis=1, keepdims=True) @ value.T, copy @ push.T, moving + moving.T

    def one(start: np.ndarray) -> np.ndarray:
        state: tuple[np.ndarray, ...] = (start, start, sigma)
        for _ in range(steps):
            state = rk4_step(rate, state, h)
        return np.sum((state[0] - state[1]) ** 2, axis=1)

    starts = np.random.default_rng(seed).standard_normal((positive_integer("runs", runs), n, len(sigma))) @ root(sigma)
    return np.stack([one(x) for x in starts])


def line_distance(found: Response, masses: Any) -> float:
    """lim √n E W_1(μ^n_t, μ_t) = √(2/π) ∫(Var Z(x))^{1/2}dx on a line, nodes in order.

    √n(F_n - F)(x) = n^{-1/2} Σ_j [1{y_j ≤ x} - F(x) - ρ(x)R(x, y_j)] → Z, Gaussian: fresh sampling, and tokens carried
    across x.
    """
    w, x = np.asarray(masses, float), found.nodes[:, 0]
    passed = np.tril(np.ones((len(x), len(x))), -1) + np.eye(len(x)) / 2
    width = np.gradient(x)
    Z = passed - (passed @ w)[:, None] - (w / width)[:, None] * found.kernels[0, :, 0]
    variance = Z**2 @ w + w / 4  # half of a node's own mass lies on each side of it
    return float(np.sqrt(2 / np.pi) * np.sqrt(variance) @ width)
