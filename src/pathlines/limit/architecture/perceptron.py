"""The Gram matrix that a random perceptron makes of its input, plain or gated.

u = W_1 x has covariance σ_w² X_ij between tokens. Plain: κ(ρ_ij) = E[φ(u_i)φ(u_j)] (``perceptron_kernel``); gated,
φ(g) ⊙ (u + c) with independent g = W_g x: κ_g(ρ_ij)(σ_w² X_ij + c²). Experts multiply by what they share
(``experts``), a perceptron beside them adds its own. Where φ has a mean (gelu, relu), κ(0) = (Eφ)² is common to
all tokens whatever they are, the mean bias; gated perceptrons have none. Tokens of different lengths (only where ε of a
norm matters) share the kernel of the mean variance, scaled to their own mean squares. silu and tanh are tabulated once
a variance at 48 Chebyshev points (error below 1e-9 for σ_w ≤ 2). For large σ_w they differ from relu and sign near zero
only, and so do gelu(cz)/c and erf(cz), with c² = 3/π² and 6/π² for the same ∫zδ dz: beyond σ_w = ``WIDE`` these closed
kernels serve (derived; error below 1e-3, 3e-3 for tanh at ρ = ±1). The rest is closed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import erf, expit, ndtr

from pathlines.architecture.record import Architecture
from pathlines.limit.architecture.experts import shared_experts
from pathlines.limit.architecture.numbers import Numbers
from pathlines.limit.homogenized.perceptron_kernel import (
    ACTIVATIONS,
    Activation,
    perceptron_kernel,
    perceptron_slope,
)

QUICK = 1.702
"""zσ(1.702 z) is within 0.02 of gelu."""
SILU = ACTIVATIONS["silu"]
WIDE = 8.0
_LIKE = {"silu": ("gelu", math.sqrt(3) / math.pi, 2), "tanh": ("erf", math.sqrt(6) / math.pi, 0)}
_TABULATED: dict[str, Activation | str] = {"silu": SILU, "tanh": "tanh"}
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(128)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


class PerceptronGram(NamedTuple):
    """E of the branch's products per unit of power, and the part of it that is the square of a mean."""

    gram: np.ndarray
    bias: float


def perceptron_gram(architecture: Architecture, x: np.ndarray) -> PerceptronGram:
    """κ(X) for the architecture's activation; O(n²)."""
    own = np.diag(x)
    root = np.sqrt(own)
    rho = np.clip(x / (root[:, None] * root), -1.0, 1.0)
    np.fill_diagonal(rho, 1.0)
    return _products(architecture, rho, own, own)


def perceptron_products(
    architecture: Architecture, products: np.ndarray, left: np.ndarray, right: np.ndarray
) -> PerceptronGram:
    """The same perceptron at two sets of inputs, of those products and mean squares."""
    rho = np.clip(products / np.sqrt(left[:, None] * right), -1.0, 1.0)
    return _products(architecture, rho, left, right)


def _products(architecture: Architecture, rho: np.ndarray, left: np.ndarray, right: np.ndarray) -> PerceptronGram:
    numbers = Numbers.of(architecture)
    size = float(np.sqrt(0.5 * (np.mean(left) + np.mean(right))))
    voices = shared_experts(architecture, rho, size)
    if architecture.experts and architecture.shared_width:
        voices = voices + architecture.shared_width / architecture.mlp_width
    shared = float(np.mean(voices))
    inner = numbers.sigma_gate if architecture.gated else numbers.sigma_w
    if inner == 0:
        return PerceptronGram(np.zeros_like(rho), 0.0)
    sigma = float(f"{inner * size:.3g}") if architecture.activation in _TABULATED else inner * size
    nothing, top = _kernel(architecture.activation, np.array([0.0, 1.0]), sigma)
    one, two = (np.sqrt(_own(architecture.activation, inner * np.sqrt(own)) / top) for own in (left, right))
    kernel = one[:, None] * _kernel(architecture.activation, rho, sigma) * two
    if architecture.gated:
        linear = numbers.sigma_w**2 * rho * np.sqrt(left[:, None] * right) + architecture.gate_shift**2
        return PerceptronGram(voices * kernel * linear, shared * architecture.gate_shift**2 * float(nothing))
    return PerceptronGram(voices * kernel, shared * float(nothing))


def kurtosis(architecture: Architecture) -> float:
    """E y⁴/(E y²)² of one hidden unit y of the perceptron at unit input: how much its finite width fluctuates."""
    numbers = Numbers.of(architecture)
    inner = numbers.sigma_gate if architecture.gated else numbers.sigma_w
    if inner == 0:
        return 1.0
    value = _FUNCTIONS[architecture.activation](inner * _NODES)
    plain = float(_WEIGHTS @ value**4 / (_WEIGHTS @ value**2) ** 2)
    return 3 * plain if architecture.gated else plain


_FUNCTIONS = {
    "linear": lambda z: z,
    "relu": lambda z: np.maximum(z, 0.0),
    "erf": erf,
    "gelu": lambda z: z * ndtr(z),
    "tanh": np.tanh,
    "silu": lambda z: z * expit(z),
    "quick_gelu": lambda z: z * expit(QUICK * z),
    "relu2": lambda z: np.maximum(z, 0.0) ** 2,
}


