"""Which degree grows fastest, over β and the dimension (arXiv:2410.23228; the law derived)."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import brentq

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import absolute, exactly
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import METASTABLE_EMERGENCE
from pathlines.foundation.setting import Setting
from pathlines.limit.metastability.growth import law_of_dominant_degree, threshold
from pathlines.model.metastability.zonal_start import zonal_polynomials


@partial(jax.jit, static_argnums=(2, 3))
def _rates(betas: Float[Array, " b"], x: Float[Array, " n"], degree: int, d: int) -> Float[Array, "b k"]:
    """Rates of the degrees 1..``degree`` under SA by quadrature of attention over rings, without Bessel functions.

    A bump P_k changes the potential at the pole by E[a P_k], a the attention weights of uniform tokens, and moves
    tokens along its gradient: λ_k = E[a P_k] · E[(1-s²)P_k'²]/E[P_k²]/β, (1-s²)P_k' = k(P_{k-1} - sP_k). Means are
    sums over s = tanh x, where the law of s is (1-s²)^{(d-1)/2} dx and the trapezoid rule spectrally accurate.
    """
    s, log_cosh = jnp.tanh(x), jnp.logaddexp(x, -x) - jnp.log(2.0)
    log_weights = -(d - 1) * log_cosh
    weights = jax.nn.softmax(log_weights)
    table = zonal_polynomials(s, degree, d)
    order = jnp.arange(1, degree + 1, dtype=s.dtype)[:, None]
    slopes = order * (table[:-1] - s[None] * table[1:])
    stiffness = slopes**2 @ (weights * jnp.exp(2 * log_cosh)) / (table[1:] ** 2 @ weights)
    attention = jax.nn.softmax(betas[:, None] * s[None] + log_weights[None], axis=-1)
    return attention @ table[1:].T * stiffness[None] / betas[:, None]


def _measured(betas: Any, d: int, degree: int, nodes: int) -> np.ndarray:
    """Rates for each β; the grid reaches to where the law of s is below rounding."""
    x = np.linspace(-1, 1, nodes) * (3 + 75 / d)
    return np.asarray(_rates(jnp.asarray(betas, float), jnp.asarray(x), degree, d))


class DominantDegree(Setting):
    """The fastest degree over β and d."""

    dimensions: of.Dimensions = (2, 3, 4, 8, 16, 64)
    betas: of.Betas = (1.0, 2.0, 4.0, 5.0, 7.0, 9.0, 16.0, 25.0, 49.0, 81.0, 100.0, 200.0, 400.0)
    nodes: of.Nodes = 4000


def simulate_law(s: DominantDegree) -> Evidence:
    """The fastest of the measured rates in each cell."""
    degree = 4 + int(2 * np.sqrt(2 * max(s.betas)))
    found = np.array([1 + np.argmax(_measured(s.betas, d, degree, s.nodes), axis=1) for d in s.dimensions])
    curves = tuple(Curve(f"d = {d}", s.betas, row) for d, row in zip(s.dimensions, found, strict=True))
    law = np.array([law_of_dominant_degree(s.betas, d) for d in s.dimensions])
    return Evidence({"degree": found, "law": found, "exceptions": np.sum(found != law)}, curves=curves)


def _by_thresholds(betas: Any, d: int) -> np.ndarray:
    """One more than the number of thresholds below each β."""
    edges = [threshold(1, d)]
    while edges[-1] < max(betas):
        edges.append(threshold(len(edges) + 1, d))
    return 1 + np.searchsorted(edges, betas)


def _exceptions(betas: Any, d: int) -> int:
    """How many β lie between a threshold and (k+½)(k+d-3/2)/2, where the rounded law jumps to k+1."""
    between = 0
    for k in range(1, int(2 * np.sqrt(2 * max(betas))) + 3):
        low, high = sorted((threshold(k, d), (k + 0.5) * (k + d - 1.5) / 2))
        between += sum(low < beta < high for beta in betas)
    return between


def predict_law(s: DominantDegree) -> Evidence:
    """Thresholds, and the rounded square root."""
    fine = np.geomspace(min(s.betas), max(s.betas), 60)
    exact = np.array([_by_thresholds(s.betas, d) for d in s.dimensions])
    law = np.array([law_of_dominant_degree(s.betas, d) for d in s.dimensions])
    a = np.asarray(s.dimensions) / 2 - 1
    curves = tuple(
        Curve(f"√(2β+a²)−a, d = {d}", fine, np.maximum(1, np.sqrt(2 * fine + x * x) - x))
        for d, x in zip(s.dimensions, a, strict=True)
    )
    values = {"degree": exact, "law": law, "exceptions": sum(_exceptions(s.betas, d) for d in s.dimensions)}
    return Evidence(values, curves=curves)


claim(
    "metastability/G3",
    METASTABLE_EMERGENCE,
    "law of the dominant degree (derived)",
    "The fastest degree is k* = max(1, round(√(2β+a²) − a)), a = d/2−1: about √(2β) clusters on the circle. It is one "
    "off only between a threshold and the β where the rounded law jumps, which is none of these cells. Degree k+1 "
    "takes over from k where I_{k+a+1}/I_{k+a}(β) = k(k+d−2)/((k+1)(k+d−1)).",
    where="dominant degree k*; the law is derived",
    models=("zonal",),
    quick=DominantDegree(),
    full=DominantDegree(nodes=8000),
    within={
        "degree": exactly("degrees"),
        "law": absolute(1.0, "one off between a threshold and the β at which the rounded law jumps"),
        "exceptions": exactly("cells between the two; elsewhere the rounded law is exact"),
    },
    simulate=simulate_law,
    predict=predict_law,
    axes=Axes("β", "fastest degree k*", x_scale="log", y_scale="log"),
    blind={"law": "degrees are whole numbers: one off in 28, and `exceptions` counts the cells"},
    note="Rates by quadrature of the attention weights over the sphere, thresholds from ratios of Bessel functions.",
)


def _crossing(d: int, nodes: int) -> float:
    """β at which the measured rates of degrees 1 and 2 are equal."""

    def excess(beta: float) -> float:
        one, two = _measured([beta], d, 2, nodes)[0]
        return float(two / one - 1)

    return float(brentq(excess, 0.3 * d, 1.5 * d, xtol=1e-10 * d))


class Overtaking(Setting):
    """Where degree 2 overtakes degree 1."""

    dimensions: of.Dimensions = (8, 100, 1000)
    nodes: of.Nodes = 6000


def simulate_threshold(s: Overtaking) -> Evidence:
    """Bisection on the measured rates."""
    found = [_crossing(int(d), s.nodes) / d for d in s.dimensions]
    return Evidence({"threshold": found}, curves=(Curve("measured", s.dimensions, found),))


def predict_threshold(s: Overtaking) -> Evidence:
    """I_{d/2+1}/I_{d/2}(β) = (d-1)/2d."""
    d = np.unique(np.round(np.geomspace(min(s.dimensions), max(s.dimensions), 30))).astype(int)
    curves = (
        Curve("I_{d/2+1}/I_{d/2}(β) = (d−1)/2d", d, [threshold(1, int(k)) / k for k in d]),
        Curve("2/3", d, np.full(len(d), 2 / 3)),
    )
    return Evidence({"threshold": [threshold(1, int(k)) / k for k in s.dimensions]}, curves=curves)


claim(
    "metastability/G4",
    METASTABLE_EMERGENCE,
    "high dimension goes straight to one cluster (derived)",
    "Degree 2 overtakes degree 1 at β₁₂(d) with β₁₂/d → 2/3: for smaller β, such as β ~ √d, the uniform law collapses "
    "to one cluster without a phase of several.",
    where="derived; no statement in the paper",
    models=("zonal",),
    quick=Overtaking(),
    full=Overtaking(dimensions=(8, 100, 1000, 10000)),
    within={
        "threshold": absolute(1e-9, "bisection to 1e-10 d; rounding of a difference of rates over its slope in β/d")
    },
    simulate=simulate_threshold,
    predict=predict_threshold,
    axes=Axes("dimension d", "β₁₂/d", x_scale="log"),
)
