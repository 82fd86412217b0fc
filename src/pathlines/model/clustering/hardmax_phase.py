"""The last phase in R^d: attention is 0/1, each token relaxes towards its leader, leaders may change."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.sparse import csr_array, eye_array, kron
from scipy.sparse.linalg import expm_multiply

from pathlines.model.capability import HasAttention, HasFlowMap

LOOKS = 16
"""Moments at which the leaders of an interval are checked before a change is bisected."""


class HardmaxPhase(HasAttention, HasFlowMap):
    """dz_i/dt = V (z_{l(i)} - z_i), l(i, t) = argmax_j <Q e^{tV} z_i, K e^{tV} z_j> (arXiv:2305.05465, late times).

    Softmax scores grow like e^{2λt}, so that past the horizon of floating point they differ by far more than one
    unless they tie to rounding: this is the same equation. Between two changes of leaders it is linear and solved
    exactly; a change is found by bisection. ``settled`` says that leaders are known never to change.
    """

    value: Float[Array, "d d"]
    leader: Int[Array, " n"]
    parent: Any
    settled: bool = eqx.field(static=True, default=False)

    def check(self, tokens: Any) -> None:
        """States come from a run of ``RescaledAttention``."""

    def initial(self, tokens: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """z."""
        return tokens

    def tokens(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n d"]:
        """z."""
        return state

    @property
    def on_sphere(self) -> bool:
        """R^d."""
        return False

    def pair_scores(self, z: Float[Array, "n d"]) -> Float[Array, "n n"]:
        """<Q z_i, K z_j> of the softmax phase."""
        return self.parent.pair_scores(z)

    def leaders(self, state: Float[Array, "n d"], t: Array) -> Int[Array, " n"]:
        """l(i, t): the leader at the start of this phase unless another token now scores more, beyond rounding."""
        return self.leader if self.settled else _leaders(self.parent, self.leader, state, t)[0]

    def attention_matrix(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n n"]:
        """1 at the leader, 0 elsewhere."""
        return jax.nn.one_hot(self.leaders(state, t), state.shape[0], dtype=state.dtype)

    def drift(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n d"]:
        """V (z_{l(i)} - z_i)."""
        return (state[self.leaders(state, t)] - state) @ self.value.T

    @property
    def spectrum(self) -> Spectrum:
        """The eigen-decomposition of V, on the host."""
        return Spectrum(*(np.asarray(a) for a in (self.parent.eigenvalues, self.parent.vectors, self.parent.inverse)))

    def flow_map(self, state: Any, t: float, until: float) -> Any:
        """The exact solution, from one change of leaders to the next."""
        z, spectrum = np.asarray(state, float), self.spectrum
        if self.settled:
            return frozen_flow(z, np.asarray(self.leader), spectrum, until - t).astype(state.dtype)
        leader = np.asarray(self.leaders(jnp.asarray(z), jnp.asarray(t)))
        rate = float(np.abs(spectrum.values).max())
        while t < until:
            ahead = min(until, t + 2.0 / max(rate, 1e-300))
            z, leader, t = self._to_next_change(z, leader, t, ahead)
        return z.astype(state.dtype)

    def _to_next_change(
        self, z: np.ndarray, leader: np.ndarray, t: float, until: float
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """(state, leaders, time) at the first change of leaders before ``until``, or there if there is none."""
        spectrum = self.spectrum

        def arrived(s: float) -> tuple[np.ndarray, np.ndarray, bool]:
            there = frozen_flow(z, leader, spectrum, s - t)
            now, changed = _leaders(self.parent, jnp.asarray(leader), jnp.asarray(there), jnp.asarray(s))
            return there, np.asarray(now), bool(changed)

        moments = np.linspace(t, until, LOOKS + 1)[1:]
        late = next((s for s in moments if arrived(s)[2]), None)
        if late is None:
            return frozen_flow(z, leader, spectrum, until - t), leader, until
        early = late - (until - t) / LOOKS
        while late - early > 1e-13 * max(abs(late), 1.0):
            middle = (early + late) / 2
            early, late = (early, middle) if arrived(middle)[2] else (middle, late)
        there, now, _ = arrived(late)
        return there, now, late


@jax.jit
def _leaders(parent: Any, leader: Int[Array, " n"], z: Float[Array, "n d"], t: Array) -> tuple[Int[Array, " n"], Array]:
    """The tokens that score highest, the present leader first within rounding; and whether any differs from it."""
    scores = parent.leading_scores(z, t)
    led = jnp.take_along_axis(scores, leader[:, None], axis=1)[:, 0]
    slack = 1e3 * jnp.finfo(z.dtype).eps * jnp.max(jnp.abs(scores), axis=1)
    overtaken = jnp.max(scores, axis=1) > led + slack
    return jnp.where(overtaken, jnp.argmax(scores, axis=1), leader), jnp.any(overtaken)


class Spectrum(NamedTuple):
    """V = vectors · diag(values) · inverse."""

    values: np.ndarray
    vectors: np.ndarray
    inverse: np.ndarray


def frozen_flow(z: np.ndarray, leader: np.ndarray, spectrum: Spectrum, s: float) -> np.ndarray:
    """z(t+s) = exp(s (P - I) ⊗ V) z(t) for leaders P that do not change during s.

    In a coordinate of eigenvalue λ, with x = λs, it is e^{-x} Σ_{k<D} x^k/k! P^k y + (1 - e^{-x} Σ_{k<D} x^k/k!) P^D y
    when chains of leaders end after D hops at tokens that follow themselves (D = 1: y_l + e^{-x}(y - y_l)). Leaders
    that follow each other in a cycle, which needs QᵀK ≠ I, take the exponential of the whole graph.
    """
    y = z @ spectrum.inverse.T
    x = spectrum.values * s
    term, left, out, ahead = np.exp(-x), np.ones_like(x), np.zeros_like(y + x), np.arange(len(z))
    for hop in range(len(z)):
        if np.array_equal(leader[ahead], ahead):
            return np.real((out + left * y[ahead]) @ spectrum.vectors.T)
        out, left = out + term * y[ahead], left - term
        term, ahead = term * x / (hop + 1), leader[ahead]
    return _cyclic_flow(z, leader, np.real(spectrum.vectors * spectrum.values @ spectrum.inverse), s)


def _cyclic_flow(z: np.ndarray, leader: np.ndarray, value: np.ndarray, s: float) -> np.ndarray:
    n = len(z)
    graph = csr_array((np.ones(n), (np.arange(n), leader)), shape=(n, n)) - eye_array(n)
    return expm_multiply(s * kron(graph, csr_array(value)).tocsr(), z.reshape(-1)).reshape(z.shape)
