"""The kernel of a random perceptron layer, κ(ρ) = E[φ(z)φ(z')], (z, z') normal of variance σ_w² and correlation ρ.

x ↦ W_2 φ(W_1 √d x) with fresh Gaussian W_1, W_2 adds noise of covariance κ(⟨x_i, x_j⟩) to the tokens. With s = σ_w²:

    linear  sρ
    relu    (s/2π)[√(1-ρ²) + (π - arccos ρ)ρ]
    erf     (2/π) arcsin(2sρ/(1+2s))
    gelu    sρF + s²B(1 + ρ²(1-s)/(1+s)),   F = ¼ + arcsin(sρ/(1+s))/2π,   B = 1/(2π√((1+s)²-s²ρ²))

gelu(z) = zΦ(z) (its kernel: derived); tanh and any other function by the trapezoid rule in two normal variables, which
for functions analytic near the real axis converges exponentially (tanh at σ_w = 3: 1e-15 with 205² points, where
Gauss-Hermite with 200² is at 1e-7). Slopes by Price's theorem, κ'(ρ) = s E[φ'(z)φ'(z')]. A bias of variance σ_b² is
shared by both tokens: the kernel is that of s = σ_w² + σ_b² at the correlation (σ_w²ρ + σ_b²)/s. At ρ = 1 the means are
one-dimensional, and panels that end at whole and half numbers see kinks there exactly. Setting:
Homogenized Transformers, arXiv:2604.01978, and Stochastic Scaling Limits and Synchronization by Noise in Deep
Transformer Models, arXiv:2604.26898.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from pathlines.foundation.errors import UnknownNameError, finite_number, require
from pathlines.foundation.numbers import real_array
from pathlines.foundation.papers import HOMOGENIZED, SYNCHRONIZATION

SOURCES = (HOMOGENIZED, SYNCHRONIZATION)
Function = Callable[[np.ndarray], np.ndarray]
Kernel = Callable[[np.ndarray, float], np.ndarray]  # of ρ and s = σ_w²
_REACH = 8.5  # normal deviates beyond are rarer than 1e-16
_NODES, _SHARES = np.polynomial.legendre.leggauss(16)


@dataclass(frozen=True)
class Activation:
    """An activation by its kernel κ(ρ; s) and the kernel's slope κ'(ρ; s)."""

    kernel: Kernel
    slope: Kernel


def _relu_kernel(rho: np.ndarray, s: float) -> np.ndarray:
    return s / (2 * np.pi) * (np.sqrt(1 - rho * rho) + np.arccos(-rho) * rho)


def _relu_slope(rho: np.ndarray, s: float) -> np.ndarray:
    return s / (2 * np.pi) * np.arccos(-rho)


def _erf_kernel(rho: np.ndarray, s: float) -> np.ndarray:
    return 2 / np.pi * np.arcsin(2 * s * rho / (1 + 2 * s))


def _erf_slope(rho: np.ndarray, s: float) -> np.ndarray:
    return 4 * s / (np.pi * np.sqrt((1 + 2 * s) ** 2 - (2 * s * rho) ** 2))


def _gelu_parts(rho: np.ndarray, s: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """F = E[ΦΦ'], B = E[φφ'] (normal distribution function and density), and (1+s)²-s²ρ²."""
    determinant = (1 + s) ** 2 - (s * rho) ** 2
    both = 0.25 + np.arcsin(s * rho / (1 + s)) / (2 * np.pi)
    return both, 1 / (2 * np.pi * np.sqrt(determinant)), determinant


def _gelu_kernel(rho: np.ndarray, s: float) -> np.ndarray:
    both, density, _ = _gelu_parts(rho, s)
    return s * rho * both + s * s * density * (1 + rho * rho * (1 - s) / (1 + s))


def _gelu_slope(rho: np.ndarray, s: float) -> np.ndarray:
    both, density, determinant = _gelu_parts(rho, s)
    return s * (both + s * rho * density * (2 / (1 + s) + 1 / determinant))


def _normal_rule(sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Trapezoid points and weights of a standard normal, the step short of poles at |Im σz| = π/2."""
    step = min(0.12, 0.25 / sigma)
    z = step * np.arange(-np.ceil(_REACH / step), np.ceil(_REACH / step) + 1)
    weight = np.exp(-z * z / 2)
    return z, weight / weight.sum()


def _pair_mean(function: Function, rho: np.ndarray, s: float) -> np.ndarray:
    """E[f(z)f(z')], z' = ρz + √(1-ρ²)w; memory O(points²) for one ρ at a time."""
    sigma = float(np.sqrt(s))
    z, weight = _normal_rule(sigma)
    first = weight * function(sigma * z)
    means = [first @ function(sigma * (r * z[:, None] + np.sqrt(1 - r * r) * z)) @ weight for r in np.ravel(rho)]
    return np.reshape(means, np.shape(rho))


