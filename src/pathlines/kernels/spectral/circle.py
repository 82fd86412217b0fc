"""The circle: cos kθ and sin kθ by powers of e^{iθ} (Jacobi-Anger: e^{β cos θ} = Σ_k I_k(β) e^{ikθ})."""

from __future__ import annotations

from math import isqrt
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

LONGEST_UNROLLED = 24
"""Steps of Horner's rule that are compiled into one loop over the tokens."""


Complexes = tuple[Float[Array, " b"], Float[Array, " b"]]


def times(a: Complexes, b: Complexes) -> Complexes:
    """The product of complex numbers given by their parts."""
    return a[0] * b[0] - a[1] * b[1], a[1] * b[0] + a[0] * b[1]


def powers(first: Complexes, turn: Complexes, degree: int) -> tuple[Float[Array, "K b"], Float[Array, "K b"]]:
    """Real and imaginary parts of first · turn^k, k = 0..K: O(K) per token, no trigonometric function."""
    found = [first]
    for _ in range(degree):
        found.append(times(found[-1], turn))
    return jnp.stack([p[0] for p in found]), jnp.stack([p[1] for p in found])


def circle_moments(x: Float[Array, "2 b"], masses: Float[Array, " b"], degree: int) -> Float[Array, " F"]:
    """Σ_j m_j cos kθ_j for k = 0..K, then of the sines.

    Modes k = gs ± r with r ≤ R and s = 2R + 1 need only the sums of products of cos gsθ, sin gsθ with cos rθ, sin rθ:
    one small matrix product, O(√K) powers a token.
    """
    reach = isqrt(degree // 2 + 7)
    stride = 2 * reach + 1
    groups = -(-max(degree - reach, 0) // stride)
    one, turn = (jnp.ones_like(masses), jnp.zeros_like(masses)), (x[0], x[1])
    cosines, sines = powers(one, turn, reach)
    longest = (cosines[-1], sines[-1])
    real, imag = powers((masses, jnp.zeros_like(masses)), times(times(longest, longest), turn), groups)
    near, far = jnp.concatenate([cosines, sines[1:]]), jnp.concatenate([real, imag[1:]])
    table = jnp.matmul(near, far.T, precision=jax.lax.Precision.HIGHEST)
    order = np.arange(degree + 1)
    group = (order + reach) // stride
    offset = order - group * stride
    size = np.abs(offset)
    sign, turned = (jnp.asarray(np.sign(v), table.dtype) for v in (offset, group))
    even = table[size, group] - sign * turned * table[reach + size, groups + group]
    odd = turned * table[size, groups + group] + sign * table[reach + size, group]
    return jnp.concatenate([even, odd]).astype(masses.dtype)


def circle_series(moments: Float[Array, " G"], spectrum: Float[Array, " L"]) -> Float[Array, "3 F"]:
    """Coefficients of U, A_1, A_2 in cosines and sines from the moments up to degree K + 1.

    U weighs the sources by m_j, A_1 by m_j cos φ_j, A_2 by m_j sin φ_j, and products of cosines are sums of cosines.
    """
    even, odd = jnp.split(moments, 2)
    even_below, odd_below = (jnp.concatenate([s * m[1:2], m[:-2]]) for s, m in ((1, even), (-1, odd)))
    even_above, odd_above = even[1:], odd[1:]
    weights = spectrum.at[1:].multiply(2)
    pairs = (
        (even[:-1], odd[:-1]),
        ((even_above + even_below) / 2, (odd_above + odd_below) / 2),
        ((odd_above - odd_below) / 2, (even_below - even_above) / 2),
    )
    return jnp.stack([jnp.concatenate([weights * a, weights * b]) for a, b in pairs])


def circle_values(x: Float[Array, "2 b"], series: Float[Array, "e F"], degree: int) -> Float[Array, "e b"]:
    """Re Σ_k (a_k - ib_k) w^k by Horner's rule: one pass over the tokens for all modes, nothing written between."""
    a, b = jnp.split(series[..., None], 2, axis=1)

    def step(carry: tuple[Any, ...], term: tuple[Any, ...]) -> tuple[tuple[Any, ...], None]:
        real, imag = carry
        return (real * x[:1] - imag * x[1:] + term[0], real * x[1:] + imag * x[:1] - term[1]), None

    start = jnp.zeros((series.shape[0], x.shape[1]), x.dtype)
    carry = (start + a[:, -1], start - b[:, -1])
    if degree <= LONGEST_UNROLLED:
        for k in range(degree - 1, -1, -1):
            carry, _ = step(carry, (a[:, k], b[:, k]))
        return carry[0]
    terms = tuple(jnp.moveaxis(c[:, :-1], 1, 0) for c in (a, b))
    return jax.lax.scan(step, carry, terms, reverse=True, unroll=8)[0][0]
