"""Phase diagrams: the probability that two tokens have merged, over (time, β)."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int

from pathlines.attention import SoftmaxAttention, UnnormalisedAttention
from pathlines.domain import Sphere
from pathlines.domain.space import pair_deficits
from pathlines.foundation.errors import (
    ArgumentError,
    PathlinesError,
    PathlinesWarning,
    finite_array,
    finite_number,
    positive_integer,
    require,
)
from pathlines.foundation.precision import resolve_dtype
from pathlines.foundation.programs import make_room_for_programs
from pathlines.foundation.progress import Progress
from pathlines.integrate.advance import OK, Carry, Controls, Program, field_of, fresh_carry, step
from pathlines.integrate.methods import METHODS, RungeKutta
from pathlines.kernels.native import native_merging, native_serves
from pathlines.model import SelfAttention
from pathlines.model.clustering.gram import GramAttention
from pathlines.store.results import Store
from pathlines.sweep.study import study

BETAS_A_PART = 10
LANES = 32
FLOOR = {"float32": 1e-6, "float64": 1e-14}
"""Deficits below this are rounding of 1 - <x_i, x_j>."""

MOST_STEPS = 20_000
FIRST_STEP = 0.05


def phase_diagram(
    d: int,
    betas: Any,
    times: Any,
    samples: int,
    *,
    n: int = 32,
    kind: str = "sa",
    delta: float = 1e-3,
    seed: int = 0,
    dtype: str = "float32",
    rtol: float = 1e-4,
    store: Store | None = None,
    progress: bool | None = None,
) -> xr.Dataset:
    """p(β, t) = P(u_12 ≤ δ) for n i.i.d. uniform tokens on S^{d-1}, with standard errors over samples.

    The phase diagram of *A mathematical perspective on Transformers* (arXiv:2312.10794), from the true flow, not from
    layers: adaptive fifth-order steps, and for each pair the time at which ln u_ij crosses ln δ on the cubic through
    both ends of the step. Sample r starts from the same tokens at every β. For d ≥ n tokens are drawn and moved in
    their n-dimensional span (exact in law) and their pair deficits u_ij are moved by the Gram closure, at a cost
    independent of d. A sample whose pairs have all merged is done.

    Args:
        d: the ambient dimension; from about 64 on the boundary is the exact curve Γ. The larger, the sharper the
            boundary.
        betas: values of β. The larger, the later pairs merge, and the longer it takes.
        times: equally spaced depth-times.
        samples: starts per β; standard errors fall like samples^{-1/2}.
        n: the number of tokens, 32 by default; cost grows like n³ for d ≥ n, else n²d.
        kind: "sa" or "usa".
        delta: δ, how small a deficit 1 - <x_1, x_2> counts as merged; 1e-3 by default. The smaller, the later pairs
            count as merged.
        seed: of the starts.
        dtype: "float32", or "float64" for small δ.
        rtol: tolerance of a step, 1e-4 by default. The larger, the cheaper and the less exact.
        store: where each block of β is kept when done, so that a killed diagram resumes.
        progress: whether to show a bar.
    """
    make_room_for_programs()
    d, n, samples = (positive_integer(k, v) for k, v in (("d", d), ("n", n), ("samples", samples)))
    require(n >= 2 and samples >= 2, "samples", "be at least 2, as must n", samples)
    betas, times = finite_array("betas", betas, ("b",)).astype(float), _even(times)
    if kind not in ("sa", "usa"):
        raise ArgumentError(f"Argument `kind` must be one of sa, usa, but is {kind!r}.")
    finite_number("delta", delta, low=10 * FLOOR[resolve_dtype(dtype).name], high=2.0)
    require(bool((betas >= 0).all()), "betas", "be ≥ 0", betas)
    same: dict[str, Any] = {"d": d, "n": n, "samples": samples, "kind": kind, "delta": float(delta), "seed": int(seed)}
    same |= {"dtype": resolve_dtype(dtype).name, "rtol": float(rtol), "times": times.tolist()}
    diagram = study(merged_shares, {"beta": betas}, many=BETAS_A_PART, along=["beta"], **same)
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory()) if store is None else store
        bar = stack.enter_context(Progress(f"phase diagram d = {d}", len(betas), show=progress))
        found = diagram.run(store=folder, watch=lambda standing: bar.update(standing.done))
    if found.attrs["errors"]:
        raise PathlinesError(found.attrs["errors"])
    data = found[["p", "se"]].drop_attrs().assign_coords(time=times)
    lost = int(np.isnan(data["p"].values).any(axis=1).sum())
    if lost:
        text = f"At {lost} of {len(betas)} β some samples needed more than {MOST_STEPS} steps; p is NaN where unknown."
        warnings.warn(text, PathlinesWarning, stacklevel=2)
    data.attrs = {"n": n, "d": d, "samples": samples, "delta": delta, "kind": kind, "seed": seed, "dtype": dtype}
    return data


@dataclass(frozen=True)
class _Sweep:
    """What all samples share, hashable, so that one compiled program serves every β and every block."""

    d: int
    n: int
    samples: int
    kind: str
    delta: float
    seed: int
    dtype: str
    rtol: float


def _even(times: Any) -> np.ndarray:
    grid = finite_array("times", times, ("t",)).astype(float)
    even = len(grid) >= 2 and grid[0] >= 0 and np.allclose(np.diff(grid), grid[1] - grid[0], rtol=1e-6, atol=0)
    require(bool(even and grid[1] > grid[0]), "times", "be two or more equally spaced, increasing times ≥ 0", times)
    return grid


def merged_shares(
    beta: float,
    d: int = 3,
    n: int = 32,
    samples: int = 2,
    kind: str = "sa",
    delta: float = 1e-3,
    seed: int = 0,
    dtype: str = "float32",
    rtol: float = 1e-4,
    times: tuple[float, ...] = (),
) -> xr.Dataset:
    """p and its standard error over time at many β: what the study of a phase diagram looks at."""
    sweep, betas = _Sweep(d, n, samples, kind, delta, seed, dtype, rtol), np.atleast_1d(beta)
    fraction = _merged_fractions(sweep, betas, np.asarray(times))
    mean = fraction.mean(axis=1, dtype=float)
    square = np.einsum("brt,brt->bt", fraction, fraction, dtype=float) / samples
    error = np.sqrt(np.maximum(square - mean**2, 0) / (samples - 1))
    return xr.Dataset({"p": (("beta", "time"), mean), "se": (("beta", "time"), error)}, coords={"time": list(times)})


def _merged_fractions(sweep: _Sweep, betas: np.ndarray, times: np.ndarray) -> np.ndarray:
    """(β, sample, time) fractions of merged pairs, on all cores."""
    grid = jnp.asarray(times, sweep.dtype)
    if sweep.d >= sweep.n and native_serves(sweep.dtype):
        return np.asarray(_native(sweep, jnp.asarray(betas, sweep.dtype), grid))
    return _in_lanes(sweep, betas, grid)


def _in_lanes(sweep: _Sweep, betas: np.ndarray, grid: Float[Array, " t"]) -> np.ndarray:
    """Groups of samples side by side; equal β means similar steps, so few lanes wait."""
    groups = -(-sweep.samples // LANES)
    jobs = [(b, g) for b in range(len(betas)) for g in range(groups)]

    def work(job: tuple[int, int]) -> np.ndarray:
        beta = jnp.asarray(betas[job[0]], sweep.dtype)
        return np.asarray(_lane_group(sweep, beta, jnp.arange(LANES) + LANES * job[1], grid))

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        blocks = list(pool.map(work, jobs))
    shaped = np.stack(blocks).reshape(len(betas), groups * LANES, len(grid))
    return shaped[:, : sweep.samples]


@eqx.filter_jit
def _lane_group(sweep: _Sweep, beta: Array, samples: Int[Array, " lanes"], grid: Float[Array, " t"]) -> Array:
    return jax.vmap(lambda r: _sample(sweep, beta, r, grid))(samples)


@eqx.filter_jit
def _native(sweep: _Sweep, betas: Float[Array, " b"], grid: Float[Array, " t"]) -> Float[Array, "b r t"]:
    """The same trajectories as ``_sample`` in the Gram closure, each followed to its end by compiled C++."""
    method = METHODS["rk45"]
    assert isinstance(method, RungeKutta)
    return native_merging(
        jax.vmap(lambda r: pair_deficits(_start(sweep, r)))(jnp.arange(sweep.samples)), betas, grid,
        (method.a, method.b, method.estimates[0]), softmax=sweep.kind == "sa", rtol=sweep.rtol,
        atol=_gram_floor(sweep), delta=sweep.delta, first_step=FIRST_STEP, most_steps=MOST_STEPS,
        error_order=method.error_order,
    )  # fmt: skip


def _start(sweep: _Sweep, number: Array) -> Float[Array, "n d"]:
    """Tokens of sample ``number``, the same for every β; in their span when d ≥ n."""
    sphere, key = Sphere(sweep.d), jax.random.fold_in(jax.random.key(sweep.seed), number)
    return (sphere.uniform_span if sweep.d >= sweep.n else sphere.uniform)(key, sweep.n, sweep.dtype)


def _gram_floor(sweep: _Sweep) -> float:
    """Deficits matter down to δ: absolute errors are kept a tolerance below it."""
    return 10 * sweep.delta * sweep.rtol


def _sample(sweep: _Sweep, beta: Array, number: Array, grid: Float[Array, " t"]) -> Float[Array, " t"]:
    """One start: follow the flow, count pairs as they cross u = δ, downwards or upwards."""
    reduced = sweep.d >= sweep.n
    model = eqx.tree_at(lambda m: m.beta, _model(sweep.kind, reduced), beta)
    start = model.initial(_start(sweep, number))
    look = _of_deficits if reduced else _of_tokens
    program = Program(METHODS["rk45"], ())
    everything = sweep.n * sweep.n
    end = grid[-1]
    tolerance = jnp.asarray(sweep.rtol, grid.dtype)
    floor = jnp.asarray(_gram_floor(sweep), grid.dtype) if reduced else tolerance
    controls = Controls(tolerance, floor, end, jnp.asarray(MOST_STEPS), jnp.asarray(True))
    field = field_of(program, model, start, end)
    carry = fresh_carry(program, start, 0.0, 0.0)
    slope = field((start, ()), carry.t)
    carry = carry._replace(slope=slope, h=jnp.asarray(FIRST_STEP, grid.dtype))
    log_u, rate = look(start, slope[0])
    counts = jnp.zeros(grid.shape[0] + 1, grid.dtype)
    level = jnp.log(jnp.asarray(sweep.delta, grid.dtype))
    merged = jnp.sum(log_u <= level)

    def going(item: tuple[Any, ...]) -> Array:
        c, _, _, _, merged = item
        return (c.t < end) & (c.status == OK) & (merged < everything) & (c.accepted + c.rejected < MOST_STEPS)

    def advance(item: tuple[Any, ...]) -> tuple[Any, ...]:
        c, v0, r0, counts, _ = item
        new = step(program, model, field, c, end, controls)
        v1, r1 = look(new.state, new.slope[0])
        counts = counts + _crossings(v0, r0, v1, r1, c.t, new.t, level, grid)
        return new, v1, r1, counts, jnp.sum(v1 <= level)

    begun = jnp.zeros_like(counts).at[0].set((merged - sweep.n).astype(grid.dtype))
    final: Carry
    final, _, _, counts, _ = jax.lax.while_loop(going, advance, (carry, log_u, rate, counts, merged))
    share = jnp.cumsum(begun + counts)[:-1] / (everything - sweep.n)
    finished = (final.status == OK) & (final.accepted + final.rejected < MOST_STEPS)
    return jnp.where(finished | (grid <= final.t), share, jnp.nan)


def _model(kind: str, reduced: bool) -> SelfAttention | GramAttention:
    if reduced:
        return GramAttention(1.0, unnormalised=kind == "usa")
    return SelfAttention(1.0, attention=SoftmaxAttention() if kind == "sa" else UnnormalisedAttention())


def _of_tokens(x: Float[Array, "n d"], v: Float[Array, "n d"]) -> tuple[Float[Array, "n n"], Float[Array, "n n"]]:
    """ln u_ij and its time derivative; u = 1 - <x_i, x_j> is exact enough for δ far above rounding."""
    overlaps, cross = jnp.split(x @ jnp.concatenate([x, v]).T, 2, axis=1)
    return _of_deficits(1 - overlaps, -(cross + cross.T))


def _of_deficits(u: Float[Array, "n n"], rate: Float[Array, "n n"]) -> tuple[Float[Array, "n n"], Float[Array, "n n"]]:
    """ln u_ij and its time derivative for all ordered pairs: picking i < j costs more than it saves.

    The diagonal sits at the floor, merged at all times, and is not counted.
    """
    kept = jnp.maximum(u, FLOOR[u.dtype.name])
    return jnp.log(kept), rate / kept


def _crossings(
    v0: Array, r0: Array, v1: Array, r1: Array, t0: Array, t1: Array, level: Array, grid: Float[Array, " t"]
) -> Float[Array, " bins"]:
    """+1 (−1) for each pair whose ln u falls (rises) through the level, in the bin of the crossing time.

    The crossing is that of the cubic Hermite interpolant of ln u, by three Newton steps from the chord.
    """
    h = t1 - t0
    change = (v0 > level).astype(grid.dtype) - (v1 > level).astype(grid.dtype)
    gap = v1 - v0
    s = jnp.clip((level - v0) / jnp.where(gap == 0, 1.0, gap), 0.0, 1.0)
    a, b, c = h * r0, 3 * gap - h * (2 * r0 + r1), h * (r0 + r1) - 2 * gap
    for _ in range(3):
        value = v0 + s * (a + s * (b + s * c)) - level
        slope = a + s * (2 * b + s * 3 * c)
        s = jnp.clip(s - value / jnp.where(slope == 0, 1.0, slope), 0.0, 1.0)
    spacing = grid[1] - grid[0]
    bins = jnp.clip(jnp.ceil((t0 + s * h - grid[0]) / spacing), 0, grid.shape[0]).astype(int)
    return jnp.zeros(grid.shape[0] + 1, grid.dtype).at[bins.ravel()].add(change.ravel())