def _panels(sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Gauss points x (panels, 16) and weights of N(0, σ²); panels end at multiples of 1/2, or of 2^{-k} ≤ σ."""
    width = min(0.5, 2.0 ** np.floor(np.log2(sigma)))
    edges = width * np.arange(-np.ceil(_REACH * sigma / width), np.ceil(_REACH * sigma / width))
    x = edges[:, None] + width * (_NODES + 1) / 2
    weight = np.exp(-((x / sigma) ** 2) / 2) * _SHARES
    return x, weight / weight.sum()


def _differentiation() -> np.ndarray:
    """Derivatives at the Gauss points of a panel of width 2, from the values there."""
    gaps = _NODES[:, None] - _NODES + np.eye(len(_NODES))
    weight = 1 / np.prod(gaps, axis=1)
    matrix = weight / weight[:, None] / gaps
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, -matrix.sum(axis=1))
    return matrix


def own_means(function: Function, sigma: float) -> tuple[float, float]:
    """(E φ², E φ'²) at N(0, σ²), φ' by differentiating in every panel the polynomial through its 16 points."""
    x, weight = _panels(sigma)
    value = _values(function, x)
    slope = value @ _differentiation().T * (_NODES[-1] - _NODES[0]) / (x[0, -1] - x[0, 0])
    return float(np.sum(weight * value**2)), float(np.sum(weight * slope**2))


def _values(function: Function, x: np.ndarray) -> np.ndarray:
    """φ(x), after checking that it is a finite number for each."""
    value = np.asarray(function(x), float)
    fine = value.shape == x.shape and bool(np.all(np.isfinite(value)))
    require(fine, "function", "give a finite number for every number of an array", function)
    return value


def by_quadrature(function: Function, derivative: Function | None = None) -> Activation:
    """The kernel of any activation (a function of an array), without a closed form.

    Without ``derivative`` κ' uses sixth-order differences of step 0.005, about 1e-12 for a smooth function. A kink
    costs the exponential accuracy: errors for ρ < 1 are then of the order of the square of the step, 1e-3. κ(1) and
    κ'(1) are exact to 1e-12 with kinks at multiples of 1/2 too, and to about 1e-2 of κ'(1) with kinks elsewhere.
    """
    require(callable(function), "function", "be a function of an array", function)
    require(derivative is None or callable(derivative), "derivative", "be a function of an array", derivative)

    def difference(x: np.ndarray, h: float = 5e-3) -> np.ndarray:
        near, middle, far = (function(x + k * h) - function(x - k * h) for k in (1, 2, 3))
        return (45 * near - 9 * middle + far) / (60 * h)

    def kernel(rho: np.ndarray, s: float) -> np.ndarray:
        return _with_end(lambda r: _pair_mean(function, r, s), rho, own_means(function, np.sqrt(s))[0])

    def slope(rho: np.ndarray, s: float) -> np.ndarray:
        x, weight = _panels(np.sqrt(s))
        top = own_means(function, np.sqrt(s))[1] if derivative is None else np.sum(weight * derivative(x) ** 2)
        return _with_end(lambda r: s * _pair_mean(derivative or difference, r, s), rho, s * float(top))

    return Activation(kernel, slope)


def _with_end(means: Function, rho: np.ndarray, top: float) -> np.ndarray:
    """Means over pairs, and ``top`` where ρ = 1."""
    found = np.full(np.shape(rho), top)
    inside = np.asarray(rho) != 1
    if np.any(inside):
        found[inside] = means(np.asarray(rho)[inside])
    return found


ACTIVATIONS: dict[str, Activation] = {
    "linear": Activation(lambda rho, s: s * rho, lambda rho, s: np.full_like(rho, s)),
    "relu": Activation(_relu_kernel, _relu_slope),
    "erf": Activation(_erf_kernel, _erf_slope),
    "gelu": Activation(_gelu_kernel, _gelu_slope),
    "tanh": by_quadrature(np.tanh, lambda x: np.cosh(np.clip(x, -300, 300)) ** -2.0),
    "silu": by_quadrature(lambda x: x * expit(x), lambda x: expit(x) * (1 + x * expit(-x))),
}


def _activation(activation: str | Activation) -> Activation:
    if isinstance(activation, Activation):
        return activation
    if activation not in ACTIVATIONS:
        raise UnknownNameError(f"There is no activation `{activation}`; there are {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[activation]


def perceptron_kernel(
    overlap: ArrayLike, activation: str | Activation = "relu", sigma_w: float = 1.0, sigma_b: float = 0.0
) -> np.ndarray:
    """κ(ρ) for a named activation or one from ``by_quadrature``; σ_w is the standard deviation of a pre-activation
    without its bias, σ_b that of the bias.
    """
    rho, s, _ = _correlation(overlap, sigma_w, sigma_b)
    return _activation(activation).kernel(rho, s)[()]


def perceptron_slope(
    overlap: ArrayLike, activation: str | Activation = "relu", sigma_w: float = 1.0, sigma_b: float = 0.0
) -> np.ndarray:
    """κ'(ρ) = σ_w² E[φ'(z)φ'(z')]; κ'(1) decides whether a perceptron undoes the collapse."""
    rho, s, share = _correlation(overlap, sigma_w, sigma_b)
    return (share * _activation(activation).slope(rho, s))[()]


def _correlation(overlap: ArrayLike, sigma_w: float, sigma_b: float) -> tuple[np.ndarray, float, float]:
    """(correlation of two pre-activations, their variance s, σ_w²/s)."""
    rho = real_array("overlap", overlap, -1.0, 1.0)
    bias = finite_number("sigma_b", sigma_b, 0.0) ** 2
    weights = finite_number("sigma_w", sigma_w, 0.0, open_low=bias == 0) ** 2
    s = weights + bias
    share = weights / s
    return np.where(rho == 1, 1.0, np.clip(share * rho + (1 - share), -1.0, 1.0)), s, share


def ends(activation: str | Activation = "relu", sigma_w: float = 1.0, sigma_b: float = 0.0) -> tuple[float, float]:
    """(κ(1), κ'(1)): equal for relu and linear without bias, κ'(1) > κ(1) for odd saturating functions."""
    one = np.array(1.0)
    kernel, slope = (f(one, activation, sigma_w, sigma_b) for f in (perceptron_kernel, perceptron_slope))
    return float(kernel), float(slope)
