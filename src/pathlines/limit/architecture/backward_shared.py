"""Gradients where one layer serves every depth (ALBERT): branches meet their own past, and gradients their own future.

With y^τ = αh^τ + f^τ in front of the norms, h^{τ+1} = y^τ/r^τ, and products of the stream of all pairs of depths
(``shared``; here all are kept), gradients g_y^τ = g^{τ+1}/r^τ, g^τ = αg_y^τ + e^τ have (derived)

    Cov(e^τ, e^σ) = the branch's pass back with X^{τσ} on Cov(g_y^τ, g_y^σ), same kind of branch only,
    Cov(e^τ, g^σ) = α Cov(e^τ, g^{σ+1})/r^σ + Cov(e^τ, e^σ),  σ > τ,     Cov(e^τ, g^{2L}) = 0,
    Γ^τ = α²Γ̃^τ + α[Cov(e^τ, g_y^τ) + its transpose] + Cov(e^τ, e^τ),

and the gradient of a shared matrix is a coherent sum, σ_O²E‖∂W_O‖² = Σ_τσ ⟨Cov(g_y^τ, g_y^σ), F^{τσ}⟩: twice the sum
of squares over depth and more. Pre- and post-norm, heads expanded to second order. Cost O(L²n³), memory O(L²n²).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pathlines.architecture.read import Source, architecture_of
from pathlines.architecture.record import Architecture
from pathlines.foundation.errors import ArgumentError, positive_integer
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.limit.architecture.attention import AttendedGram
from pathlines.limit.architecture.backward_attention import cross_attention_back, score_products
from pathlines.limit.architecture.backward_start import gradient_start
from pathlines.limit.architecture.branch import stream_of
from pathlines.limit.architecture.layer import LayerMap
from pathlines.limit.architecture.perceptron import perceptron_products, perceptron_slopes
from pathlines.limit.architecture.start import Tokens, start_gram, usual_tokens

SOURCES = (HOMOGENIZED,)
Pairs = dict[tuple[int, int], np.ndarray]


class SharedGradients(NamedTuple):
    """‖g_ℓ‖ at every depth, and ‖∂W‖ of the one layer's matrices by kind."""

    stream: np.ndarray
    matrices: dict[str, float]


class _Past(NamedTuple):
    """Products of the stream at all pairs of depths, and each step's kind and factors."""

    products: Pairs
    kinds: list[str]
    enter: list[np.ndarray]
    settle: list[np.ndarray]

    def inputs(self, one: int, two: int) -> np.ndarray:
        """X^{τσ}."""
        found = self.products[max(one, two), min(one, two)]
        return self.enter[one][:, None] * (found if one >= two else found.T) * self.enter[two]


def shared_gradients(
    architecture: Source, tokens: Tokens | None = None, *, loss: str | np.ndarray = "iid", layers: int | None = None
) -> SharedGradients:
    """Gradient norms of an architecture whose layers are one.

    Args:
        architecture: a config.json, TOML file or folder, the fields of a configuration, or the record, with ``shared``.
        tokens: token ids, or how many different tokens; 64 (or the context) by default.
        loss: iid, last, first, mean, common, private, or Γ_L itself.
        layers: how many times the layer is applied, those of the architecture by default.

    You will see norms dip in the middle of the stack, where fresh layers would keep them level.
    """
    a = architecture_of(architecture)
    if not a.shared or a.placement not in ("pre", "post") or not a.mlp_width:
        raise ArgumentError("Argument `architecture` must share one layer with a perceptron, pre- or post-norm.")
    start = start_gram(a, usual_tokens(a) if tokens is None else tokens)
    maps = LayerMap(a, AttendedGram(a, len(start)))
    past = _forward(maps, start, a.layers if layers is None else positive_integer("layers", layers))
    return _backward(maps, past, loss)


def _forward(maps: LayerMap[AttendedGram], start: np.ndarray, layers: int) -> _Past:
    a, alpha = maps.architecture, maps.architecture.skip
    past = _Past({(0, 0): start}, list(maps.kinds) * layers, [], [])
    for t in range(len(past.kinds)):
        own = past.products[t, t]
        norm = np.ones(len(own)) if a.placement == "post" else a.norm_gain / np.sqrt(np.diag(own) + a.norm_epsilon)
        past.enter.append(norm)
        branches = [_branch(maps, past, t, s) for s in range(t + 1)]
        pulls = [np.zeros_like(own)]
        for s in range(t):
            pulls.append((alpha * pulls[-1] + branches[s]) * past.settle[s])
        total = alpha**2 * own + alpha * (pulls[-1] + pulls[-1].T) + branches[t]
        after = np.ones(len(own))
        if a.placement == "post":
            after = a.norm_gain / np.sqrt(np.diag(total) + a.norm_epsilon)
        past.settle.append(after)
        for s in range(t + 1):
            past.products[t + 1, s] = after[:, None] * (alpha * past.products[t, s] + pulls[s])
        past.products[t + 1, t + 1] = after[:, None] * total * after
    return past


