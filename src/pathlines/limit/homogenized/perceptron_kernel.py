"""The kernel of a random perceptron layer, κ(ρ) = E[φ(z)φ(z')], (z, z') normal of variance σ_w² and correlation ρ.

x ↦ W_2 φ(W_1 √d x) with fresh Gaussian W_1, W_2 adds noise of covariance κ(⟨x_i, x_j⟩) to the tokens. With s = σ_w²:

    linear  sρ
    relu    (s/2π)[√(1-ρ²) + (π - arccos ρ)ρ]
    erf     (2/π) arcsin(2sρ/(1+2s))
    gelu    sρF + s²B(1 + ρ²(1-s)/(1+s)),   F = ¼ + arcsin(sρ/(1+s))/2π,   B = 1/(2π√((1+s)²-s²ρ²))

gelu(z) = zΦ(z) (its kernel: derived); tanh and any other function as κ(1) - ½E(φ(z) - φ(z'))² in polar coordinates,
where the lines z = 0 and z' = 0, at which activations bend, are rays: Gauss panels between them. That half mean square,
over 1-ρ, is ``kernel_quotient``; it keeps its digits where tokens meet. Slopes by Price's theorem, κ'(ρ) =
s E[φ'(z)φ'(z')], by the trapezoid rule. A bias of variance σ_b² is shared by both tokens: the kernel is that of s =
σ_w² + σ_b² at the correlation (σ_w²ρ + σ_b²)/s. At ρ = 1 the means are one-dimensional, and panels that end at whole
and half numbers see kinks there exactly. Setting:
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
_LARGEST = 50.0
"""Largest deviation of a pre-activation at which means over pairs are computed; work grows with its square."""
_LARGEST_ALONE = 1e4
"""The same of means over one token, whose work grows in proportion."""
_NODES, _SHARES = np.polynomial.legendre.leggauss(16)


@dataclass(frozen=True)
class Activation:
    """An activation by its kernel κ(ρ; s), the kernel's slope κ'(ρ; s), and if known (κ(1) - κ(1-u))/u of u and s."""

    kernel: Kernel
    slope: Kernel
    quotient: Kernel | None = None


def _relu_kernel(rho: np.ndarray, s: float) -> np.ndarray:
    return s / (2 * np.pi) * (np.sqrt(1 - rho * rho) + np.arccos(-rho) * rho)


def _relu_slope(rho: np.ndarray, s: float) -> np.ndarray:
    return s / (2 * np.pi) * np.arccos(-rho)


def _relu_quotient(gap: np.ndarray, s: float) -> np.ndarray:
    """(s/2)(1 - (sin θ - θ cos θ)/πu), u = 1 - cos θ."""
    angle = 2 * np.arcsin(np.sqrt(gap / 2))
    small = angle < 0.05
    a = np.where(small, 1.0, angle)
    series = 2 * angle / 3 * (1 - angle**2 / 60 + angle**4 / 12600)
    return s / 2 * (1 - np.where(small, series, (np.sin(a) - a * np.cos(a)) / (2 * np.sin(a / 2) ** 2)) / np.pi)


def _erf_kernel(rho: np.ndarray, s: float) -> np.ndarray:
    return 2 / np.pi * np.arcsin(2 * s * rho / (1 + 2 * s))


def _erf_slope(rho: np.ndarray, s: float) -> np.ndarray:
    return 4 * s / (np.pi * np.sqrt((1 + 2 * s) ** 2 - (2 * s * rho) ** 2))


def _erf_quotient(gap: np.ndarray, s: float) -> np.ndarray:
    """(arcsin c - arcsin c(1-u))/u, c = 2s/(1+2s), by the tangent of half that difference."""
    c, own = 2 * s / (1 + 2 * s), (1 + 4 * s) / (1 + 2 * s) ** 2
    slope = c / (np.sqrt(own) + np.sqrt(own + c * c * gap * (2 - gap)))
    tangent = slope * gap
    shrunk = np.where(tangent > 0, np.arctan(tangent) / np.where(tangent > 0, tangent, 1.0), 1.0)
    return 4 / np.pi * slope * shrunk


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
    _bounded(sigma, _LARGEST)
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


def _bounded(sigma: float, most: float) -> None:
    what = f"be ≤ {most:g}, together with `sigma_b`, for an activation without closed form"
    require(sigma <= most, "sigma_w", what, float(sigma))


def _graded(length: float) -> tuple[np.ndarray, np.ndarray]:
    """Gauss points and weights on [0, 1], in panels that grow from both ends: 2, 2, 4, 8, 8, ... of ``length``."""
    edges = [0.0]
    while edges[-1] < 0.5:
        edges.append(edges[-1] + min(8.0, max(2.0, edges[-1] * length)) / length)
    half = np.minimum(edges, 0.5)
    edge = np.concatenate([half, 1 - half[-2::-1]])
    wide = np.diff(edge)[:, None]
    return (edge[:-1, None] + wide * (_NODES + 1) / 2).ravel(), (wide * _SHARES / 2).ravel()


def _fallen(function: Function, gap: np.ndarray, s: float) -> np.ndarray:
    """½E(φ(z) - φ(z'))²/u, 1 - u > -1 the correlation: z = σr sin α, z' = σr sin(α + θ), panels between the rays."""
    sigma = float(np.sqrt(s))
    _bounded(sigma, _LARGEST)
    unit, share = _graded(_REACH * max(sigma, 1.0))
    radius = _REACH * unit
    chance = _REACH * share * radius * np.exp(-(radius**2) / 2) / (2 * np.pi)

    def mean_square(start: float, span: float, theta: float) -> float:
        first, second = (np.outer(np.sin(start + span * unit + more), sigma * radius) for more in (0.0, theta))
        apart = sum((function(sign * first) - function(sign * second)) ** 2 for sign in (1, -1))
        return float(span * share @ apart @ chance)

    angles = 2 * np.arcsin(np.sqrt(np.ravel(gap) / 2))
    found = [(mean_square(-t, t, t) + mean_square(0.0, np.pi - t, t)) / (4 * np.sin(t / 2) ** 2) for t in angles]
    return np.reshape(found, np.shape(gap))


def _panels(sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Gauss points x (panels, 16) and weights of N(0, σ²); panels end at multiples of 1/2, or of 2^{-k} ≤ σ."""
    _bounded(sigma, _LARGEST_ALONE)
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

    κ(ρ) is good to about 1e-12 for functions that are smooth but for a kink at 0, and to about 1e-3 with kinks
    elsewhere. Without ``derivative`` κ'(ρ) uses sixth-order differences of step 0.005, about 1e-12 for a smooth
    function, and to about 1e-2 with a kink. κ(1) and κ'(1) are exact to 1e-12 with kinks at multiples of 1/2 too, and
    to about 1e-2 of κ'(1) with kinks elsewhere.
    """
    require(callable(function), "function", "be a function of an array", function)
    require(derivative is None or callable(derivative), "derivative", "be a function of an array", derivative)

    def difference(x: np.ndarray, h: float = 5e-3) -> np.ndarray:
        near, middle, far = (function(x + k * h) - function(x - k * h) for k in (1, 2, 3))
        return (45 * near - 9 * middle + far) / (60 * h)

    def kernel(rho: np.ndarray, s: float) -> np.ndarray:
        top = own_means(function, np.sqrt(s))[0]
        return top - (1 - rho) * _with_end(lambda r: _fallen(function, 1 - r, s), rho, 0.0)

    def slope(rho: np.ndarray, s: float) -> np.ndarray:
        x, weight = _panels(np.sqrt(s))
        top = own_means(function, np.sqrt(s))[1] if derivative is None else np.sum(weight * derivative(x) ** 2)
        return _with_end(lambda r: s * _pair_mean(derivative or difference, r, s), rho, s * float(top))

    def quotient(gap: np.ndarray, s: float) -> np.ndarray:
        found = np.full(np.shape(gap), slope(np.array(1.0), s))
        apart = gap > 0
        if np.any(apart):
            found[apart] = _fallen(function, gap[apart], s)
        return found

    return Activation(kernel, slope, quotient)


def _with_end(means: Function, rho: np.ndarray, top: float) -> np.ndarray:
    """Means over pairs, and ``top`` where ρ = 1."""
    found = np.full(np.shape(rho), top)
    inside = np.asarray(rho) != 1
    if np.any(inside):
        found[inside] = means(np.asarray(rho)[inside])
    return found


ACTIVATIONS: dict[str, Activation] = {
    "linear": Activation(
        lambda rho, s: s * rho, lambda rho, s: np.full_like(rho, s), lambda gap, s: np.full_like(gap, s)
    ),
    "relu": Activation(_relu_kernel, _relu_slope, _relu_quotient),
    "erf": Activation(_erf_kernel, _erf_slope, _erf_quotient),
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


def kernel_quotient(
    gap: ArrayLike, activation: str | Activation = "relu", sigma_w: float = 1.0, sigma_b: float = 0.0
) -> np.ndarray:
    """(κ(1) - κ(1-u))/u = ½E(φ(z) - φ(z'))²/u for 1 - ρ = u ≥ 0, without subtracting nearly equal numbers; κ'(1) at 0.

    Of an activation that has a kernel and a slope only, the mean of the slope over the angles in between.
    """
    u = real_array("gap", gap, 0.0, 2.0)
    _, s, share = _correlation(1.0, sigma_w, sigma_b)
    known, apart = _activation(activation), share * u
    if known.quotient is not None:
        return (share * known.quotient(apart, s))[()]
    unit, weight = _graded(_REACH * max(1.0, float(np.sqrt(s))))
    angle = 2 * np.arcsin(np.sqrt(apart / 2))[..., None]
    part = 4 * unit * np.sinc(angle * unit / np.pi) / np.sinc(angle / (2 * np.pi)) ** 2 / 2
    return (share * np.sum(weight * part * known.slope(np.cos(angle * unit), s), axis=-1))[()]


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
