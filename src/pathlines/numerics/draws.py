"""All random numbers of one step, from one fused pass of the generator."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, UInt

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


class Draws:
    """Hands out ``normals`` standard normals and ``uniforms`` uniforms on (0, 1), each number once.

    A layer needs half a dozen random arrays; here they are slices of two, because every call of JAX's generator costs
    0.3 s of compilation and an array with many uses is computed once for each. The bits are those of Threefry 2x32-20,
    JAX's own generator, written out so that rounds and transformation are one loop over registers: half the time of
    ``jax.random.normal`` on a CPU. Asking for more numbers than announced is an error when the program is built.
    """

    def __init__(self, key: PRNGKeyArray, normals: int = 0, uniforms: int = 0, dtype: Any = float) -> None:
        pairs = -(-normals // 2)
        raw = _uniforms(key, 2 * pairs + uniforms, jnp.dtype(dtype))
        self._normals = gaussian_pairs(raw[:pairs], raw[pairs : 2 * pairs]).reshape(-1)
        self._uniforms = raw[2 * pairs :]
        self._used = [0, 0]

    def normal(self, *shape: int) -> Float[Array, ...]:
        """Standard normals."""
        return self._next(0, self._normals, shape)

    def uniform(self, *shape: int) -> Float[Array, ...]:
        """Uniforms on (0, 1)."""
        return self._next(1, self._uniforms, shape)

    def _next(self, kind: int, numbers: Array, shape: tuple[int, ...]) -> Float[Array, ...]:
        first, last = self._used[kind], self._used[kind] + math.prod(shape)
        assert last <= numbers.shape[0], "more random numbers than announced"
        self._used[kind] = last
        return numbers[first:last].reshape(shape)


def gaussian_pairs(u: Float[Array, " k"], v: Float[Array, " k"]) -> Float[Array, "2 k"]:
    """√(-2 ln u) (cos 2πv, sin 2πv): two independent normals from two uniforms (Box and Muller).

    4v is split in its nearest integer and a rest, whose sine and cosine are Taylor polynomials to the last digit: a
    fifth of the time of the library's functions, which reduce arguments of any size.
    """
    radius = jnp.sqrt(-2 * jnp.log(u))
    quarter = jnp.round(4 * v)
    angle = (4 * v - quarter) * (math.pi / 2)
    square = angle * angle
    sine, cosine = angle * _series(square, 1), _series(square, 0)
    odd = (quarter == 1) | (quarter == 3)
    signed = jnp.where((quarter == 2) | (quarter == 3), -radius, radius)
    return jnp.stack([signed * jnp.where(odd, -sine, cosine), signed * jnp.where(odd, cosine, sine)])


def _series(square: Array, parity: int, terms: int = 9) -> Array:
    """Σ_k (-1)^k x^{2k}/(2k + parity)!; the rest is below 2e-18 for |x| ≤ π/4."""
    total = jnp.zeros_like(square)
    for k in reversed(range(terms)):
        total = total * square + (-1) ** k / math.factorial(2 * k + parity)
    return total


def _uniforms(key: PRNGKeyArray, count: int, dtype: jnp.dtype) -> Float[Array, " count"]:
    """Uniforms on (0, 1) in two halves, one after the other: the compiler keeps the result of a loop as it is and does
    not compute it again for each of its uses.
    """
    half = -(-count // 2)
    starts = jnp.asarray([0, half], jnp.uint32)
    return jax.lax.map(lambda start: _cells(*threefry_words(key, start, half), dtype), starts).reshape(-1)[:count]


def _cells(one: UInt[Array, " k"], two: UInt[Array, " k"], dtype: jnp.dtype) -> Float[Array, " k"]:
    """The midpoints of 2⁵² (float32: 2²³) equal cells of (0, 1): neither end occurs."""
    if dtype == jnp.float64:
        bits = (one.astype(jnp.uint64) << 32) | two.astype(jnp.uint64)
        number = jax.lax.bitcast_convert_type((bits >> 12) | jnp.uint64(0x3FF0000000000000), jnp.float64)
        return (number - 1) + 2.0**-53
    number = jax.lax.bitcast_convert_type((two >> 9) | jnp.uint32(0x3F800000), jnp.float32)
    return (number - 1) + jnp.float32(2.0**-24)


def folded(key: PRNGKeyArray, number: Any) -> PRNGKeyArray:
    """``jax.random.fold_in(key, number)``, the same key, from a program that compiles three times as fast."""
    if jax.random.key_data(key).shape != (2,) or not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return jax.random.fold_in(key, number)
    words = jnp.concatenate(threefry_words(key, jnp.asarray(number, jnp.uint32), 1))
    return jax.random.wrap_key_data(words, impl=jax.random.key_impl(key))


def threefry_words(key: PRNGKeyArray, first: Any, count: int) -> tuple[UInt[Array, " count"], UInt[Array, " count"]]:
    """The two words of the blocks ``first``..``first + count - 1`` of Threefry 2x32 with twenty rounds (Salmon et al.,
    Parallel random numbers: as easy as 1, 2, 3, 2011); from block zero the same as ``jax.random.bits(…, "uint64")``.
    """
    words = jax.random.key_data(key)
    if words.shape != (2,):
        words = jax.random.bits(key, (2,), jnp.uint32)
    schedule = (words[0], words[1], words[0] ^ words[1] ^ jnp.uint32(PARITY))
    one = jnp.full(count, schedule[0])
    two = jnp.arange(count, dtype=jnp.uint32) + first + schedule[1]
    for group in range(5):
        for turn in ROTATIONS[group % 2]:
            one = one + two
            two = ((two << turn) | (two >> (32 - turn))) ^ one
        one = one + schedule[(group + 1) % 3]
        two = two + schedule[(group + 2) % 3] + jnp.uint32(group + 1)
    return one, two
