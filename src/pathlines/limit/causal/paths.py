"""Finite prompts in linear theory: the influence of a token is a sum over paths of attention.

For a strictly lower triangular row-stochastic mask P (row 1 zero) and rate a, dropping third cumulants (derived from
Kinetic theory for Transformers and the lost-in-the-middle phenomenon, arXiv:2605.09213),

    N E cos n(θ_j(t) - θ_i(0)) ≈ N [e^{xP}]_ji,   x = a_n t;   L Euler layers: N [(I + xP/L)^L]_ji:

k hops of attention count with the product of their positional weights times x^k/k! (or C(L,k)(x/L)^k). Two other
theories of position bias are the same sum with other weights of a hop: depth as powers of the mask (Lost in the middle
at birth, arXiv:2603.10123) and residual-aware rollout (A structural theory of position bias, arXiv:2602.16837), both
N[(αI + (1-α)P)^L]; ``rivals`` has their closed forms. All terms are positive, so sums are accurate to rounding. O(N²)
per hop, O(N) for ALiBi.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import signal, special
from scipy.stats import binom

from pathlines.foundation.errors import finite_number, positive_integer
from pathlines.foundation.numbers import checked_mask

Row = Callable[[np.ndarray], np.ndarray]
LARGEST = 100.0
"""x beyond it: linear theory is meaningless long before (corrections are e^{2x}/N)."""


def alibi_matrix(n: int, slope: float) -> np.ndarray:
    """P of the ALiBi mask: p_jk = e^{-λ(j-k)/N}/Z_j for k < j. Dense, N × N."""
    n, slope = positive_integer("n", n, 2), finite_number("slope", slope)
    apart = np.subtract.outer(np.arange(n), np.arange(n)) / n
    weights = np.where(apart > 0, np.exp(-slope * apart), 0.0)
    return weights / np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(float).tiny)


def _times_mask(mask: Any, own: bool = False) -> tuple[Row, int]:
    """r -> r P, and N; ``mask`` is a matrix or the pair (N, λ) of an ALiBi mask, which takes O(N).

    A token does not pull itself, so that the diagonal of a mask counts as a hop only where ``own`` is said.
    """
    if isinstance(mask, tuple):
        n, slope = positive_integer("n", mask[0], 2), finite_number("slope", mask[1])
        decay = np.exp(-slope / n)
        # Z_{j+1} = e^{-λ/N}(Z_j + 1), Z_1 = 0
        norms = signal.lfilter([0.0, decay], [1.0, -decay], np.ones(n))
        with np.errstate(divide="ignore"):
            inverse = np.where(norms > 0, 1 / norms, 0.0)
        # (rP)_k = Σ_{j>k} e^{-λ(j-k)/N} r_j/Z_j, a recursion from the end
        return lambda r: signal.lfilter([0.0, decay], [1.0, -decay], (r * inverse)[::-1])[::-1], n
    matrix = checked_mask(mask)
    if not own:
        matrix = matrix - np.diag(np.diag(matrix))
    return lambda r: r @ matrix, len(matrix)


def hop_rows(mask: Any, hops: int, row: Any = None, *, own: bool = False) -> np.ndarray:
    """r P^k for k = 0 … hops; ``row`` r is that of the last token by default. Shape (hops + 1, N)."""
    times, n = _times_mask(mask, own)
    r = np.zeros(n) if row is None else np.asarray(row, float)
    if row is None:
        r[-1] = 1.0
    rows = [r]
    for _ in range(positive_integer("hops", hops, 0)):
        rows.append(times(rows[-1]))
    return np.stack(rows)


def hops_needed(x: float) -> int:
    """Hops after which x^k/k! is below rounding."""
    x = finite_number("x", x, 0.0, LARGEST)
    return int(np.ceil(x + 12 * np.sqrt(x + 1) + 20))


def hop_weights(x: float, hops: int, layers: int | None = None) -> np.ndarray:
    """x^k/k!, or C(L,k)(x/L)^k for L Euler layers; k = 0 … hops."""
    k = np.arange(hops + 1)
    if layers is None:
        return np.exp(k * np.log(x) - special.gammaln(k + 1)) if x > 0 else (k == 0).astype(float)
    count = positive_integer("layers", layers)
    return _binomial(count, k) * (x / count) ** k


def _binomial(count: int, k: np.ndarray) -> np.ndarray:
    """C(count, k); zero for k > count."""
    inside = np.minimum(k, count)
    logs = special.gammaln(count + 1) - special.gammaln(inside + 1) - special.gammaln(count - inside + 1)
    return np.where(k <= count, np.exp(np.minimum(logs, 700.0)), 0.0)


def _hops(x: float, layers: int | None) -> int:
    """Hops that count: at most one per layer, and no more than rounding shows."""
    return hops_needed(x) if layers is None else min(positive_integer("layers", layers), hops_needed(x))


def path_influence(mask: Any, x: float, *, layers: int | None = None, row: Any = None) -> np.ndarray:
    """N [e^{xP}]_{N·} (or that of L Euler layers): the influence of every token on the last; its own entry is N."""
    hops = _hops(x, layers)
    rows = hop_rows(mask, hops, row)
    return rows.shape[1] * (hop_weights(x, hops, layers) @ rows)


def hop_contributions(mask: Any, x: float, hops: int) -> np.ndarray:
    """N x^k/k! [P^k]_{N·} for k = 0 … hops: what paths of k hops add. Shape (hops + 1, N)."""
    rows = hop_rows(mask, hops)
    return rows.shape[1] * hop_weights(x, hops)[:, None] * rows


def path_profile(mask: Any, weights: ArrayLike, rates: ArrayLike, t: float, *, layers: int | None = None) -> np.ndarray:
    """Σ_n w_n N[e^{a_n t P}]_{Ni}: the retrieval profile at finite N for any mask. One set of hops serves all modes."""
    x = np.asarray(rates, float) * finite_number("t", t, 0.0)
    hops = _hops(float(x.max()), layers)
    rows = hop_rows(mask, hops)
    total = sum(w * hop_weights(float(v), hops, layers) for w, v in zip(np.asarray(weights, float), x, strict=True))
    return np.asarray(rows.shape[1] * (total @ rows))


def rollout(mask: Any, skip: float, layers: int) -> np.ndarray:
    """N [(αI + (1-α)P)^L]_{N·} with α = ``skip``: attention rollout (α = 0: powers of the mask)."""
    alpha = finite_number("skip", skip, 0.0, 1.0)
    count = positive_integer("layers", layers)
    k = np.arange(count + 1)
    rows = hop_rows(mask, count, own=True)
    return rows.shape[1] * (binom.pmf(k, count, 1 - alpha) @ rows)


def random_weight_influence(mask: Any, step: float, layers: int) -> np.ndarray:
    """Σ_k C(L,k) a^k ([P^k]_Ni)² with a = ``step``: E‖∂h_N/∂h_i‖²_F/d of L layers h ← h + √a W_l P h (derived).

    Independent normal W_l of variance 1/d make products of different sets of layers uncorrelated: hops add by squares.
    """
    count, a = positive_integer("layers", layers), finite_number("step", step, 0.0)
    return hop_weights(a * count, count, count) @ hop_rows(mask, count, own=True) ** 2


def order_fluctuation(mask: Any, x: float) -> float:
    """N E|N⁻¹ Σ_j e^{inθ_j(t)}|² ≈ |1ᵀe^{xP}|²/N; e^{2x} I_0(2x) as N → ∞ for λ = 0, e^{2x} without a mask."""
    _, n = _times_mask(mask)
    columns = path_influence(mask, x, row=np.ones(n)) / n
    return float(columns @ columns / n)


def causal_fluctuation(x: float) -> float:
    """e^{2x} I_0(2x), the limit for λ = 0 (derived)."""
    return float(np.exp(4 * x) * special.ive(0, 2 * x))
