"""Layers of the dual filter for tokens of a hidden chain: a fixed point on measures π_0..π_T, one for each place.

With the embedding e(0) = -1, e(z) = e_z, any function of a token is affine in e(z). So for every function g of the
state

    π_{t+1}(g) = π_t(Ag) - U_t · ( e(Z_{t+1}) - π_t(c) ),
    U_{t,z} = mean_{z'} M(z') - M(z),   M(z) = π_t(C_z Ag)/π_t(C_z),

c(x) = E[e(Z) | x]. A layer sweeps backwards from g = 1_x at each place s with the measures of the layer before,
y_t = A y_{t+1} + c·U_t, and puts π_s(x) ← μ(y_0) - Σ_{t<s} U_t · e(Z_{t+1}): every place attends to the tokens before
it with the weights U. The exact filter is the one fixed point, and ℓ layers have the measures of the first ℓ places
[derived; the layer of the paper, Transformer-like Inference from Optimal Control, arXiv:2605.15608, may differ].
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from pathlines.numerics.sources import HiddenMarkov


class Chain(NamedTuple):
    """A, C, μ, the embedded tokens e(Z_1..T) and the embedding itself."""

    kernel: Float[Array, "D D"]
    emission: Float[Array, "D m+1"]
    start: Float[Array, " D"]
    embedded: Float[Array, "T m"]
    embedding: Float[Array, "m+1 m"]


class Filtered(NamedTuple):
    """After the last layer: measures π_s, and the weights U of every place and state on every token."""

    measures: Float[Array, "T+1 D"]
    weights: Float[Array, "T+1 T D m"]


def chain_of(source: HiddenMarkov, tokens: Int[Array, " T"]) -> Chain:
    """The arrays of a source and its tokens on the device."""
    size = source.emission.shape[1] - 1
    embedding = jnp.concatenate([-jnp.ones((1, size)), jnp.eye(size)])
    kernel, emission, start = map(jnp.asarray, (source.kernel, source.emission, source.start))
    return Chain(kernel, emission, start, embedding[jnp.asarray(tokens)], embedding)


def weights_of(c: Chain, measure: Float[Array, " D"], moved: Float[Array, "D g"]) -> Float[Array, "g m"]:
    """U for the functions Ag = ``moved``; a token that cannot come is taken to say nothing."""
    joint = measure[:, None] * c.emission
    chance = joint.sum(axis=0)
    known = chance > 0
    means = jnp.where(known, moved.T @ joint / jnp.where(known, chance, 1.0)[None], (measure @ moved)[:, None])
    return means.mean(axis=1, keepdims=True) - means[:, 1:]


def place(c: Chain, measures: Float[Array, "S D"], time: Array) -> tuple[Float[Array, " D"], Float[Array, "S-1 D m"]]:
    """The measure of one place from those before it, and the weights it attends with."""
    reads = c.emission @ c.embedding

    def sweep(y: Array, at: tuple[Array, Array]) -> tuple[Array, Array]:
        t, measure = at
        moved = c.kernel @ y
        u = weights_of(c, measure, moved)
        inside = t < time
        return jnp.where(inside, moved + reads @ u.T, y), jnp.where(inside, u, 0.0)

    length = len(c.embedded)
    y, u = jax.lax.scan(sweep, jnp.eye(len(c.start)), (jnp.arange(length), measures[:-1]), reverse=True)
    return c.start @ y - jnp.einsum("tgm,tm->g", u, c.embedded), u


@partial(jax.jit, static_argnames="layers")
def refine(c: Chain, layers: int) -> Filtered:
    """``layers`` layers from the measures that know no token, μAᵗ; measures are kept measures."""
    times = jnp.arange(len(c.embedded) + 1)

    def layer(_: Array, found: Filtered) -> Filtered:
        measures, weights = jax.vmap(partial(place, c, found.measures))(times)
        kept = jnp.maximum(measures, 0.0)
        return Filtered(kept / kept.sum(axis=1, keepdims=True), weights)

    blind = jax.lax.scan(lambda m, _: (m @ c.kernel, m), c.start, None, length=len(times))[1]
    size = (len(times), len(c.embedded), len(c.start), c.embedding.shape[1])
    return jax.lax.fori_loop(0, layers, layer, Filtered(blind, jnp.zeros(size)))
