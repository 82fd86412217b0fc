"""Attention among unit vectors by harmonics: linear in the number of tokens."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.attention import Attention
from pathlines.attention.masks import PositionMask, PrefixMask
from pathlines.foundation.errors import ArgumentError, finite_number, require
from pathlines.kernels.native import native_serves
from pathlines.kernels.prefixes import averaged, centred_heights, prefix_mask, shifted
from pathlines.kernels.spectral.bessel import NORMALISED, degree, require_admissible
from pathlines.kernels.spectral.portable import BASES, portable_sums

Sums = tuple[Float[Array, "n d"], Float[Array, " n"]]
SPHERES = {2: "circle", 3: "sphere3"}


def spectral_attend(
    attention: Attention,
    targets: Float[Array, "n d"],
    sources: Float[Array, "m d"],
    beta: Any,
    masses: Float[Array, " m"],
    tolerance: float = 1e-12,
    mask: PositionMask | None = None,
    beta_bound: float | None = None,
) -> Sums:
    """A_i = Σ_j a_ij y_j and ``log_scale``, a_ij = m_j e^{β<x_i,y_j> - c_i}, for unit rows x_i, y_j of length 2 to 8.

    c_i = ln Σ_j m_j e^{β<x_i,y_j>} (softmax) or the shift (unnormalised). A ``mask`` must be in order (causal, ALiBi).
    General weights reduce to it when Q^T K = c R with R orthogonal: β = c, y_j = R x_j, and Σ_j a_ij V x_j = V R^T A_i.

    ``tolerance`` bounds the error of the kernel e^{β(<x,y>-1)}, so that of e^{-β} Σ_j m_j e^{β<x,y>} y_j with Σ m = 1.
    Softmax divides by Z_i = Σ_j m_j e^{β(<x_i,y_j>-1)}: an error of at most 2 tolerance/(Z_i - tolerance), and only
    Z_i ≥ m_i is sure when x_i is one of the sources. ``beta_bound`` ≥ β fixes the degree when β is traced; a larger β
    gives NaN. Cost O((n + m) C) time, C = ``coefficients(d, degree(beta_bound, d, tolerance))``; O(n + m) memory.
    """
    d = targets.shape[-1]
    require(
        d in BASES, "targets", f"be rows of length 2 to {max(BASES)} (in more dimensions harmonics are too many)", d
    )
    require(sources.shape[-1] == d, "sources", f"be rows of length {d}, as the targets are", sources.shape[-1])
    n, prefix = targets.shape[0], prefix_mask(mask, targets.shape[0])
    paired, named = n == sources.shape[0], type(mask).__name__
    require(paired or mask is None, "mask", "be None unless there are as many targets as sources", named)
    require((mask is None) == (prefix is None), "mask", "be in order (causal, ALiBi) to be summed by harmonics", named)
    require(attention.fused is not None, "attention", "be softmax or unnormalised", type(attention).__name__)
    dtype = jnp.result_type(targets, sources)
    bound = _concrete(beta) if beta_bound is None else finite_number("beta_bound", beta_bound, low=0.0)
    require_admissible(bound, d, finite_number("tolerance", tolerance), dtype)
    temperature = jnp.asarray(beta, dtype)
    # A product such as cβ may be rounded to just above the bound.
    bound = bound * (1 + 16 * float(jnp.finfo(dtype).eps))
    temperature = jnp.where((temperature >= 0) & (temperature <= bound), temperature, jnp.nan)
    x, y, m = (jnp.asarray(a, dtype) for a in (targets, sources, masses))
    cut, start = degree(bound, d, tolerance), start_of(bound, d)
    if prefix is None:
        return sums_by_harmonics(attention, x, y, m, temperature, cut, start)
    return _over_prefixes(attention, prefix, x, y, m, temperature, cut, start)


def _over_prefixes(
    attention: Attention,
    mask: PrefixMask,
    targets: Array,
    sources: Array,
    masses: Array,
    beta: Array,
    degree: int,
    start: int,
) -> Sums:
    """q_ij m_j = e^{-h_i} (e^{h_j} m_j): causal sums with other masses, each as large as what it is divided by."""
    heights = centred_heights(mask, targets.shape[0], targets.dtype)
    tilted = masses if heights is None else masses * jnp.exp(heights)
    causal = lambda x, y, m: sums_by_harmonics(attention, x, y, m, beta, degree, start, True)  # noqa: E731
    out, log_scale = shifted(mask.strict, attention, causal, targets, sources, tilted)
    if heights is not None:
        softmax = attention.fused[0]  # type: ignore[index]
        out = out if softmax else out * jnp.exp(-heights)[:, None]
        log_scale = log_scale - heights if softmax else log_scale
    return averaged(mask, attention, (out, log_scale), masses)


def start_of(beta: float, d: int) -> int:
    """The degree from which the recurrence of the spectrum starts downwards: nothing is left above it."""
    return degree(beta, d, NORMALISED) + 8


def sums_by_harmonics(
    attention: Attention | None,
    targets: Float[Array, "n d"],
    sources: Float[Array, "m d"],
    masses: Float[Array, " m"],
    beta: Float[Array, ""],
    degree: int,
    start: int,
    causal: bool = False,
) -> Sums:
    """``spectral_attend`` up to a given degree, in native code where there is some: arrays of one type, β ≥ 0."""
    way = native_sums if targets.shape[1] in SPHERES and native_serves(targets.dtype) else portable_attention
    return way(attention, targets, sources, masses, beta, degree, start, causal)


def portable_attention(
    attention: Attention | None,
    targets: Float[Array, "n d"],
    sources: Float[Array, "m d"],
    masses: Float[Array, " m"],
    beta: Float[Array, ""],
    degree: int,
    start: int,
    causal: bool,
) -> Sums:
    """(A, log_scale) from ``portable_sums``; without a kind of attention, its rows as they are, (A, U)."""
    potential, *vectors = portable_sums(targets, sources, masses, beta, degree, start, causal)
    out = jnp.stack(vectors, axis=-1)
    if attention is None:
        return out, potential
    softmax, shift = attention.fused  # type: ignore[misc]
    if softmax:
        return averages(out, potential, beta)
    shift = jnp.asarray(shift, beta.dtype)
    return jnp.exp(beta - shift) * out, jnp.full_like(potential, shift)


def averages(vectors: Float[Array, "n d"], potential: Float[Array, " n"], beta: Float[Array, "*n"] | float) -> Sums:
    """(A/U, β + ln U), β one number or one for each row; (0, -∞) for rows that see no mass, U = 0."""
    none = potential == 0
    safe = jnp.where(none, 1.0, potential)
    return jnp.where(none, 0.0, 1 / safe)[:, None] * vectors, jnp.where(none, -jnp.inf, beta + jnp.log(safe))


@partial(jax.custom_jvp, nondiff_argnums=(5, 6, 7))
def native_sums(
    attention: Attention | None,
    targets: Float[Array, "n d"],
    sources: Float[Array, "m d"],
    masses: Float[Array, " m"],
    beta: Float[Array, ""],
    degree: int,
    start: int,
    causal: bool,
) -> Sums:
    """``portable_attention`` in native code, on all cores when large; derivatives are those of the portable formula."""
    softmax, shift = (False, 0.0) if attention is None else attention.fused  # type: ignore[misc]
    (n, d), dtype = targets.shape, targets.dtype
    out = (jax.ShapeDtypeStruct((n, d), dtype), jax.ShapeDtypeStruct((n,), dtype))
    call = jax.ffi.ffi_call(f"pathlines_{SPHERES[d]}_{dtype.name}", out, vmap_method="broadcast_all")
    vectors, log_scale = call(
        targets, sources, masses, beta, jnp.asarray(shift, dtype), softmax=softmax, raw=attention is None,
        causal=causal, degree=np.int64(degree), start=np.int64(start),
    )  # fmt: skip
    return vectors, log_scale


@native_sums.defjvp
def _derivative(degree: int, start: int, causal: bool, primals: Any, tangents: Any) -> tuple[Any, Any]:
    portable = partial(portable_attention, degree=degree, start=start, causal=causal)
    _, change = jax.jvp(portable, primals, tangents)
    return native_sums(*primals, degree, start, causal), change


def _concrete(beta: Any) -> float:
    if isinstance(beta, jax.core.Tracer):
        raise ArgumentError("Argument `beta_bound` must be given when beta is traced: it fixes how many harmonics are.")
    return finite_number("beta", beta, low=0.0)