def _branch(maps: LayerMap[AttendedGram], past: _Past, one: int, two: int) -> np.ndarray:
    """F^{τσ}; nothing between different kinds."""
    cross, left, right = past.inputs(one, two), past.inputs(one, one), past.inputs(two, two)
    if past.kinds[one] != past.kinds[two]:
        return np.zeros_like(cross)
    if past.kinds[one] == "attention":
        return maps.numbers.attention * maps.attended.between(cross, left, right)
    found = perceptron_products(maps.architecture, cross, np.diag(left), np.diag(right)).gram
    return maps.numbers.perceptron * found


def _backward(maps: LayerMap[AttendedGram], past: _Past, loss: str | np.ndarray) -> SharedGradients:
    a, alpha, end = maps.architecture, maps.architecture.skip, len(past.kinds)
    top = gradient_start(a, stream_of(past.products[end, end]), loss).gram
    gradients: Pairs = {(end, end): top}
    squares: dict[str, float] = {}
    for t in reversed(range(end)):
        pull = np.zeros_like(top)  # Cov(e^t, g^σ), σ from the top down
        gradients[t, end] = alpha * past.settle[t][:, None] * gradients[t + 1, end]
        for s in reversed(range(t + 1, end)):
            later = past.settle[t][:, None] * gradients[t + 1, s + 1] * past.settle[s]
            pull = alpha * pull * past.settle[s] + _back(maps, past, t, s, later, squares, 2.0)
            gradients[t, s] = alpha * past.settle[t][:, None] * gradients[t + 1, s] + pull
        own = past.settle[t][:, None] * gradients[t + 1, t + 1] * past.settle[t]
        met = alpha * pull * past.settle[t]
        gradients[t, t] = alpha**2 * own + met + met.T + _back(maps, past, t, t, own, squares, 1.0)
    every = len(maps.kinds)
    stream = [math.sqrt(float(np.trace(gradients[t, t]))) for t in range(0, end + 1, every)]
    return SharedGradients(np.array(stream), {name: math.sqrt(max(s, 0.0)) for name, s in squares.items()})


def _back(
    maps: LayerMap[AttendedGram], past: _Past, one: int, two: int, gradient: np.ndarray, squares: dict[str, float],
    times: float,
) -> np.ndarray:  # fmt: skip
    """Cov(e^τ, e^σ), and what the pair adds to the squares of the matrices' gradients."""
    if past.kinds[one] != past.kinds[two]:
        return np.zeros_like(gradient)
    a, cross = maps.architecture, past.inputs(one, two)
    left, right = past.inputs(one, one), past.inputs(two, two)
    if past.kinds[one] == "attention":
        inward, found = _attention(maps, cross, left, right, gradient)
    else:
        inward, found = _perceptron(a, maps.numbers.perceptron, cross, left, right, gradient)
    for name, square in found.items():
        squares[name] = squares.get(name, 0.0) + times * square
    return past.enter[one][:, None] * inward * past.enter[two]


def _attention(
    maps: LayerMap[AttendedGram], cross: np.ndarray, left: np.ndarray, right: np.ndarray, gradient: np.ndarray
) -> tuple[np.ndarray, dict[str, float]]:
    a, sigma, b = maps.architecture, maps.architecture.deviations, maps.attended.b
    found = cross_attention_back(maps.attended, cross, left, right, gradient, float(maps.numbers.dimension))
    power = maps.numbers.attention
    heard = power * float(np.sum(gradient * maps.attended.between(cross, left, right)))
    looked = power * b**2 * float(np.sum(gradient * score_products(a, cross) * found.turned))
    squares = {"query": looked, "key": looked, "value": heard, "output": heard}
    inward = power * (found.value + b**2 * (found.query + found.key))
    return inward, {name: square / max(getattr(sigma, name) ** 2, 1e-300) for name, square in squares.items()}


def _perceptron(
    a: Architecture, power: float, cross: np.ndarray, left: np.ndarray, right: np.ndarray, gradient: np.ndarray
) -> tuple[np.ndarray, dict[str, float]]:
    if a.gated:
        raise ArgumentError("Argument `architecture` must have a plain perceptron where one layer serves every depth.")
    slope = power * perceptron_slopes(a, cross, np.diag(left), np.diag(right)).slope
    kernel = power * perceptron_products(a, cross, np.diag(left), np.diag(right)).gram
    sigma = a.deviations
    squares = {
        "mlp_in": float(np.sum(gradient * cross * slope)) / max(sigma.mlp_in**2, 1e-300),
        "mlp_out": float(np.sum(gradient * kernel)) / max(sigma.mlp_out**2, 1e-300),
    }
    return slope * gradient, squares
