"""Sums of e^{β(<x,y>-1)} by harmonics in plain JAX, on any device: chunks of tokens that stay in the cache."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.kernels.spectral.bessel import coefficients, spectrum
from pathlines.kernels.spectral.circle import circle_moments, circle_series, circle_values
from pathlines.kernels.spectral.sphere import sphere_moments, sphere_series, sphere_values
from pathlines.kernels.spectral.sphere3 import sphere3_moments, sphere3_series, sphere3_values

CAUSAL_CHUNK = 128


class Basis(NamedTuple):
    """Harmonics of one sphere, for the columns of a chunk of tokens.

    ``moments`` up to a degree, ``series``: the coefficients of (U, A) from moments of one degree more and the spectrum,
    ``values`` of such series; ``chunk``: how many numbers of harmonics are worked on at a time. ``fused`` values write
    nothing between tokens and result: cut in chunks, they would only lose threads.
    """

    moments: Callable[[Array, Array, int], Array]
    series: Callable[[Array, Array], Array]
    values: Callable[[Array, Array, int], Array]
    chunk: int
    fused: bool


BASES = {
    2: Basis(circle_moments, circle_series, circle_values, 1 << 19, fused=True),
    3: Basis(sphere3_moments, sphere3_series, sphere3_values, 1 << 18, fused=False),
    **{d: Basis(sphere_moments, sphere_series, sphere_values, 1 << 20, fused=False) for d in range(4, 9)},
}


def source_moments(sources: Float[Array, "m d"], masses: Float[Array, " m"], degree: int) -> Float[Array, "*G"]:
    """Σ_j m_j Y(y_j) over the harmonics up to L + 1: all that targets need to know. O(mC) time, O(m) memory.

    Moments of parts of the sources add up, so devices that hold parts exchange only these.
    """
    basis, size = BASES[sources.shape[1]], _chunk_size(sources, degree)

    def add(total: Array, chunk: tuple[Array, Array]) -> tuple[Array, None]:
        return total + basis.moments(*chunk, degree + 1), None

    start = _no_moments(basis, sources, masses, degree)
    return jax.lax.scan(_again(add), start, (_columns(sources, size), _cut(masses, size)))[0]


def target_values(targets: Float[Array, "n d"], series: Float[Array, "e F"], degree: int) -> Float[Array, "e n"]:
    """Σ_lm series_lm Y_lm(x_i) for every row of ``series``. O(nC) time, O(n) memory."""
    basis, size = BASES[targets.shape[1]], _chunk_size(targets, degree)
    if basis.fused:
        return basis.values(targets.T, series, degree)
    one = _again(lambda columns: basis.values(columns, series, degree))
    return _joined(jax.lax.map(one, _columns(targets, size)), targets.shape[0])


def causal_values(
    targets: Float[Array, "n d"],
    sources: Float[Array, "n d"],
    masses: Float[Array, " n"],
    beta: Float[Array, ""],
    spectrum: Float[Array, " L"],
) -> Float[Array, "e n"]:
    """(U, A) over the sources j ≤ i: earlier chunks by their moments, pairs of one chunk directly. O(n(C + 128))."""
    (n, d), degree = targets.shape, spectrum.shape[0] - 1
    basis, size = BASES[d], min(n, CAUSAL_CHUNK)
    precise = jax.lax.Precision.HIGHEST

    def add(total: Array, chunk: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        x, y, mass = chunk
        earlier = basis.values(x, basis.series(total, spectrum), degree)
        weights = jnp.triu(mass[:, None] * jnp.exp(beta * (jnp.matmul(y.T, x, precision=precise) - 1)))
        own = jnp.matmul(jnp.concatenate([jnp.ones_like(y[:1]), y]), weights, precision=precise)
        return total + basis.moments(y, mass, degree + 1), earlier + own

    start = _no_moments(basis, sources, masses, degree)
    chunks = (_columns(targets, size), _columns(sources, size), _cut(masses, size))
    return _joined(jax.lax.scan(_again(add), start, chunks)[1], n)


def portable_sums(
    targets: Float[Array, "n d"],
    sources: Float[Array, "m d"],
    masses: Float[Array, " m"],
    beta: Float[Array, ""],
    degree: int,
    start: int,
    causal: bool,
) -> Float[Array, "e n"]:
    """Rows U_i = Σ_j m_j e^{β(<x_i,y_j>-1)} and A_i = Σ_j m_j e^{β(<x_i,y_j>-1)} y_j, j ≤ i if ``causal``."""
    d = targets.shape[1]
    g = spectrum(beta, d, degree, start)
    if causal:
        return causal_values(targets, sources, masses, beta, g)
    return target_values(targets, BASES[d].series(source_moments(sources, masses, degree), g), degree)


_again = partial(jax.checkpoint, prevent_cse=False)
"""Derivatives compute a chunk again instead of keeping it; inside a loop that needs no barrier against fusion."""


def _no_moments(basis: Basis, sources: Float[Array, "m d"], masses: Float[Array, " m"], degree: int) -> Array:
    shape = jax.eval_shape(lambda y, m: basis.moments(y, m, degree + 1), sources[:1].T, masses[:1])
    return jnp.zeros(shape.shape, shape.dtype)


def _chunk_size(x: Float[Array, "n d"], degree: int) -> int:
    return min(x.shape[0], max(64, BASES[x.shape[1]].chunk // coefficients(x.shape[1], degree)))


def _cut(x: Float[Array, "n ..."], size: int) -> Float[Array, "c s ..."]:
    """Chunks of ``size``, filled up with zeros."""
    count = -(-x.shape[0] // size)
    widths = ((0, count * size - x.shape[0]), *((0, 0),) * (x.ndim - 1))
    return jnp.pad(x, widths).reshape(count, size, *x.shape[1:])


def _columns(x: Float[Array, "n d"], size: int) -> Float[Array, "c d s"]:
    return jnp.stack([_cut(x[:, c], size) for c in range(x.shape[1])], axis=1)


def _joined(chunks: Float[Array, "c e s"], n: int) -> Float[Array, "e n"]:
    return jnp.swapaxes(chunks, 0, 1).reshape(chunks.shape[1], -1)[:, :n]
