"""Where causally masked tokens park: centres of Rényi, how many there are, how long they live.

Clustering in causal attention masking, arXiv:2411.04990. Along the sequence a token is a *centre* if it is farther than
δ = c β^{-1/2} from all earlier centres, a *strong* one if farther than δ from all earlier tokens (geodesic distance).
Token k of x_k' = P(Z_k⁻¹ Σ_{j≤k} e^{β<x_k,x_j>} x_j) on the circle is pulled by h(x) = e^{β(cos x-1)} sin x.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import integrate, special

from pathlines.foundation.errors import finite_array, finite_number, positive_integer, require
from pathlines.foundation.numbers import real_array

RENYI = 0.74759792025341143517873094363652
"""C_R = ∫_0^∞ exp(-2∫_0^u (1-e^{-v})/v dv) du, the jamming density of cars parked at random (A. Rényi, 1958)."""


def pull(x: ArrayLike, beta: float) -> np.ndarray:
    """h(x) = e^{β(cos x-1)} sin x."""
    x = np.asarray(x, float)
    return np.exp(-2 * beta * np.sin(x / 2) ** 2) * np.sin(x)


def pull_slope(x: ArrayLike, beta: float) -> np.ndarray:
    """h'(x) = e^{β(cos x-1)}(cos x - β sin²x)."""
    x = np.asarray(x, float)
    return np.exp(-2 * beta * np.sin(x / 2) ** 2) * (np.cos(x) - beta * np.sin(x) ** 2)


def strongest_pull(beta: float) -> float:
    """τ*_β = arccos((-1+√(4β²+1))/(2β)), where h is largest; between (β+½)^{-1/2} and β^{-1/2} for β ≥ 1."""
    beta = finite_number("beta", beta, 0.0, open_low=True)
    # 1 - cos τ* = (2β+1-√(4β²+1))/(2β) = 2/(2β+1+√(4β²+1)): no cancellation at large β
    return 2 * math.asin(math.sqrt(1 / (2 * beta + 1 + math.sqrt(4 * beta**2 + 1))))


def cap_mass(delta: ArrayLike, d: int) -> np.ndarray:
    """Share of S^{d-1} within geodesic distance δ: δ/π (d = 2), sin²(δ/2) (d = 3; the paper prints 3 sin²(δ/2))."""
    delta = real_array("delta", delta, 0.0, math.pi)
    d = positive_integer("d", d, 2)
    return np.asarray(special.betainc((d - 1) / 2, (d - 1) / 2, np.sin(delta / 2) ** 2))


def strong_centres(n: int, delta: float, d: int) -> float:
    """Expected number of strong centres of n uniform tokens: (1-(1-p)^n)/p, p the mass of a cap (derived)."""
    p = float(cap_mass(delta, d))
    require(p > 0, "delta", "be above 0", delta)
    return -math.expm1(positive_integer("n", n) * math.log1p(-p)) / p if p < 1 else 1.0


def parking_coverage(tau: ArrayLike) -> np.ndarray:
    """Θ(τ) = ∫_0^τ exp(-2 Ein(u)) du, Ein(u) = ∫_0^u (1-e^{-v})/v dv: cars parked at random (derived); Θ(∞) = C_R."""
    tau = real_array("tau", tau, 0.0)
    value = lambda u: math.exp(-2 * _entire_integral(u))  # noqa: E731
    cut = 50.0
    head = [integrate.quad(value, 0, min(v, cut), epsabs=1e-14, epsrel=1e-13, limit=200)[0] for v in np.ravel(tau)]
    # beyond u = 50 Ein(u) = ln u + γ to rounding, and the integrand is e^{-2γ}/u²
    tail = [math.exp(-2 * np.euler_gamma) * (1 / cut - 1 / v) if v > cut else 0.0 for v in np.ravel(tau)]
    return (np.asarray(head) + np.asarray(tail)).reshape(np.shape(tau))


def _entire_integral(u: float) -> float:
    """Ein(u) = ln u + γ + E_1(u), by its series near 0."""
    if u < 1:
        k = np.arange(1, 20)
        return float(-np.sum((-u) ** k / (k * special.factorial(k))))
    return float(math.log(u) + np.euler_gamma + special.exp1(u))


