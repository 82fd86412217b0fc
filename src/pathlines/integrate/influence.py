"""One prompt's say about retrieval: N times an unbiased sample of E φ(last token, source), and controls of known mean.

By parts in the uniform start of the source (derived; the model is that of Kinetic theory for Transformers and the
lost-in-the-middle phenomenon, arXiv:2605.09213), on the circle and on S^{d-1}, with J the derivative of the last token
y = x_N(t) in the start x = x_i(0), P_ℓ the Gegenbauer polynomial with P_ℓ(1) = 1, s = <y, x> and P_x the projection,

    E cos n(θ_N - θ_i) = E[ J cos n(θ_N - θ_i) ],
    E P_ℓ(s) = E[ P_ℓ'(s) tr(J P_x) + P_ℓ''(s) <x, J P_x y> ]/(ℓ(ℓ+d-2)).

Controls are functions of where the pair starts: on the circle -w''(D)W(D), the first order in depth, of mean
Σ w_n n² I_n(β); on spheres P_1 … P_4 of <x_N(0), x_i(0)>, of mean zero.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from pathlines.integrate.prompts import decoded
from pathlines.integrate.sphere_prompts import sphere_decoded
from pathlines.model.causal.decoder import CausalDecoder

CONTROLS = 4
"""Harmonics of the pair's start that are taken off on spheres."""


def decoder_kernel(distance: ArrayLike, vocabulary: int, decoder: str = "soft") -> Float[Array, "*s"]:
    """W(D) in closed form: ½(M√(2/π) Σ_k e^{-M²(D-2πk)²/(2π²)} - 1), or ½(1{|D| ≤ π/M} - 1/M)."""
    near, m = jnp.abs(jnp.remainder(jnp.asarray(distance) + jnp.pi, 2 * jnp.pi) - jnp.pi), vocabulary
    if decoder == "hard":
        return 0.5 * (jnp.where(near <= jnp.pi / m, 1.0, 0.0) - 1 / m)
    # other copies of the peak are below e^{-2M²}, 1e-21 for M ≥ 5
    copies = (0, 1) if m >= 5 else (-1, 0, 1, 2)
    peaks = jnp.sum(jnp.stack([jnp.exp(-((m * (near / jnp.pi - 2 * k)) ** 2) / 2) for k in copies]), axis=0)
    return 0.5 * (m * math.sqrt(2 / math.pi) * peaks - 1)


class CircleInfluence(NamedTuple):
    """Angles: a decoder over M codewords, or one mode; by the adjoint or without it."""

    vocabulary: int
    decoder: str
    mode: int | None
    adjoint: bool

    def starts(self, key: Array, count: int, n: int) -> Array:
        """Uniform angles."""
        return jax.random.uniform(key, (count, n), float, 0.0, 2 * jnp.pi)

    def ends(self, model: Any, starts: Array, depth: float, layers: int | None, steps: int | None) -> tuple[Any, Any]:
        """Where the last angle ends, and its derivatives."""
        ends, gradients = decoded(model, starts, depth, layers=layers, steps=steps, adjoint=self.adjoint)
        return ends[:, -1], gradients

    def kernel(self, x: Array) -> Array:
        """W(x)."""
        return decoder_kernel(x, self.vocabulary, self.decoder) if self.mode is None else jnp.cos(self.mode * x)

    def known(self, model: CausalDecoder) -> np.ndarray:
        """E[-w''(D)W(D)] = Σ w_n n² I_n over uniform D."""
        if not self.adjoint:
            return np.zeros(0)
        bessel = np.asarray(model.bessel, float)
        k, m = np.arange(1, len(bessel)), self.vocabulary
        if self.mode is not None:
            weights = (k == self.mode).astype(float)
        elif self.decoder == "soft":
            weights = np.exp(-((np.pi * k / m) ** 2) / 2)
        else:
            weights = np.sin(np.pi * k / m) / (np.pi * k)
        return np.array([np.sum(weights * k**2 * bessel[1:])])

    def samples(self, start: Array, ends: tuple[Array, Any], beta: Array) -> list[Array]:
        """(value, control) of every prompt and position."""
        n = start.shape[1]
        value = n * self.kernel(ends[0][:, None] - start[:, :-1])
        if not self.adjoint:
            return [value]
        before = start[:, -1:] - start[:, :-1]
        # w'' = (β² sin² - β cos) e^{β cos}
        second = (beta**2 * jnp.sin(before) ** 2 - beta * jnp.cos(before)) * jnp.exp(beta * jnp.cos(before))
        return [value * ends[1][:, :-1], -second * self.kernel(before)]


class SphereInfluence(NamedTuple):
    """Tokens on S^{d-1}: the harmonic of degree ℓ; by the derivative or without it."""

    degree: int
    d: int
    adjoint: bool

    def starts(self, key: Array, count: int, n: int) -> Array:
        """Uniform tokens."""
        x = jax.random.normal(key, (count, n, self.d), float)
        return x / jnp.linalg.norm(x, axis=-1, keepdims=True)

    def ends(self, model: Any, starts: Array, depth: float, layers: int | None, steps: int | None) -> tuple[Any, Any]:
        """Where the last token ends, and its derivatives."""
        return sphere_decoded(model, starts, depth, layers=layers, steps=steps, adjoint=self.adjoint)

    def known(self, model: Any) -> np.ndarray:
        """Zero: harmonics."""
        return np.zeros(CONTROLS if self.adjoint else 0)

    def samples(self, start: Array, ends: tuple[Array, Any], beta: Array) -> list[Array]:
        """(value, controls) of every prompt and position."""
        end, jacobian = ends
        n, source = start.shape[1], start[:, :-1]
        zonal = zonal_polynomial(self.degree, self.d)
        overlap = jnp.einsum("ra,ria->ri", end, source)
        if not self.adjoint:
            return [n * jnp.polyval(zonal.coef[::-1], overlap)]
        own = jacobian[:, :, :-1]
        radial = jnp.einsum("raib,rib->ria", own, source)  # J x
        trace = jnp.einsum("raia->ri", own) - jnp.einsum("ria,ria->ri", source, radial)
        across = jnp.einsum("ria,raib,rb->ri", source, own, end)
        across -= overlap * jnp.einsum("ria,ria->ri", source, radial)
        first, second = (jnp.polyval(zonal.deriv(k).coef[::-1], overlap) for k in (1, 2))
        value = n * (first * trace + second * across) / (self.degree * (self.degree + self.d - 2))
        before = jnp.einsum("ra,ria->ri", start[:, -1], source)
        return [value, *(jnp.polyval(zonal_polynomial(k, self.d).coef[::-1], before) for k in range(1, CONTROLS + 1))]


def zonal_polynomial(degree: int, d: int) -> np.polynomial.Polynomial:
    """The Gegenbauer polynomial of S^{d-1} with P_ℓ(1) = 1: (ℓ+d-2)P_{ℓ+1} = (2ℓ+d-2) s P_ℓ - ℓ P_{ℓ-1}."""
    s = np.polynomial.Polynomial([0.0, 1.0])
    before, now = np.polynomial.Polynomial([1.0]), s
    for k in range(1, degree):
        before, now = now, ((2 * k + d - 2) * s * now - k * before) / (k + d - 2)
    return now if degree else before
