"""How strongly the last position of a random transformer depends on every other: paths through random weights.

J_i = ∂h_N/∂h_i, from the stream before the first layer to that after the last, is a sum over paths: a layer is passed
on the skip, through attention (to another position) or through the perceptron. Weights are independent between layers
and have mean zero, so products of different sets of layers are uncorrelated, while paths through the same layers share
their matrices and add up. With equal steps a, no perceptron and lengths that stay the same (derived),

    E‖J_i‖²_F/d = Σ_k C(L,k) a^k ([P^k]_Ni)²:

squares of hops, not the square of N[(I + xP/L)^L] or of a rollout (``limit.causal.rivals``). In general the products
D_jk = E⟨δh_j, δh_k⟩ of a small random change obey the linearised Gram map

    attention    D ← α²D + a E[ΠD̃Πᵀ] + a b² (X ∘ cov(D̃) + D̃ ∘ cov(X)),    D̃_jk = g² D_jk/(r_j r_k)
    perceptron   D ← α²D + a_m κ'(X) ∘ D̃

with r_j the lengths of the stream (followed by ``LayerMap``), X the Gram matrix of the branch's input, cov(Y)_ij =
Σ_kl w_ik w_jl Y_kl (x_k-x̄_i)·(x_l-x̄_j) for the change of logits through keys and queries, and E[Π·Πᵀ] to second order
in the logit scale b (``limit.architecture.attention``). a/r² is the step weight, what attention adds to the stream. One
sweep of the adjoint from (N, N) down gives every source at once: O(n³) per layer. Left out: O(1/d), b⁴ and rotary
positions, which enter at order b². The map of means is that of Homogenized Transformers, arXiv:2604.01978.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev

from pathlines.architecture.read import Source, architecture_of
from pathlines.foundation.errors import ArgumentError, positive_integer, require
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.limit.architecture.attention import TRUSTED, AttendedGram
from pathlines.limit.architecture.branch import Stream, added, stream_of
from pathlines.limit.architecture.layer import LayerMap
from pathlines.limit.architecture.layers import layer_maps
from pathlines.limit.architecture.perceptron import SILU, perceptron_gram
from pathlines.limit.architecture.start import Tokens, start_gram, usual_tokens
from pathlines.limit.homogenized.perceptron_kernel import perceptron_kernel, perceptron_slope

SOURCES = (HOMOGENIZED,)
_SMALL = 1e-6


@dataclass(frozen=True)
class Influence:
    """``squared``: E‖∂h_N/∂h_i‖²_F/d for every position i.

    ``branches``: k_i, how many branches the derivative passes, in the mean of squares; finite width adds about k_i²/2d
    to the influence. ``shares``: of each layer, what attention adds to the stream's power over what there is then, mean
    over tokens. ``logit_std``: the largest standard deviation of logits within a row; ``trusted``: whether terms in its
    fourth power are small everywhere.
    """

    squared: np.ndarray
    branches: np.ndarray
    shares: np.ndarray
    logit_std: float
    trusted: bool


def position_influence(
    architecture: Source, tokens: Tokens | None = None, *, windows: Sequence[int] | None = None
) -> Influence:
    """The mean squared influence of every position on the last one, of a random transformer before training.

    Args:
        architecture: a config.json, TOML file or folder, the fields of a configuration, six numbers, or the record.
        tokens: token ids, or how many different tokens; 64 (or the context) by default.
        windows: of each layer, how many tokens back are seen (0: all); that of the architecture by default.

    You will see one large value, the last position's own; a floor for all positions in the middle; a rise towards the
    first one. There is no gradual recency where attention is uniform. Good values: b = ``logit_std`` below 0.5.
    """
    a = architecture_of(architecture)
    if a.shared:
        raise ArgumentError("Argument `architecture` must have independent layers: a shared one adds up with itself.")
    ids = usual_tokens(a) if tokens is None else tokens
    if windows is not None:
        seen = [positive_integer("windows", w, least=0) for w in windows]
        require(len(seen) == a.layers, "windows", f"have one number for each of {a.layers} layers", windows)
        a = a.changed(by_layer={**a.by_layer, "window": seen})
    start = start_gram(a, ids)
    steps = _followed(layer_maps(a, len(start), a.layers), stream_of(start))
    squared, more = _swept(steps, 1.0), _swept(steps, 1.0 + _SMALL)
    branches = (more / np.maximum(squared, np.finfo(float).tiny) - 1) / _SMALL
    largest = max(float(np.max(s.layer.attended.logit_variance(s.x))) for s in steps)
    shares = np.array([s.share for s in steps if s.kind != "perceptron"])
    return Influence(squared, branches, shares, float(np.sqrt(largest)), largest**2 / 2 <= TRUSTED)


class _Step:
    """One branch at the stream it meets, and its adjoint."""

    def __init__(self, layer: LayerMap[AttendedGram], kind: str, stream: Stream) -> None:
        a = layer.architecture
        self.layer, self.kind, self.x = layer, kind, layer.input(stream)
        branch = layer.branch(kind, stream).gram
        after = added(stream, branch, a.skip)
        self.after = layer.settled(after)
        self.share = float(np.mean(np.diag(branch) / after.powers))
        post = a.placement == "post"
        bare = a.placement in ("post", "output")
        self.inward = np.ones(len(branch)) if bare else a.norm_gain / np.sqrt(stream.powers + a.norm_epsilon)
        self.onward = a.norm_gain / np.sqrt(after.powers + a.norm_epsilon) if post else np.ones(len(branch))

    def back(self, weight: np.ndarray, power: float) -> np.ndarray:
        """The adjoint of D ↦ the products after the branch, which is taken ``power`` times."""
        weight = _scaled(self.onward, weight)
        total = self.layer.architecture.skip**2 * weight
        for kind in ("attention", "perceptron") if self.kind == "parallel" else (self.kind,):
            inner = (self._attention if kind == "attention" else self._perceptron)(weight)
            total = total + power * _scaled(self.inward, inner)
        return total

    def _attention(self, weight: np.ndarray) -> np.ndarray:
        layer, attended = self.layer, self.layer.attended
        raw = layer.numbers.attention * attended(self.x)
        weight = _scaled(self._outward(raw, layer.architecture.attention_residual), weight)
        rows = [np.broadcast_to(w, weight.shape) for w in attended.weights]
        return layer.numbers.attention * np.mean([_heard(weight, self.x, w, attended.b) for w in rows], axis=0)

    def _perceptron(self, weight: np.ndarray) -> np.ndarray:
        a, power = self.layer.architecture, self.layer.numbers.perceptron
        raw = power * perceptron_gram(a, self.x).gram
        return power * _slopes(self.layer, self.x) * _scaled(self._outward(raw, a.mlp_residual), weight)

    def _outward(self, raw: np.ndarray, residual: float) -> np.ndarray:
        """What the norm of a branch (sandwich, output) divides by."""
        a = self.layer.architecture
        own = np.diag(raw)
        if a.placement not in ("sandwich", "output") or not residual or not np.all(own > 0):
            return np.ones(len(own))
        return a.norm_gain / np.sqrt(own / residual**2 + a.norm_epsilon)


def _followed(layers: Sequence[LayerMap[AttendedGram]], stream: Stream) -> list[_Step]:
    steps = []
    for layer in layers:
        for kind in layer.kinds:
            steps.append(_Step(layer, kind, stream))
            stream = steps[-1].after
    return steps


def _swept(steps: Sequence[_Step], power: float) -> np.ndarray:
    """The adjoint from (N, N) down, all branches taken ``power`` times; its diagonal."""
    weight = np.zeros_like(steps[0].x)
    weight[-1, -1] = 1.0
    for step in reversed(steps):
        weight = step.back(weight, power)
    return np.diag(weight).copy()


def _scaled(factor: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    return factor[:, None] * matrix * factor


def _heard(weight: np.ndarray, x: np.ndarray, w: np.ndarray, b: float) -> np.ndarray:
    """The adjoint of D ↦ E[ΠDΠᵀ] + b²(X ∘ cov(D) + D ∘ cov(X)) for rows w of weights without logits.

    E[ΠDΠᵀ] = wDwᵀ + b²(X ∘ cov(D) + GDwᵀ + wDGᵀ), G_ik = ½X_ii w_ik(|x_k-x̄_i|² - mean).
    """
    direct = w.T @ weight @ w
    if b == 0:
        return direct
    mean, both = w @ x, w @ x @ w.T
    own = w @ (x * x) @ w.T - (mean * mean) @ w.T - w @ (mean.T * mean.T) + both * both
    shown = weight * x
    covered = x * (w.T @ shown @ w) - w.T @ (mean * (shown @ w)) - ((w.T @ shown) * mean.T) @ w
    covered = covered + w.T @ (shown * both) @ w
    far = w * (np.diag(x) - 2 * mean)
    pulled = 0.5 * np.diag(x)[:, None] * (far - w * far.sum(axis=1, keepdims=True))
    turned = pulled.T @ weight @ w
    return direct + b * b * (2 * covered + weight * own + turned + turned.T)


def _slopes(layer: LayerMap[AttendedGram], x: np.ndarray) -> np.ndarray:
    """κ'(X): products of the perceptron's derivative at two tokens, for a change common to both.

    Plain σ_w² E φ'φ'; gated, of φ(g)u: σ_g² E φ'φ' σ_w² X_jk + σ_w² E φφ.
    """
    a, numbers = layer.architecture, layer.numbers
    own = np.diag(x)
    rho = np.clip(x / np.sqrt(own[:, None] * own), -1.0, 1.0)
    size = float(np.sqrt(np.mean(own)))
    inner = numbers.sigma_gate if a.gated else numbers.sigma_w
    if inner == 0:
        return np.zeros_like(x)
    sigma = float(f"{inner * size:.3g}")
    slope = inner**2 * chebyshev.chebval(rho, _table(a.activation, sigma, True)) / sigma**2
    if not a.gated:
        return slope
    return numbers.sigma_w**2 * (x * slope + chebyshev.chebval(rho, _table(a.activation, sigma, False)))


@lru_cache(maxsize=512)
def _table(activation: str, sigma: float, slope: bool) -> np.ndarray:
    """Chebyshev coefficients of κ' or κ in the cosine."""
    kind = SILU if activation == "silu" else activation
    function = perceptron_slope if slope else perceptron_kernel
    return chebyshev.chebinterpolate(lambda rho: function(rho, kind, sigma), 32)
