"""Potentials V of targets π ∝ e^{-βV}, and how the normaliser log Z of the proximal kernel is computed.

Z(y) = E_{z~N(y, (2T/β)M)} e^{-βV(z)/2}: the column bias of the attention block of ``proximal.py`` is -log Z.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.foundation.errors import ArgumentError, a_function, finite_array, positive_integer, require
from pathlines.foundation.module import Module
from pathlines.numerics.quadrature import gauss_hermite
from pathlines.numerics.sources import semidefinite

EVALUATIONS = 1 << 20
"""Values of V that are held side by side."""


class Potential(Module):
    """V and its gradient at one point."""

    @abstractmethod
    def value(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        """V(x)."""

    @abstractmethod
    def gradient(self, x: Float[Array, " d"]) -> Float[Array, " d"]:
        """∇V(x)."""


class FunctionPotential(Potential):
    """A function of JAX arrays; its gradient is derived unless it is given."""

    function: Callable[[Array], Array] = eqx.field(static=True)
    slope: Callable[[Array], Array] | None = eqx.field(static=True)

    def __init__(self, function: Any, slope: Any = None) -> None:
        self.function = a_function("potential", function)
        self.slope = None if slope is None else a_function("gradient", slope)

    def value(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        """The function."""
        return self.function(x)

    def gradient(self, x: Float[Array, " d"]) -> Float[Array, " d"]:
        """What was given, or the derivative."""
        return jax.grad(self.function)(x) if self.slope is None else self.slope(x)


class QuadraticPotential(Potential):
    """V = ½(x - c)ᵀP(x - c): the target is N(c, P⁻¹/β), and log Z is known in closed form.

    Args:
        precision: P, symmetric with eigenvalues > 0, (d, d).
        centre: c, (d,); zero if not given.
    """

    precision: Float[Array, "d d"]
    centre: Float[Array, " d"]

    def __init__(self, precision: Any, centre: Any = None) -> None:
        matrix = finite_array("precision", precision, ("d", "d"))
        d = positive_integer("d", len(matrix))
        self.precision = jnp.asarray(semidefinite("precision", matrix, d, positive=True))
        self.centre = jnp.asarray(finite_array("centre", np.zeros(d) if centre is None else centre, (d,)).astype(float))

    def value(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        """½(x - c)ᵀP(x - c)."""
        return 0.5 * (x - self.centre) @ self.precision @ (x - self.centre)

    def gradient(self, x: Float[Array, " d"]) -> Float[Array, " d"]:
        """P(x - c)."""
        return self.precision @ (x - self.centre)


def checked_potential(potential: Any, gradient: Any, d: int) -> Potential:
    """A potential of points of R^d, tried on abstract numbers: shapes are checked, nothing is computed."""
    if isinstance(potential, Potential):
        require(gradient is None, "gradient", "be None for a potential that has one", gradient)
        known = potential
        if isinstance(known, QuadraticPotential) and len(known.centre) != d:
            raise ArgumentError(f"Argument `potential` must be one of R^{d}, but is one of R^{len(known.centre)}.")
    else:
        known = FunctionPotential(potential, gradient)
    point = jax.ShapeDtypeStruct((d,), jnp.zeros(()).dtype)
    for name, call, shape in (("potential", known.value, ()), ("gradient", known.gradient, (d,))):
        try:
            found = jax.eval_shape(call, point)
        except Exception as error:
            first = str(error).strip().splitlines()[0][:160] if str(error).strip() else "no message"
            raise ArgumentError(
                f"Argument `{name}` must be a function of one JAX array of shape ({d},), "
                f"but fails with {type(error).__name__}: {first}"
            ) from error
        if getattr(found, "shape", None) != shape:
            what = "a number" if shape == () else f"an array of shape {shape}"
            raise ArgumentError(f"Argument `{name}` must return {what}, but returns {getattr(found, 'shape', found)}.")
    return known


class Kernel(Module):
    """What the proximal kernel is made of: β, T and a factor L of M = LLᵀ."""

    beta: Float[Array, ""]
    regularisation: Float[Array, ""]
    factor: Float[Array, "d d"]

    @property
    def spread(self) -> Float[Array, "d d"]:
        """(2T/β)M."""
        return 2 * self.regularisation / self.beta * self.factor @ self.factor.T


class Normaliser(Module):
    """A way to compute log Z."""

    @abstractmethod
    def __call__(self, potential: Any, kernel: Kernel, y: Float[Array, "n d"]) -> Float[Array, " n"]:
        """Log Z(y_j)."""


class ClosedForm(Normaliser):
    """-½ log det(I + CQ) - ½ (y-c)ᵀ Q(I + CQ)⁻¹ (y-c), C = (2T/β)M, Q = βP/2, for quadratic potentials: O(nd²)."""

    def __call__(self, potential: Any, kernel: Kernel, y: Float[Array, "n d"]) -> Float[Array, " n"]:
        """The Gaussian integral."""
        bent = kernel.beta / 2 * potential.precision
        grown = jnp.eye(y.shape[1]) + kernel.spread @ bent
        away = y - potential.centre[None]
        return -0.5 * (
            jnp.linalg.slogdet(grown)[1] + jnp.sum(away * jnp.linalg.solve(grown.T, bent @ away.T).T, axis=1)
        )


class Nodes(Normaliser):
    """log Σ_s w_s e^{-βV(y + √(2T/β) Lξ_s)/2} over nodes ξ_s of N(0, I): S values of V for each particle.

    Gauss-Hermite nodes are exact for Z of polynomials of degree < 2·order; drawn ones (in pairs ±ξ, the same for all
    particles and steps) are wrong by about the standard deviation of e^{-βV/2}/Z over the kernel, times S^{-1/2}.
    """

    nodes: Float[Array, "s d"]
    log_weights: Float[Array, " s"]

    def __call__(self, potential: Any, kernel: Kernel, y: Float[Array, "n d"]) -> Float[Array, " n"]:
        """Blocks of particles, so that memory does not grow with n."""
        moves = jnp.sqrt(2 * kernel.regularisation / kernel.beta) * self.nodes @ kernel.factor.T

        def one(point: Array) -> Array:
            values = jax.vmap(potential.value)(point[None] + moves)
            return jax.nn.logsumexp(self.log_weights - kernel.beta / 2 * values)

        block = max(1, EVALUATIONS // len(self.nodes))
        return jax.vmap(one)(y) if len(y) <= block else jax.lax.map(one, y, batch_size=block)


class Laplace(Normaliser):
    """The closed form for the quadratic part of V at y: -βV/2 + (β²/8) gᵀC(I + βHC/2)⁻¹g - ½ log det(I + βHC/2).

    One Hessian H (the work of d gradients) for each particle. Needs I + T LᵀHL positive: NaN where V bends down more.
    """

    def __call__(self, potential: Any, kernel: Kernel, y: Float[Array, "n d"]) -> Float[Array, " n"]:
        """In whitened coordinates, C = (2T/β)LLᵀ."""
        pull, beta = kernel.regularisation, kernel.beta

        def one(point: Array) -> Array:
            slope = kernel.factor.T @ potential.gradient(point)
            bend = kernel.factor.T @ jax.jacfwd(potential.gradient)(point) @ kernel.factor
            values, axes = jnp.linalg.eigh(jnp.eye(len(point)) + pull * (bend + bend.T) / 2)
            along = axes.T @ slope
            gain = beta * pull / 4 * jnp.sum(along**2 / values)
            return -beta / 2 * potential.value(point) + gain - 0.5 * jnp.sum(jnp.log(values))

        return jax.lax.map(one, y, batch_size=max(1, min(len(y), EVALUATIONS // (8 * y.shape[1] ** 2 + 1))))


def hermite_nodes(d: int, order: int) -> Nodes:
    """``order``^d nodes."""
    tokens, masses = gauss_hermite(np.zeros(d), np.eye(d), order)
    return Nodes(jnp.asarray(tokens), jnp.log(jnp.asarray(masses)))


def drawn_nodes(d: int, count: int, key: Any) -> Nodes:
    """``count`` draws, in pairs ±ξ."""
    half = jax.random.normal(key, (-(-count // 2), d))
    return Nodes(jnp.concatenate([half, -half]), jnp.full(2 * len(half), -np.log(2.0 * len(half))))
