"""The covariance of what random perceptrons say at two places: of any activation, with its digits where they meet.

Elementary kernels have twelve digits at least (relu loses them, to eight, at gaps below 1e-14); tables have them for
functions that are smooth but for a kink at 0, and about three with kinks elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.polynomial import chebyshev

from pathlines.foundation.errors import ArgumentError, UnknownNameError, require
from pathlines.foundation.module import Module
from pathlines.foundation.traceable import is_traced, traceable_number
from pathlines.model.parts.perceptron import ACTIVATIONS

Function = Callable[[Array], Array]
Scalar = Float[Array, ""]
NODES = 64
"""Chebyshev points in the angle at which the kernel of an activation without closed form is computed."""
REACH = 8.5
"""Normal deviates beyond are rarer than 1e-16."""
LARGEST = 50.0
"""Largest deviation of a pre-activation of which a table is made; the work grows with its square."""


def _relu(u: Array, w: Scalar, b: Scalar) -> tuple[Scalar, Array]:
    share = w * w / (w * w + b * b)
    angle = 2 * jnp.arcsin(jnp.sqrt(share * u / 2))
    bent = jnp.sin(angle) - angle * jnp.cos(angle)
    return (w * w + b * b) / 2, (w * w * u - (w * w + b * b) * bent / math.pi) / 2


def _erf(u: Array, w: Scalar, b: Scalar) -> tuple[Scalar, Array]:
    whole = 1 + 2 * (w * w + b * b)
    one = (whole - 1) / whole
    other = one - 2 * w * w * u / whole
    half = jnp.arctan(2 * w * w * u / whole / (jnp.sqrt(1 - one**2) + jnp.sqrt(1 - other**2)))
    return 2 / math.pi * jnp.arcsin(one), 4 / math.pi * half


CLOSED: dict[str, Callable[[Array, Scalar, Scalar], tuple[Scalar, Array]]] = {
    "linear": lambda u, w, b: (w * w + b * b, w * w * u),
    "relu": _relu,
    "erf": _erf,
}
"""(k(1), k(1) - k(1-u)) of activations whose kernel is elementary."""


class FieldKernel(Module):
    """k(ρ) = E φ(g)φ(g'), (g, g') Gaussian of variance σ_w² + σ_b² and covariance σ_w²ρ + σ_b², as k(1) and
    k(1) - k(1-u) = ½E(φ(g) - φ(g'))², which keeps its digits however small u = 1 - ρ = ½|x-y|².

    Activations without an elementary kernel have a table of Chebyshev coefficients in the angle, made once by Gauss
    panels in two normal variables that end where g or g' is 0.
    """

    sigma_w: Scalar
    sigma_b: Scalar
    table: Float[Array, " k"] | None
    own: Scalar | None
    activation: str | Function = eqx.field(static=True)

    def __init__(self, activation: str | Function = "relu", sigma_w: float = 1.0, sigma_b: float = 0.0) -> None:
        if isinstance(activation, str) and activation not in ACTIVATIONS:
            raise UnknownNameError(f"There is no activation `{activation}`; there are {', '.join(ACTIVATIONS)}.")
        if not isinstance(activation, str):
            require(callable(activation), "activation", "be a name or a function of an array", activation)
        self.activation = activation
        w = traceable_number("sigma_w", sigma_w, low=0.0)
        b = traceable_number("sigma_b", sigma_b, low=0.0)
        if not is_traced(w, b):
            require(w + b > 0, "sigma_w", "be > 0, or `sigma_b`", sigma_w)
        self.sigma_w, self.sigma_b, self.table, self.own = jnp.asarray(w), jnp.asarray(b), None, None
        if activation in CLOSED:
            return
        if is_traced(w, b):
            raise ArgumentError(f"Arguments `sigma_w` and `sigma_b` must be known numbers for {activation!r}.")
        with jax.ensure_compile_time_eval():
            own, table = _tabulated(self.function, float(w), float(b))
        self.own, self.table = jnp.asarray(own), jnp.asarray(table)

    @property
    def function(self) -> Function:
        """φ."""
        return ACTIVATIONS[self.activation] if isinstance(self.activation, str) else self.activation

    def both(self, u: Array) -> tuple[Scalar, Array]:
        """(k(1), k(1) - k(1-u))."""
        if self.table is None:
            assert isinstance(self.activation, str)
            return CLOSED[self.activation](u, self.sigma_w, self.sigma_b)
        place = 4 / math.pi * jnp.arcsin(jnp.sqrt(u / 2)) - 1
        one, two = jnp.zeros_like(u), jnp.zeros_like(u)
        for coefficient in self.table[:0:-1]:
            one, two = coefficient + 2 * place * one - two, one
        assert self.own is not None
        return self.own, u * (self.table[0] + place * one - two)


def _tabulated(function: Function, w: float, b: float) -> tuple[float, np.ndarray]:
    """(k(1), coefficients of (k(1) - k(cos θ))/(1 - cos θ) in T_k(2θ/π - 1)), the small last ones left out."""
    size = math.hypot(w, b)
    require(size <= LARGEST, "sigma_w", f"be ≤ {LARGEST:g}, together with `sigma_b`, for this activation", size)
    unit, share = _panels(REACH * max(size, 1.0))
    density = REACH * share * np.exp(-((REACH * unit) ** 2) / 2) * math.sqrt(2 / math.pi)  # of |z|

    def values(x: np.ndarray) -> np.ndarray:
        found = np.asarray(function(jnp.asarray(x)))
        fine = found.shape == x.shape and bool(np.all(np.isfinite(found)))
        require(fine, "activation", "give a finite number for every number of an array", function)
        return found

    own = float(density @ (values(size * REACH * unit) ** 2 + values(-size * REACH * unit) ** 2)) / 2
    if w == 0:
        return own, np.zeros(1)

    def apart(c: float, h: float) -> float:
        """½E(φ(cz + hz') - φ(cz - hz'))², z' > 0, z between -REACH, -hz'/c, hz'/c and REACH."""
        other = REACH * unit[:, None]
        edge = np.minimum(h * other / max(c, 1e-300), REACH)
        cuts = np.concatenate([np.full_like(edge, -REACH), -edge, edge, np.full_like(edge, REACH)], axis=1)
        wide = np.diff(cuts, axis=1)[..., None]
        z = cuts[:, :-1, None] + wide * unit
        first, second = values(np.stack([c * z + h * other[..., None], c * z - h * other[..., None]]))
        inner = np.sum((first - second) ** 2 * wide * np.exp(-(z**2) / 2), axis=1) @ share
        return float(density @ inner) / math.sqrt(8 * math.pi)

    def quotient(place: np.ndarray) -> np.ndarray:
        u = 2 * np.sin((place + 1) * math.pi / 4) ** 2
        half = np.sqrt(w * w * u / 2)  # x, y = size-preserving: g, g' = c z ± h z'
        kept = np.sqrt(size**2 - half**2)
        return np.array([apart(c, h) for c, h in zip(kept, half)]) / u

    coefficients = chebyshev.chebinterpolate(quotient, NODES - 1)  # type: ignore[type-var]
    large = np.flatnonzero(np.abs(coefficients) > 1e-12 * np.abs(coefficients).max())
    return own, coefficients[: large[-1] + 1] if len(large) else np.zeros(1)


def _panels(length: float) -> tuple[np.ndarray, np.ndarray]:
    """Gauss points and weights on [0, 1], sixteen a panel; panels grow from both ends, 2, 2, 4, 8 of ``length``."""
    sizes = [2.0, 2.0, 4.0] + [8.0] * math.ceil(length / 16)
    ends = np.minimum(np.cumsum([0.0, *sizes]) / length, 0.5)
    ends = np.unique(np.concatenate([ends, 1 - ends]))
    points, weights = np.polynomial.legendre.leggauss(16)
    middle, radius = (ends[1:] + ends[:-1]) / 2, np.diff(ends) / 2
    return (middle[:, None] + np.outer(radius, points)).ravel(), np.outer(radius, weights).ravel()
