"""Gradients through random attention: three paths, through values, queries and keys (derived).

With W_O and W_V averaged, gradients of logits are δl_ik = π_ik δz_i·(v_k − z_i), and to leading order in the width

    Γ = a (V + Q + K),   V = E[ΠᵀΓ'Π],   Q_ij = b² Γ'_ij T_ij,
    K_kl = b² Σ_ij Γ'_ij Y_ij E[π_ik π_jl ⟨x_k−x̄_i, x_l−x̄_j⟩],
    T_ij = E Σ_kl π_ik π_jl ⟨x_k−x̄_i, x_l−x̄_j⟩ Y_kl,

Y the Gram matrix of what logits are made of. To second order in b the weights are those without logits in Q and K, and
V = WᵀΓ'W + b²[K̃ + AᵀΓ'W + WᵀΓ'A], A_ik = ½ Y_ii w_ik (η_ik − τ_i), η_ik = |y_k − ȳ_i|², τ_i = Σ_k w_ik η_ik. Where the
variance of logits within a row exceeds ``DRAWN`` heads are drawn, with the draws of the forward pass.

A cap c on logits multiplies each δl_ik by sech²(z_ik/c), so capped heads are always drawn.

T is quadratic in X and products of tokens fluctuate: T_ij += u_i u_j/D, u_i = tr C_i and D the directions that tokens
fill (``rank``). Without it the gradients of W_Q and W_K are too small by a tenth to a third.

Rotary positions turn queries and keys. In T of the weights, Y_kl carries cos θ(i−j−k+l), mean over frequencies θ, and
so do its fluctuations: u_i(θ) = Σ_k π_ik ⟨x_k−x̄_i, x_k⟩ e^{iθk}. (With u = tr C there, as without positions, the
gradients of W_Q and W_K of small Llama shapes come out a tenth too large.) One layer that meets its own past has
products of two depths in place of X and Y; the formulas are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pathlines.architecture.record import Architecture
from pathlines.limit.architecture.attention import AttendedGram
from pathlines.limit.architecture.sampled import DrawnHead, drawn_heads, frequencies, rotated_heads

DRAWN = 0.1
"""Variance of the logits of a row beyond which gradients of W_Q and W_K need drawn heads."""
DRAWS, LEAST_DRAWS = 32, 16
"""Heads for up to 32 tokens; more tokens average by themselves."""
_FEW = 8  # frequencies of rotary positions where there are many tokens, and of each drawn head
_MANY = 128


class AttentionPaths(NamedTuple):
    """V, Q and K per unit of a (stacks as Γ' was), S = E[ΠXΠᵀ], and T dressed; ``turned`` is T of the weights.

    Q, K and T are per unit of b².
    """

    value: np.ndarray
    query: np.ndarray
    key: np.ndarray
    heard: np.ndarray
    pairs: np.ndarray
    turned: np.ndarray


class Products(NamedTuple):
    """X and Y of the branch's input, and their diagonals at both ends (one layer at two depths)."""

    x: np.ndarray
    y: np.ndarray

    def contrasts(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """x̄_i·x_k, x_k·x̄_j and x̄_i·x̄_j of centred X: nothing that follows sees its mean."""
        centred = centred_gram(self.x)
        return w @ centred, centred @ w.T, w @ centred @ w.T


def centred_gram(x: np.ndarray) -> np.ndarray:
    """Row and column means taken off: contrasts keep their digits down to 1−ρ of 10⁻¹⁵."""
    return x - x.mean(axis=0) - x.mean(axis=1, keepdims=True) + x.mean()


def score_products(architecture: Architecture, x: np.ndarray) -> np.ndarray:
    """Y: X, or its cosines where queries and keys have norms of their own."""
    if not architecture.qk_norm:
        return x
    root = np.sqrt(np.diag(x))
    return x / (root[:, None] * root)


def attention_back(
    attended: AttendedGram, x: np.ndarray, gradients: np.ndarray, directions: float, seed: int | None = None
) -> AttentionPaths:
    """All paths for a stack of Γ' at a branch input of Gram matrix X; ``seed`` draws heads, None expands.

    Cost: 20 products of n × n matrices, or 30 for each head that is drawn; rotary positions some p/2 more.
    """
    a = attended.architecture
    products = Products(x, score_products(a, x))
    weights = [np.broadcast_to(w, x.shape) for w in attended.weights]
    if seed is None:
        parts = [_expanded(a, products, w, gradients, attended.b, directions) for w in weights]
    else:
        root = _centred_root(x)
        heads = enumerate(_heads(attended, x, seed))
        parts = [_drawn(a, products, head, gradients, directions, root, k // 2) for k, head in heads]
    found = AttentionPaths(*(np.mean([part[k] for part in parts], axis=0) for k in range(6)))
    return found._replace(heard=attended(x)) if seed is None else found


def cross_attention_back(
    attended: AttendedGram, cross: np.ndarray, left: np.ndarray, right: np.ndarray, gradient: np.ndarray,
    directions: float,
) -> AttentionPaths:  # fmt: skip
    """One layer at two depths whose inputs have products ``cross``, ``left`` and ``right`` their own; expanded."""
    a, b2 = attended.architecture, attended.b**2
    products = Products(cross, score_products(a, cross))
    scores, parts = Products(products.y, products.y), []
    for row in attended.weights:
        w = np.broadcast_to(row, cross.shape)
        ends = [Products(x, score_products(a, x)) for x in (left, right)]
        traces = [_traces(end, w, w) for end in ends]
        pairs = _pairs(products, w, w, products.y) + traces[0][:, None] * traces[1] / directions
        key = _key_path(products, w, w, gradient * products.y)
        one, two = (_pull(end.y, w) for end in ends)
        second = _key_path(scores, w, w, gradient * products.y) + one.T @ gradient @ w + w.T @ gradient @ two
        value = w.T @ gradient @ w + b2 * second
        parts.append(AttentionPaths(value, gradient * pairs, key, w @ cross @ w.T, pairs, pairs))
    return AttentionPaths(*(np.mean([part[k] for part in parts], axis=0) for k in range(6)))


def _heads(attended: AttendedGram, x: np.ndarray, seed: int) -> Iterator[DrawnHead]:
    draws = min(max(LEAST_DRAWS, 2 * (DRAWS * DRAWS // (2 * len(x)))), DRAWS, attended.samples)
    return drawn_heads(attended.architecture, x, attended.bias, seed, draws)


def _expanded(
    a: Architecture, products: Products, w: np.ndarray, gradients: np.ndarray, b: float, directions: float
) -> AttentionPaths:
    """To second order in b, for rows w of weights without logits."""
    x, y = products
    turn = _turned_scores(a, len(x))
    seen = y if turn is None else y * turn
    pairs = _pairs(products, w, w, centred_gram(y) if turn is None else seen)
    pairs = pairs + _dressing(_traces(products, w, w), products, directions)
    key = _key_path(products, w, w, gradients * seen)
    straight = w.T @ gradients @ w
    if b:
        scores = Products(y, y)
        pulled = _pull(y, w)
        second = pulled.T @ gradients @ w
        straight = straight + b**2 * (_key_path(scores, w, w, gradients * y) + second + np.swapaxes(second, -1, -2))
    turned = pairs if turn is None else _rotary_pairs(a, products, w, directions)
    return AttentionPaths(straight, gradients * pairs, key, w @ x @ w.T, pairs, turned)


def _drawn(
    a: Architecture,
    products: Products,
    head: DrawnHead,
    gradients: np.ndarray,
    directions: float,
    root: np.ndarray,
    number: int,
) -> AttentionPaths:
    """Given one head: its own queries and keys in place of Y, and the slopes of its capped logits."""
    x, w, query, key = products.x, head.weights, head.query, head.key
    paid, p = w * head.slope, query.shape[1]
    angles, seen = frequencies(a), products.contrasts(w)
    if len(angles):
        pairs = _turned_back(root, w, paid, *_some_turned(key, angles, number)) / p
        pairs = pairs + _rotary_dressing(a, products, w, paid, directions)
    else:
        traces = _traces(products, w, paid)
        pairs = _pairs(products, w, paid, key @ key.T / p, seen) + _dressing(traces, products, directions)
    through = _key_path(products, w, paid, gradients * (query @ query.T / p), seen)
    return AttentionPaths(w.T @ gradients @ w, gradients * pairs, through, w @ x @ w.T, pairs, pairs)


Contrasts = tuple[np.ndarray, np.ndarray, np.ndarray]


def _pairs(
    products: Products, w: np.ndarray, paid: np.ndarray, y: np.ndarray, seen: Contrasts | None = None
) -> np.ndarray:
    """Σ_kl p_ik p_jl ⟨x_k−x̄_i, x_l−x̄_j⟩ y_kl for any y; p is w times the slopes of capped logits."""
    left, right, both = seen or products.contrasts(w)
    centred = centred_gram(products.x)
    rows, columns = paid @ y, y @ paid.T
    sides = paid @ (right * columns) + (left * rows) @ paid.T
    return paid @ (centred * y) @ paid.T - sides + both * (rows @ paid.T)


def _key_path(
    products: Products, w: np.ndarray, paid: np.ndarray, paired: np.ndarray, seen: Contrasts | None = None
) -> np.ndarray:
    """Σ_ij B_ij p_ik p_jl ⟨x_k−x̄_i, x_l−x̄_j⟩ for a stack of B = Γ'∘Y."""
    left, right, both = seen or products.contrasts(w)
    inner = paid.T @ paired
    direct = (inner @ paid) * centred_gram(products.x)
    first = (right * inner) @ paid  # x_k·x̄_j
    second = paid.T @ (left * (paired @ paid))  # x̄_i·x_l
    return direct - first - second + paid.T @ (paired * both) @ paid


def _own(products: Products, w: np.ndarray) -> np.ndarray:
    """⟨x_k−x̄_i, x_k⟩."""
    centred = centred_gram(products.x)
    return np.diag(centred) - w @ centred


def _traces(products: Products, w: np.ndarray, paid: np.ndarray) -> np.ndarray:
    """tr C_i."""
    return np.sum(paid * _own(products, w), axis=1)


def _dressing(traces: np.ndarray, products: Products, directions: float) -> np.ndarray:
    """Products of tokens fluctuate, and with them those of scores: per unit of Y/X."""
    ratio = float(np.trace(products.y) / np.trace(products.x))
    return ratio * traces[:, None] * traces / directions


def _pull(y: np.ndarray, w: np.ndarray) -> np.ndarray:
    """A: how the mean weights move with the logits, per b²."""
    centred = centred_gram(y)
    far = np.diag(centred) - 2 * (w @ centred)
    return 0.5 * np.diag(y)[:, None] * w * (far - np.sum(w * far, axis=1, keepdims=True))


def _turned_scores(a: Architecture, n: int) -> np.ndarray | None:
    """c(k−l)."""
    angles = frequencies(a)
    if not len(angles):
        return None
    distance = np.arange(n)[:, None] - np.arange(n)
    still = a.head_dim - 2 * len(angles)
    return (2 * np.sum(np.cos(distance[..., None] * angles), axis=-1) + still) / a.head_dim


def _used(a: Architecture, n: int) -> list[tuple[float, float]]:
    """(frequency, weight); a few at geometric quantiles where there are many tokens, 0 for what is not turned."""
    angles = frequencies(a)
    share = 2 * len(angles) / a.head_dim
    if n > _MANY and len(angles) > _FEW:
        angles = angles[((np.arange(_FEW) + 0.5) * len(angles) / _FEW).astype(int)]
    still = [(0.0, 1 - share)] if share < 1 else []
    return [(float(angle), share / len(angles)) for angle in angles] + still


def _rotary_pairs(a: Architecture, products: Products, w: np.ndarray, directions: float) -> np.ndarray:
    """T of W_Q and W_K: Y_kl cos θ(i−j−k+l)."""
    positions = np.arange(len(w))
    total = np.zeros_like(products.x)
    for angle, share in _used(a, len(w)):
        turn = np.exp(1j * angle * positions)
        found = _pairs(products, w, w, products.y * (turn.conj()[:, None] * turn))
        total += share * np.real(turn[:, None] * turn.conj() * found)
    return total + _rotary_dressing(a, products, w, w, directions)


def _rotary_dressing(
    a: Architecture, products: Products, w: np.ndarray, paid: np.ndarray, directions: float
) -> np.ndarray:
    """u_i(θ) ū_j(θ) e^{iθ(i−j)}/D."""
    own = paid * _own(products, w)
    ratio = float(np.trace(products.y) / np.trace(products.x)) / directions
    angles, shares = np.array(_used(a, len(w))).T
    turn = np.exp(1j * np.arange(len(w))[:, None] * angles)
    u = turn * (own @ turn.conj()) * np.sqrt(ratio * shares)
    return np.asarray(u.real @ u.real.T + u.imag @ u.imag.T)


def _centred_root(x: np.ndarray) -> np.ndarray:
    """L with centred X = LLᵀ, without columns of rounding."""
    values, vectors = np.linalg.eigh(centred_gram(x))
    kept = values > 1e-15 * max(float(values[-1]), 0.0)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0)))[:, kept])


def _some_turned(key: np.ndarray, angles: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Keys at every k-th frequency, for others at the next head, times √k; coordinates that do not turn stay."""
    half, step = len(angles), max(1, len(angles) // _FEW)
    chosen = np.arange(number % step, half, step)
    share = np.sqrt(half / len(chosen))
    return np.concatenate([share * key[:, chosen], share * key[:, half + chosen], key[:, 2 * half :]], axis=1), angles[
        chosen
    ]


def _turned_back(root: np.ndarray, w: np.ndarray, paid: np.ndarray, key: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """p times T of one head whose keys are turned: Σ_k p_ik (x_k−x̄_i) ⊗ R_{-i} k_k, multiplied pairwise."""
    n, p = key.shape
    joint = (root[:, :, None] * key[:, None, :]).reshape(n, -1)
    spread = (paid @ joint).reshape(n, -1, p)
    spread -= (w @ root)[:, :, None] * (paid @ key)[:, None, :]
    turn = -np.arange(n)[:, None, None] * angles
    flat = rotated_heads(spread, np.cos(turn), np.sin(turn)).reshape(n, -1)
    return np.asarray(flat @ flat.T)
