"""One large system over several devices: rows are shared out; keys travel, or the moments of a series are added up."""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float

from pathlines.attention import Attention, UnnormalisedAttention
from pathlines.attention.masks import AlibiMask, PositionMask
from pathlines.attention.sinkhorn import beside
from pathlines.foundation.errors import finite_number, require
from pathlines.kernels.dense import attend
from pathlines.kernels.prefixes import averaged, over_prefixes, prefix_mask
from pathlines.kernels.spectral.attend import averages, start_of
from pathlines.kernels.spectral.bessel import degree, require_admissible, spectrum
from pathlines.kernels.spectral.portable import BASES, source_moments, target_values

Attended = tuple[Float[Array, "n d"], Float[Array, " n"]]


def sharded_attend(
    attention: Attention,
    queries: Float[Array, "n p"],
    keys: Float[Array, "m p"],
    values: Float[Array, "m d"],
    masses: Float[Array, " m"],
    mesh: Mesh,
    mask: PositionMask | None = None,
) -> Attended:
    """``attend`` with the rows shared among the D devices of ``mesh``, for kinds with a ``fused`` form.

    A ring: each device keeps n/D queries, and blocks of m/D keys, values and masses go round; a row joins the answers
    (A_b, c_b) of the blocks b as A = Σ_b e^{c_b - c} A_b, c = ln Σ_b e^{c_b} (softmax), or A = Σ_b A_b (unnormalised).
    O(nm(p+d)/D) time and O((n+m)(p+d)/D) memory per device; m(p+d) numbers pass each link. Rows are padded to a
    multiple of D, keys with zero masses. A ``mask`` must be in order (causal, ALiBi); its ring skips the blocks after
    its rows, so its last device does the most.
    """
    _check(attention, mesh)
    prefix = prefix_mask(mask, queries.shape[0])
    named, sizes = type(mask).__name__, (queries.shape[0], keys.shape[0])
    require(mask is None or sizes[0] == sizes[1], "keys", "be as many as the queries under a mask", sizes)
    require((mask is None) == (prefix is None), "mask", "be in order (causal, ALiBi) to go round a ring", named)
    mesh = Mesh(mesh.devices, mesh.axis_names)  # a mesh with explicit axis types would not let us slice
    attention = jax.tree.map(jnp.asarray, attention)

    def ring(queries: Array, *block: Array) -> Attended:
        placed = tuple(_placed(a, mesh) for a in block)
        out, log_scale = _ring(attention, _placed(queries, mesh), placed, mesh, prefix is not None)
        return out[: queries.shape[0]], log_scale[: queries.shape[0]]

    if prefix is None:
        return ring(queries, keys, values, masses)
    found = over_prefixes(prefix, attention, queries, keys, values, masses, ring)
    return averaged(prefix, attention, found, masses)


def sharded_spectral_attend(
    attention: Attention,
    targets: Float[Array, "n d"],
    sources: Float[Array, "m d"],
    beta: float,
    masses: Float[Array, " m"],
    mesh: Mesh,
    tolerance: float = 1e-12,
) -> Attended:
    """``spectral_attend`` among unit vectors of R² or R³ with the rows shared among the D devices of ``mesh``.

    Moments of the sources add up: each device sums its own, one all-reduce of C numbers joins them, and each evaluates
    the series at its own targets. O((n + m)C/D) time, O((n + m)/D) memory per device; nothing else is exchanged.
    """
    _check(attention, mesh)
    d = targets.shape[-1]
    require(
        d in BASES, "targets", f"be rows of length 2 to {max(BASES)} (in more dimensions harmonics are too many)", d
    )
    require(sources.shape[-1] == d, "sources", f"be rows of length {d}, as the targets are", sources.shape[-1])
    beta = finite_number("beta", beta, low=0.0)
    require_admissible(beta, d, finite_number("tolerance", tolerance), jnp.result_type(targets, sources))
    mesh = Mesh(mesh.devices, mesh.axis_names)
    coefficients = spectrum(jnp.asarray(beta, targets.dtype), d, degree(beta, d, tolerance), start_of(beta, d))
    here = _placed(targets, mesh), _placed(sources, mesh), _placed(masses, mesh)
    potential, *vectors = (row[: targets.shape[0]] for row in _all_reduce(*here, coefficients, mesh))
    softmax, shift = attention.fused  # type: ignore[misc]
    out = jnp.stack(vectors, axis=-1)
    if softmax:
        return averages(out, potential, beta)
    return jnp.exp(beta - shift) * out, jnp.full_like(potential, shift)


@eqx.filter_jit
def _all_reduce(targets: Array, sources: Array, masses: Array, coefficients: Array, mesh: Mesh) -> Float[Array, "e n"]:
    """Rows (U, A) of ``portable_sums``."""
    basis, cut = BASES[targets.shape[1]], coefficients.shape[0] - 1

    def part(targets: Array, sources: Array, masses: Array, coefficients: Array) -> Array:
        moments = jax.lax.psum(source_moments(sources, masses, cut), mesh.axis_names)
        return target_values(targets, basis.series(moments, coefficients), cut)

    rows, columns = _by_rows(mesh), PartitionSpec(None, mesh.axis_names)
    specs = (rows, rows, rows, PartitionSpec())
    found: Array = jax.shard_map(part, mesh=mesh, in_specs=specs, out_specs=columns, check_vma=False)(
        targets, sources, masses, coefficients
    )
    return found