def _own(activation: str, sigmas: np.ndarray) -> np.ndarray:
    """E φ(σz)² for each σ."""
    values = _FUNCTIONS[activation](sigmas[:, None] * _NODES)
    return values**2 @ _WEIGHTS


def _kernel(activation: str, rho: np.ndarray, sigma: float) -> np.ndarray:
    if activation == "relu2":  # the arc-cosine kernel of order two
        angle = np.arccos(np.clip(rho, -1.0, 1.0))
        return sigma**4 / (2 * np.pi) * (3 * np.sin(angle) * rho + (np.pi - angle) * (1 + 2 * rho * rho))
    if activation == "quick_gelu":  # silu(1.702 z)/1.702
        return _kernel("silu", rho, float(f"{QUICK * sigma:.3g}")) / QUICK**2
    if activation in _LIKE and sigma > WIDE:
        like, c, power = _LIKE[activation]
        return perceptron_kernel(rho, like, c * sigma) / c**power
    if activation in _TABULATED:
        return chebyshev.chebval(rho, _table(perceptron_kernel, activation, sigma))
    return perceptron_kernel(rho, activation, sigma)


@lru_cache(maxsize=512)
def _table(law: Callable[..., np.ndarray], activation: str, sigma: float) -> np.ndarray:
    """Coefficients of κ or κ'; the kernel is a power series in ρ that is the longer the more φ(σz) bends."""

    def values(rho: np.ndarray) -> np.ndarray:
        return law(rho, _TABULATED[activation], sigma)

    return chebyshev.chebinterpolate(values, 16 if sigma <= 1 else 32 if sigma <= 3 else 96)


class PerceptronSlopes(NamedTuple):
    """E φφ' of the activated part (the gate where there is one) and σ²E φ̇φ̇', its slope in the cosine."""

    kernel: np.ndarray
    slope: np.ndarray


def perceptron_slopes(
    architecture: Architecture, x: np.ndarray, left: np.ndarray | None = None, right: np.ndarray | None = None
) -> PerceptronSlopes:
    """What gradients meet on their way down: κ and σ²κ̇ of the activation at inputs of products X; O(n²).

    ``left`` and ``right`` are the mean squares of two sets of inputs (one layer at two depths); the diagonal of X by
    default. σ is that of the gate in a gated perceptron.
    """
    numbers, kind = Numbers.of(architecture), architecture.activation
    left = np.diag(x) if left is None else left
    right = left if right is None else right
    inner = numbers.sigma_gate if architecture.gated else numbers.sigma_w
    if inner == 0:
        return PerceptronSlopes(np.zeros_like(x), np.zeros_like(x))
    rho = np.clip(x / np.sqrt(left[:, None] * right), -1.0, 1.0)
    size = float(np.sqrt(0.5 * (np.mean(left) + np.mean(right))))
    sigma = float(f"{inner * size:.3g}") if kind in _TABULATED else inner * size
    slope = _slope(kind, rho, sigma) * (inner / sigma) ** 2
    return PerceptronSlopes(_kernel(kind, rho, sigma), slope)


def _slope(activation: str, rho: np.ndarray, sigma: float) -> np.ndarray:
    """κ'(ρ) = σ²κ̇."""
    if activation == "relu2":
        angle = np.arccos(np.clip(rho, -1.0, 1.0))
        return 2 * sigma**4 / np.pi * (np.sin(angle) + rho * (np.pi - angle))
    if activation == "quick_gelu":
        return _slope("silu", rho, float(f"{QUICK * sigma:.3g}")) / QUICK**2
    if activation in _LIKE and sigma > WIDE:
        like, c, power = _LIKE[activation]
        return perceptron_slope(rho, like, c * sigma) / c**power
    if activation in _TABULATED:
        return chebyshev.chebval(rho, _table(perceptron_slope, activation, sigma))
    return perceptron_slope(rho, activation, sigma)


def mean_degree(activation: str, sigma: float) -> float:
    """⟨k⟩ = σ²κ̇(1)/κ(1), the mean Hermite degree of φ(σz): what a perceptron does to gradients over what it adds.

    1 for relu and linear, 1.04 to 1.07 for gelu, 1.6 for tanh at σ = 2; a gated perceptron has 1 more.
    """
    one = np.ones(1)
    return float(_slope(activation, one, sigma)[0] / _kernel(activation, one, sigma)[0])


def absolute_share(activation: str, sigma: float) -> float:
    """(E|φ|)²/Eφ² of φ(σz): what signs see of hidden units; 1/π for relu."""
    nodes = np.linspace(-8.5, 8.5, 3401)
    weights = np.exp(-(nodes**2) / 2)
    value = _FUNCTIONS[activation](sigma * nodes)
    square = float(weights @ value**2)
    return float(weights @ np.abs(value)) ** 2 / (float(weights.sum()) * square) if square > 0 else 0.0
