"""The covariance of what random perceptrons say at two places: of any activation, to the last digit where they meet."""

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


def _relu(u: Array, w: Scalar, b: Scalar) -> tuple[Scalar, Array]:
    share = w * w / (w * w + b * b)
    angle = 2 * jnp.arcsin(jnp.sqrt(share * u / 2))
    bent = jnp.sin(angle) - angle * jnp.cos(angle)
    return (w * w + b * b) / 2, (w * w * u - (w * w + b * b) * bent / math.pi) / 2


def _erf(u: Array, w: Scalar, b: Scalar) -> tuple[Scalar, Array]:
    whole = 1 + 2 * (w * w + b * b)
    one = (whole - 1) / whole
    other = one - 2 * w * w * u / whole
    half = jnp.arctan((one - other) / (jnp.sqrt(1 - one**2) + jnp.sqrt(1 - other**2)))
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

    Activations without an elementary kernel have a table of Chebyshev coefficients in the angle, made once by the
    trapezoid rule in two normal variables.
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
    step = min(0.12, 0.25 / size)
    z = step * np.arange(-math.ceil(REACH / step), math.ceil(REACH / step) + 1)
    weight = np.exp(-z * z / 2) / np.exp(-z * z / 2).sum()

    def values(x: np.ndarray) -> np.ndarray:
        found = np.asarray(function(jnp.asarray(x)))
        fine = found.shape == x.shape and bool(np.all(np.isfinite(found)))
        require(fine, "activation", "give a finite number for every number of an array", function)
        return found

    own = float(weight @ values(size * z) ** 2)
    if w == 0:
        return own, np.zeros(1)

    def quotient(place: np.ndarray) -> np.ndarray:
        u = 2 * np.sin((place + 1) * math.pi / 4) ** 2
        half = np.sqrt(w * w * u / 2)  # x, y = size-preserving: g, g' = c z ± h z'
        kept = np.sqrt(size**2 - half**2)
        apart = [values(c * z[:, None] + h * z) - values(c * z[:, None] - h * z) for c, h in zip(kept, half)]
        return np.array([weight @ (a * a) @ weight for a in apart]) / (2 * u)

    coefficients = chebyshev.chebinterpolate(quotient, NODES - 1)  # type: ignore[type-var]
    large = np.flatnonzero(np.abs(coefficients) > 1e-12 * np.abs(coefficients).max())
    return own, coefficients[: large[-1] + 1] if len(large) else np.zeros(1)