def _placed(rows: Float[Array, "n ..."], mesh: Mesh) -> Float[Array, "N ..."]:
    """Rows on their devices, as many on each: the last vector is repeated, with zero mass.

    Its score is that of a token which exists, so that no row maximum comes from padding.
    """
    more = -rows.shape[0] % mesh.size
    mode = "constant" if rows.ndim == 1 else "edge"
    whole = jnp.pad(rows, ((0, more), *((0, 0) for _ in rows.shape[1:])), mode=mode)
    return jax.device_put(whole, NamedSharding(mesh, _by_rows(mesh)))


def _by_rows(mesh: Mesh) -> PartitionSpec:
    """The first axis of an array shared among all devices, whatever the axes of the mesh."""
    return PartitionSpec(mesh.axis_names)


def _check(attention: Attention, mesh: Mesh) -> None:
    require(isinstance(mesh, Mesh), "mesh", "be a jax.sharding.Mesh", mesh)
    name = type(attention).__name__
    require(attention.fused is not None, "attention", "be softmax or unnormalised to be joined over devices", name)


@eqx.filter_jit
def _ring(attention: Attention, queries: Array, block: tuple[Array, ...], mesh: Mesh, causal: bool) -> Attended:
    ring = _softmax_ring if attention.fused[0] else _any_ring  # type: ignore[index]
    found: Attended = ring(attention, queries, block, mesh, causal)
    return found


@partial(jax.custom_jvp, nondiff_argnums=(3, 4))
def _softmax_ring(attention: Attention, queries: Array, block: tuple[Array, ...], mesh: Mesh, causal: bool) -> Attended:
    return _any_ring(attention, queries, block, mesh, causal)


@_softmax_ring.defjvp
def _derivative(mesh: Mesh, causal: bool, primals: Any, tangents: Any) -> tuple[Any, Any]:
    """Of A = N/D and c = c̄ + ln D, (N, D)_i = Σ_j m_j e^{s_ij - c̄_i} (v_j, 1), at the c̄ that makes D one.

    These sums are linear in the masses, so that blocks without any have their derivative too.
    """
    found = _softmax_ring(*primals, mesh, causal)
    none = jnp.isneginf(found[1])
    level = jnp.where(none, 0.0, found[1])

    def again(queries: Array, block: tuple[Array, ...]) -> Attended:
        keys, values, masses = block
        lifted = beside(queries, -level), (beside(keys, 1.0), beside(values, 1.0), masses)
        sums = _any_ring(UnnormalisedAttention(), *lifted, mesh, causal)[0]
        return averages(sums[:, :-1], jnp.where(none, 0.0, sums[:, -1]), level)

    return found, jax.jvp(again, primals[1:], tangents[1:])[1]


def _any_ring(attention: Attention, queries: Array, block: tuple[Array, ...], mesh: Mesh, causal: bool) -> Attended:
    rows = _by_rows(mesh)
    specs = (PartitionSpec(), rows, rows)
    turn = jax.shard_map(
        partial(_turn, mesh.axis_names, mesh.size, causal), mesh=mesh, in_specs=specs, out_specs=rows, check_vma=False
    )
    found: Attended = turn(attention, queries, block)
    return found


def _turn(
    axes: tuple[str, ...], devices: int, causal: bool, attention: Attention, queries: Array, mine: tuple[Array, ...]
) -> Attended:
    """One full turn of the key blocks past the queries of this device."""
    here = jax.lax.axis_index(axes)
    ring = [(i, (i + 1) % devices) for i in range(devices)]
    softmax = attention.fused[0]  # type: ignore[index]
    join = _join_softmax if softmax else _join_sums

    def one(carry: tuple[Attended, tuple[Array, ...]], number: Array) -> tuple[tuple[Any, ...], None]:
        so_far, block = carry
        origin = (here - number) % devices
        found = _attend_block(attention, queries, block, jnp.sign(origin - here) + 1, causal)
        moved = jax.tree.map(lambda a: jax.lax.ppermute(a, axes, ring), block)
        return (join(so_far, found), moved), None

    nothing = _nothing(attention, queries, mine[1])
    (out, _), _ = jax.lax.scan(one, (nothing, mine), jnp.arange(devices))
    return out


def _nothing(attention: Attention, queries: Array, values: Array) -> Attended:
    """The answer of no keys at all."""
    softmax, shift = attention.fused  # type: ignore[misc]
    dtype = jnp.result_type(queries, values)
    empty = jnp.zeros((queries.shape[0], values.shape[1]), dtype)
    return empty, jnp.full(queries.shape[0], -jnp.inf if softmax else shift, dtype)


def _attend_block(
    attention: Attention, queries: Array, block: tuple[Array, ...], side: Array, causal: bool
) -> Attended:
    """One block's answer; ``side`` is 0 for keys before the rows, 1 for the rows' own, 2 after."""
    keys, values, masses = block
    nothing = _nothing(attention, queries, values)

    def whole(mask: PositionMask | None = None) -> Attended:
        return attend(attention, queries, keys, values, masses, mask)

    if not causal:
        return whole()
    return jax.lax.switch(side, (whole, lambda: whole(AlibiMask(strict=False, reduce="sum")), lambda: nothing))


def _join_softmax(a: Attended, b: Attended) -> Attended:
    """Normalised averages over two sets of keys with log partition functions c_a, c_b, to that over both."""
    log_scale = jnp.logaddexp(a[1], b[1])
    level = jnp.where(jnp.isneginf(log_scale), 0.0, log_scale)
    share = [jnp.exp(x[1] - level)[:, None] for x in (a, b)]
    return share[0] * a[0] + share[1] * b[0], log_scale


def _join_sums(a: Attended, b: Attended) -> Attended:
    """Plain sums with one shift."""
    return a[0] + b[0], a[1]