def centres(n: int, delta: float) -> float:
    """Expected number of centres of n uniform tokens on the circle: (2π/δ)Θ(τ) + (1-e^{-τ})e^{-2Ein(τ)}, τ = nδ/2π.

    The first term is that of a Poisson number of tokens, the second takes it to exactly n (to first order in δ/2π);
    (2π/δ)C_R as n → ∞. Circles of few cars (δ > 1) feel their end and are refused.
    """
    delta = finite_number("delta", delta, 0.0, 1.0, open_low=True)
    tau = positive_integer("n", n) * delta / (2 * math.pi)
    fixed = -math.expm1(-tau) * math.exp(-2 * _entire_integral(tau))
    return float(2 * math.pi / delta * parking_coverage(tau) + fixed)


def centre_flags(tokens: ArrayLike, delta: float, *, strong: bool = False) -> np.ndarray:
    """Which rows of unit vectors are (strong) centres, in their order. O(n²d)."""
    x = finite_array("tokens", tokens, ("n", "d")).astype(float)
    delta = finite_number("delta", delta, 0.0, math.pi, open_low=True)
    far = 2 * np.arcsin(np.minimum(1.0, np.linalg.norm(x[:, None] - x[None], axis=-1) / 2)) > delta
    flags = np.zeros(len(x), bool)
    for k in range(len(x)):
        flags[k] = np.all(far[k, :k] if strong else far[k, :k][flags[:k]])
    return flags


def centre_lifetime(position: int, c: float, beta: float, epsilon: float) -> float:
    """T with T s h(cβ^{-1/2}) = ε c β^{-1/2}: until then strong centre s stays within ε c β^{-1/2} (Lemma 5.1).

    It asks that earlier tokens are farther than c(1+2ε)β^{-1/2} and that c > β^{1/2} τ*; T grows like e^{c²/2}.
    """
    s, beta = positive_integer("position", position), finite_number("beta", beta, 0.0, open_low=True)
    c, epsilon = finite_number("c", c, 0.0, open_low=True), finite_number("epsilon", epsilon, 0.0, open_low=True)
    require(c > math.sqrt(beta) * strongest_pull(beta), "c", "be above √β τ*_β, where the pull is largest", c)
    require(c < math.pi * math.sqrt(beta), "c", "be below π√β: centres are on one circle", c)
    return epsilon * c / math.sqrt(beta) / (s * float(pull(c / math.sqrt(beta), beta)))


def frozen_centres_capture(total: float, c: float, beta: float, epsilon: float) -> bool:
    """Whether every token ends within εβ^{-1/2} of a frozen one (Theorem 5.2, corrected): N = ``total`` mass.

    c > 2+2ε, N h((c-1-2ε)β^{-1/2}) < h(εβ^{-1/2}) and -N g((c-2ε)β^{-1/2}) < g(εβ^{-1/2}), g = h'. The paper prints the
    last without its sign, which is empty (g is negative there), and its lemma needs ε < 0.1.
    """
    root = 1 / math.sqrt(finite_number("beta", beta, 0.0, open_low=True))
    require(c * root < math.pi, "c", "be below π√β: centres are on one circle", c)
    near, far = (c - 1 - 2 * epsilon) * root, (c - 2 * epsilon) * root
    forces = total * float(pull(near, beta)) < float(pull(epsilon * root, beta))
    slopes = -total * float(pull_slope(far, beta)) < float(pull_slope(epsilon * root, beta))
    return bool(c > 2 + 2 * epsilon and forces and slopes)


def capture_mass(c: float, epsilon: float) -> float:
    """N ≤ ε/(c-1) e^{3(c-1-2ε)²/8}, the explicit window (ε < 0.1, c ≥ 5.5+2ε, β ≥ (c-1-2ε)²/2); 682.9 at (6.5, .1)."""
    require(epsilon < 0.1 + 1e-12, "epsilon", "be at most 0.1", epsilon)
    require(c >= 5.5 + 2 * epsilon, "c", "be at least 5.5 + 2ε", c)
    return epsilon / (c - 1) * math.exp(3 * (c - 1 - 2 * epsilon) ** 2 / 8)
