"""How fast the unnormalised mean field becomes a point mass, and what stays where it is.

The flow is ∂_tμ + ∇·(μ v) = 0, v(x) = P_x ∫ e^{β⟨x,y⟩} y dμ(y) on S^{d-1}, W2 to the point mass it tends to.
Quantitative Clustering in Mean-Field Transformer Models, arXiv:2504.14697; the sharp laws are derived.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.foundation.papers import QUANTITATIVE
from pathlines.limit.clustering.conformal import poisson_radius

SOURCES = (QUANTITATIVE,)


def sharp_rates(d: int, beta: float) -> tuple[float, float]:
    """(½(d-1)e^{-β}, e^β): the rates at which mass near the antipode and the bulk leave W2.

    A point at distance φ from the antipode leaves like φ e^{e^{-β}t}, so the mass ∝ φ^{d-1} that is left there at
    time t is e^{-(d-1)e^{-β}t}; the cluster itself contracts at rate e^β. Any real β.
    """
    positive_integer("d", d, 2)
    beta = finite_number("beta", beta)
    return float(0.5 * (d - 1) * np.exp(-beta)), float(np.exp(beta))


def sharp_rate(d: int, beta: float) -> float:
    """r = min(e^β, ½(d-1)e^{-β}) in W2 ≍ e^{-rt}, for a density bounded above and below near the antipode.

    Where both are equal, β = ``resonance(d)``, W2² ≍ t e^{-2rt}.
    """
    return min(sharp_rates(d, beta))


def resonance(d: int) -> float:
    """β = ½ ln(½(d-1)), below which the bulk is the slower part."""
    return float(0.5 * np.log(0.5 * (positive_integer("d", d, 2) - 1)))


def poisson_distance(times: ArrayLike, start: float) -> np.ndarray:
    """W2 = √(2-2r(t)) of the Poisson kernel on the circle at β = 0, r²/(1-r²) = e^t r0²/(1-r0²): rate ½."""
    radius = poisson_radius(times, start)
    late = poisson_radius(-np.asarray(times, float), float(np.sqrt((1 - start) * (1 + start))))  # √(1-r²)
    return np.sqrt(2.0) * late / np.sqrt(1 + radius)


def crossover_delay(beta: float, fewer: int, more: int) -> float:
    """e^β ln(n'/n): how much later n' quantiles on the circle than n leave the mean-field rate for e^β.

    The nearest token is 1/(2nρ) from the antipode, and distances grow like e^{e^{-β}t}: n enters through t - e^β ln n.
    """
    few, many = (positive_integer(name, value) for name, value in (("fewer", fewer), ("more", more)))
    return float(np.exp(finite_number("beta", beta)) * np.log(many / few))


def pole_growth(beta: float, mass: float) -> tuple[float, float]:
    """Growth at the stationary measure m δ_e + (1-m) δ_{-e}: of both points turned towards each other, and of a test
    particle at -e.

    e^{-β}, whatever m; m e^{-β} - (1-m)e^β: mass at -e holds what is near it as long as (1-m)e^{2β} > m.
    """
    m = finite_number("mass", mass, 0.0, 1.0)
    require(0 < m < 1, "mass", "be between 0 and 1", mass)
    beta = finite_number("beta", beta)
    return float(np.exp(-beta)), float(m * np.exp(-beta) - (1 - m) * np.exp(beta))
