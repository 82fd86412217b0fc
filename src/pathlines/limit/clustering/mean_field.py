"""Infinitely many tokens, symmetric about an axis: characteristics on a graded grid, and the late rates they obey.

The density is f(θ) against the uniform measure on S^{d-1}, θ the angle to the axis; characteristics move with the field
of ``axis_kernel``. You will see the mass near the antipode θ = π leave last and set the rate of convergence to
the Dirac mass at θ = 0, slower than any finite number of tokens. Mean field: Quantitative Clustering in Mean-Field
Transformer Models, arXiv:2504.14697. Rates: derived.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import integrate, special

from pathlines.foundation.errors import PathlinesError, finite_array, finite_number, positive_integer, require
from pathlines.foundation.numbers import one_of, real_array
from pathlines.foundation.papers import QUANTITATIVE
from pathlines.limit.clustering.axis_kernel import axis_velocity

SOURCES = (QUANTITATIVE,)
KINDS = ("sa", "usa")
_LARGEST_DIMENSION = 50  # the prefactors of the Bessel functions overflow beyond


def graded_quadrature(
    density: Callable[[np.ndarray], np.ndarray], d: int, panels: int = 26, points: int = 12
) -> tuple[np.ndarray, np.ndarray]:
    """(φ_j, w_j): φ = π-θ, distance to the antipode, on panels with edges 0, πe^{-panels}, ..., πe^{-1}, π; Σw = 1.

    Gauss-Legendre with ``points`` nodes per panel. A uniform grid has no node where the late mass is.
    """
    positive_integer("panels", panels)
    positive_integer("points", points)
    edges = np.concatenate([[0.0], np.pi * np.exp(np.arange(-panels, 1.0))])
    nodes, weights = np.polynomial.legendre.leggauss(points)
    left, length = edges[:-1, None], np.diff(edges)[:, None]
    phi = (left + 0.5 * length * (nodes + 1)).ravel()
    mass = (0.5 * length * weights).ravel() * np.sin(phi) ** (d - 2)
    values = finite_array("density", density(np.pi - phi))
    require(values.shape == phi.shape, "density", "be a function of an array of angles", values)
    require(bool(np.all(values >= 0)) and bool(np.any(values > 0)), "density", "be non-negative and not zero", values)
    mass = mass * values
    return phi, mass / mass.sum()


def axisymmetric_flow(
    density: Callable[[np.ndarray], np.ndarray],
    times: ArrayLike,
    d: int,
    beta: float,
    kind: str = "sa",
    panels: int = 26,
    points: int = 12,
) -> np.ndarray:
    """W2² from the mean-field solution to the Dirac mass at θ = 0 (chordal, Σ_j w_j 4 sin²(θ_j/2)) at increasing times.

    ``density`` is f(θ) ≥ 0 up to a factor, heavier towards θ = 0. Relative accuracy about 1e-9 (USA 1e-4, or 1e-8 with
    ``points=24``: its transition is e^{2β} sharper) while the last mass to leave is on the grid: t < ``panels`` for SA,
    t < ``panels``·e^β for USA. Cost: 0.2 s (SA), 2 s (USA) for β ≤ 4, then (panels·points)² kernel values per stage.
    """
    positive_integer("d", d, 2)
    require(d <= _LARGEST_DIMENSION, "d", f"be ≤ {_LARGEST_DIMENSION}", d)
    beta = finite_number("beta", beta, 0.0)
    one_of("kind", kind, KINDS)
    t = np.atleast_1d(real_array("times", times, 0.0))
    require(t.ndim == 1 and bool(np.all(np.diff(t) > 0)), "times", "be increasing", times)
    phi, weights = graded_quadrature(density, d, panels, points)
    start = -np.log(np.tan(0.5 * phi))
    velocity = axis_velocity(d, beta, kind)
    clock = float(np.exp(beta)) if kind == "usa" else 1.0
    solution = integrate.solve_ivp(
        lambda _, xi: velocity(xi, weights),
        (0.0, max(float(t[-1]) * clock, 1e-300)),
        start,
        method="DOP853",
        t_eval=t * clock,
        rtol=1e-11,
        atol=1e-11,
    )
    if not solution.success:
        raise PathlinesError(f"The mean-field characteristics could not be integrated: {solution.message}")
    return 4 * weights @ special.expit(2 * solution.y)


def late_rate(d: int, beta: float, kind: str = "sa") -> float:
    """κ in W2² ≍ e^{-κt} for smooth densities: SA min(d-1, 2), USA min((d-1)e^{-β}, 2e^β) (derived).

    The first is the mass near the antipode, whose distance grows like e^t (SA), e^{e^{-β}t} (USA); the second the bulk.
    Where both are equal (SA, d = 3) a factor t appears: W2² ≍ t e^{-2t}, local slope -2+1/t. Finite n always has the
    second: never read a mean-field rate off a finite sample at late time.
    """
    positive_integer("d", d, 2)
    beta = finite_number("beta", beta, 0.0)
    if one_of("kind", kind, KINDS) == "sa":
        return float(min(d - 1, 2))
    return float(min((d - 1) * np.exp(-beta), 2 * np.exp(beta)))


def local_slope(times: ArrayLike, w2: ArrayLike) -> np.ndarray:
    """d ln(W2²)/dt by second-order differences on the given (possibly uneven) times."""
    t = real_array("times", times)
    values = real_array("w2", w2, 0.0, open_low=True)
    require(
        t.ndim == 1 and t.size > 2 and t.shape == values.shape, "times", "be 3 or more times, as many as `w2`", times
    )
    return np.gradient(np.log(values), t, edge_order=2)
