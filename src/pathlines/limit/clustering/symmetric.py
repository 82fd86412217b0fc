"""Symmetric weights QᵀK = V = Vᵀ: which eigenvectors the tokens end on, and in which proportions.

Pure states x_i = s_i e_p, s_i = ±1, are stationary. With n₊, n₋ tokens of each sign, r = n₊/n₋, c = e^{2βλ_p}:

    φ₊ = λ_p(cr-1)/(cr+1),  φ₋ = λ_p(c-r)/(c+r)                       (φ_i = ⟨x_i, A_i⟩)
    the linearisation splits into one n×n block λ_k a - diag(φ) for each k ≠ p, a the softmax matrix;
    σ = (c-r)(cr-1)/(r(c²-1)):  the split state is stable iff 2β|λ_p| > |ln r| and
        λ_k < λ_p σ for λ_p > 0,     λ_p < λ_k < λ_p σ for λ_p < 0          (k ≠ p)

Spectral Selection in Symmetric Self-Attention Dynamics, arXiv:2604.26085 (re-derived; checked by Jacobians).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.foundation.numbers import eigenvalue_list, real_array
from pathlines.foundation.papers import SPECTRAL_SELECTION

SOURCES = (SPECTRAL_SELECTION,)


class PureState(NamedTuple):
    """n₊ tokens at e_p and n₋ at -e_p; ``growth`` is the largest rate of the linearisation (negative: stable)."""

    p: int
    n_plus: int
    n_minus: int
    growth: float


def polarisation_factor(eigenvalue: ArrayLike, beta: ArrayLike, ratio: ArrayLike = 1.0) -> np.ndarray:
    """σ(c,r) = (c-r)(cr-1)/(r(c²-1)) with c = e^{2βλ}, written without overflow; tanh(βλ) for r = 1; odd in λ."""
    x = real_array("beta", beta, 0.0, open_low=True) * real_array("eigenvalue", eigenvalue)
    require(bool(np.all(x != 0)), "eigenvalue", "not be 0", eigenvalue)
    bend = np.log(real_array("ratio", ratio, 0.0, open_low=True))
    size = 2 * np.abs(x)
    with np.errstate(over="ignore"):
        return (np.sign(x) * np.expm1(-size - bend) * np.expm1(-size + bend) / -np.expm1(-2 * size))[()]


def bipolar_threshold(eigenvalue: float, beta: float, n_plus: int, n_minus: int) -> float:
    """λ_p σ: the split state on e_p needs every other eigenvalue below it."""
    positive_integer("n_plus", n_plus)
    positive_integer("n_minus", n_minus)
    return float(eigenvalue * polarisation_factor(eigenvalue, beta, n_plus / n_minus))


def bipolar_pulls(eigenvalue: float, beta: float, n_plus: int, n_minus: int) -> tuple[float, float]:
    """(φ₊, φ₋) = ⟨x_i, A_i⟩ of both signs: the rates at which differences inside a sign die."""
    positive_integer("n_plus", n_plus)
    positive_integer("n_minus", n_minus)
    phi = _attention(finite_number("eigenvalue", eigenvalue), finite_number("beta", beta, 0.0), n_plus, n_minus)[1]
    return float(phi[0]), float(phi[1])


def _check(eigenvalues: ArrayLike, p: int, beta: float, n_plus: int, n_minus: int) -> tuple[np.ndarray, float]:
    values = eigenvalue_list("eigenvalues", eigenvalues)
    positive_integer("p", p, 0)
    require(p < values.size, "p", f"be < {values.size}, the number of eigenvalues", p)
    finite_number("beta", beta, 0.0)
    positive_integer("n_plus", n_plus, 0)
    positive_integer("n_minus", n_minus, 0)
    require(n_plus + n_minus > 0, "n_plus", "leave at least one token together with n_minus", n_plus)
    return values, float(values[p])


def _attention(eigenvalue: float, beta: float, n_plus: int, n_minus: int) -> tuple[np.ndarray, np.ndarray]:
    """Group weights P (2×2: share of attention each sign gives to each sign) and φ = (φ₊, φ₋)."""
    bend = np.log(n_plus / n_minus)
    same = special.expit([2 * beta * eigenvalue + bend, 2 * beta * eigenvalue - bend])
    other = special.expit([-2 * beta * eigenvalue - bend, -2 * beta * eigenvalue + bend])
    return np.array([[same[0], other[0]], [other[1], same[1]]]), eigenvalue * (same - other)


def pure_state_growth(eigenvalues: ArrayLike, p: int, beta: float, n_plus: int, n_minus: int) -> float:
    """Largest real part of the linearisation at the pure state, -inf if nothing can move (d = n = 1).

    From the modes themselves: -φ₊, -φ₋ (differences inside a sign, if it has two tokens) and the 2×2 blocks
    λ_k P - diag(φ) of the group means, whose eigenvalues are real. Cost O(d), whatever n.
    """
    values, own = _check(eigenvalues, p, beta, n_plus, n_minus)
    others = np.delete(values, p)
    if others.size == 0:
        return -np.inf
    if n_plus == 0 or n_minus == 0:
        inner = [-own] if n_plus + n_minus > 1 else []
        return float(max([*inner, *(others - own)]))
    share, phi = _attention(own, beta, n_plus, n_minus)
    inner = [-phi[i] for i, size in enumerate((n_plus, n_minus)) if size > 1]
    first, second = others * share[0, 0] - phi[0], others * share[1, 1] - phi[1]
    coupling = others**2 * share[0, 1] * share[1, 0]
    block = 0.5 * (first + second) + np.sqrt(0.25 * (first - second) ** 2 + coupling)
    return float(max([*inner, *block]))


def pure_state_is_stable(eigenvalues: ArrayLike, p: int, beta: float, n_plus: int, n_minus: int) -> bool:
    """True if the pure state is linearly stable (strictly), by the closed criterion at the top of this file.

    All of one sign: λ_p > 0 (if n ≥ 2) and λ_k < λ_p. When a sign has a single token its |ln r| condition has no mode
    to carry it, and the 2×2 blocks are tested instead; so they are at β = 0, where c = 1.
    """
    values, own = _check(eigenvalues, p, beta, n_plus, n_minus)
    others = np.delete(values, p)
    if n_plus == 0 or n_minus == 0 or min(n_plus, n_minus) == 1 or own == 0 or beta == 0:
        return pure_state_growth(values, p, beta, n_plus, n_minus) < 0
    if others.size == 0:
        return True
    if not 2 * beta * abs(own) > abs(np.log(n_plus / n_minus)):
        return False
    threshold = bipolar_threshold(own, beta, n_plus, n_minus)
    return bool(np.all(others < threshold) and (own > 0 or np.all(others > own)))


def pure_state_blocks(eigenvalues: ArrayLike, p: int, beta: float, n_plus: int, n_minus: int) -> np.ndarray:
    """The n×n blocks λ_k a - diag(φ), k ≠ p, of the linearisation, shape (d-1, n, n); the n₊ tokens come first."""
    values, own = _check(eigenvalues, p, beta, n_plus, n_minus)
    signs = np.concatenate([np.ones(n_plus), -np.ones(n_minus)])
    a = special.softmax(beta * own * np.outer(signs, signs), axis=1)
    phi = own * signs * (a @ signs)
    return np.delete(values, p)[:, None, None] * a - np.diag(phi)


def attractors(eigenvalues: ArrayLike, beta: float, n: int) -> list[PureState]:
    """All stable pure states of n tokens, up to the overall sign (n₊ ≥ n₋), each with its growth rate. Cost O(d² n)."""
    values = eigenvalue_list("eigenvalues", eigenvalues)
    positive_integer("n", n)
    return [
        PureState(p, n - minus, minus, pure_state_growth(values, p, beta, n - minus, minus))
        for p in range(values.size)
        for minus in range(n // 2 + 1)
        if pure_state_is_stable(values, p, beta, n - minus, minus)
    ]


def mixed_equilibria(a: float, b: float, beta: float, m: int, k: int) -> np.ndarray:
    """All q in (-1,1) for which m tokens at u and k each at qu ± √(1-q²)v are stationary; u, v have eigenvalues a, b.

    Roots of q[(a-b)e^{β(b+(a-b)q²)} + (a+b)e^{β(-b+(a+b)q²)}] + a(m/k)e^{βaq} = 0 (derived). Found on 8001 points, and
    pairs of roots closer than the grid by the dip between them; sorted.
    """
    a, b, beta = finite_number("a", a), finite_number("b", b), finite_number("beta", beta, 0.0)
    mass = positive_integer("m", m) / positive_integer("k", k)

    def balance(q: np.ndarray) -> np.ndarray:
        exponents = np.array([beta * (b + (a - b) * q * q), beta * (-b + (a + b) * q * q), beta * a * q])
        weights = np.exp(exponents - exponents.max(axis=0))  # a common positive factor moves no root
        return q * ((a - b) * weights[0] + (a + b) * weights[1]) + a * mass * weights[2]

    grid = np.cos(np.linspace(np.pi, 0.0, 8001))[1:-1]
    return np.unique(_roots(balance, grid))


def _roots(function: Callable[[np.ndarray], np.ndarray], grid: np.ndarray) -> np.ndarray:
    """Roots by sign changes on the grid, and by dips towards zero that change sign between grid points."""

    def scalar(q: float, sign: float = 1.0) -> float:
        return sign * float(function(np.asarray(q)))

    values = function(grid)
    points, heights = list(grid), list(values)
    size = np.abs(values)
    for i in np.nonzero((size[1:-1] <= size[:-2]) & (size[1:-1] <= size[2:]) & (size[1:-1] > 0))[0] + 1:
        around = (grid[i - 1], grid[i + 1])
        dip = optimize.minimize_scalar(scalar, args=(np.sign(values[i]),), bounds=around, method="bounded")
        points.append(dip.x)
        heights.append(scalar(dip.x))
    order = np.argsort(points)
    at, height = np.array(points)[order], np.array(heights)[order]
    crossing = np.nonzero(height[:-1] * height[1:] < 0)[0]
    return np.array([*at[height == 0], *(optimize.brentq(scalar, at[i], at[i + 1], xtol=1e-16) for i in crossing)])
