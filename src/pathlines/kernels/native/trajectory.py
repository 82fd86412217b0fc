"""Whole trajectories of self-attention on the sphere in one native call: nothing is compiled for another n."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np

from pathlines.kernels.native.build import native_library

Pointer, Whole, Real = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double


def _structure(name: str, **kinds: str) -> type[ctypes.Structure]:
    """A record of C: words of names for each type, in order."""
    types = {"whole": Whole, "real": Real, "pointer": Pointer}
    fields = [(word, types[kind.partition("_")[0]]) for kind, words in kinds.items() for word in words.split()]
    return type(name, (ctypes.Structure,), {"_fields_": fields})


_System = _structure(
    "System",
    whole="n d heard heads width softmax frozen opposed paired",
    real="beta shift value top",
    pointer="mass query key values",
)
_Scheme = _structure(
    "Scheme",
    whole="stages estimates order error_order project_stages adaptive",
    pointer="a b e",
    real="rtol atol",
)
_Travel = _structure("Travel", whole="runs count budget fresh watch threads", real="ripe")
_Trails = _structure("Trails", pointer="state slope clocks times rows energies works done betas")


class SphereSystem(NamedTuple):
    """What moves the tokens (``fields.h``): heads as arrays (h, p, d), or none for the identity; masses sum to one.

    ``paired``: Q = K = V = I with fixed shifts that serve every row, so that each exponential serves both of its ends.
    """

    masses: np.ndarray
    heard: int
    d: int
    softmax: bool
    beta: float
    shift: float
    value: float
    top: float
    opposed: bool
    frozen: int
    paired: bool
    query: np.ndarray | None
    key: np.ndarray | None
    values: np.ndarray | None


class Steps(NamedTuple):
    """A Runge-Kutta method (a, b and its error estimates, e) and its tolerances."""

    a: np.ndarray
    b: np.ndarray
    estimates: np.ndarray
    order: int
    error_order: int
    project_stages: bool
    adaptive: bool
    rtol: float
    atol: float


CLOCK = ("t", "h", "work", "power", "off_domain", "local_error")


def clock_type(dtype: np.dtype) -> np.dtype:
    """The numbers of a run besides its state and slope."""
    return np.dtype(
        [(name, dtype) for name in CLOCK] + [(name, np.int64) for name in ("accepted", "rejected", "status")]
    )


class Trails(NamedTuple):
    """Runs under way, all arrays in place: states and slopes (r, n, d), clocks (r,), how many times each has reached,
    and what was seen there: states, energies, works.
    """

    state: np.ndarray
    slope: np.ndarray
    clocks: np.ndarray
    done: np.ndarray
    rows: np.ndarray
    energies: np.ndarray
    works: np.ndarray


def fresh_trails(starts: np.ndarray, count: int) -> Trails:
    """Runs at their ``starts``, before ``count`` recorded times."""
    runs, dtype = len(starts), starts.dtype
    clocks, done = np.zeros(runs, clock_type(dtype)), np.zeros(runs, np.int64)
    rows = np.empty((runs, count, *starts.shape[1:]), dtype)
    energies, works = np.empty((runs, count), dtype), np.empty((runs, count), dtype)
    return Trails(np.array(starts, order="C"), np.zeros_like(starts, order="C"), clocks, done, rows, energies, works)


def travel(
    system: SphereSystem,
    steps: Steps,
    trails: Trails,
    times: np.ndarray,
    *,
    budget: int,
    fresh: bool,
    ripe: float | None = None,
    threads: int = 1,
    betas: np.ndarray | None = None,
) -> None:
    """Move each run through ``times``, at most ``budget`` attempted steps: steps, control and records of ``advance``.

    ``fresh``: slopes are computed anew. ``ripe``: pause where all pairs are within that deficit. ``betas``: one for
    each run instead of the system's. One run is shared out among the threads, many are spread over them; bits do not
    depend on their number.
    """
    dtype = trails.state.dtype
    kept = [np.ascontiguousarray(x, np.float64) for x in (steps.a, steps.b, steps.estimates)]
    mine = [None if x is None else np.ascontiguousarray(x, dtype) for x in (system.masses, *system[-3:])]
    when = np.ascontiguousarray(times, dtype)
    many = None if betas is None else np.ascontiguousarray(betas, np.float64)
    heads = 1 if system.values is None else len(system.values)
    matrices = [m for m in system[-3:-1] if m is not None]
    inner = matrices[0].shape[1] if matrices else system.d
    model = _System(
        len(system.masses), system.d, system.heard, heads, inner, system.softmax, system.frozen, system.opposed,
        system.paired, system.beta, system.shift, system.value, system.top, *(_address(x) for x in mine),
    )  # fmt: skip
    stages = len(steps.b)
    scheme = _Scheme(
        stages, kept[2].size // (stages + 1), steps.order, steps.error_order, steps.project_stages, steps.adaptive,
        *(_address(x) for x in kept), steps.rtol, steps.atol,
    )  # fmt: skip
    plan = _Travel(
        len(trails.state), len(when), budget, fresh, ripe is not None, threads, 0.0 if ripe is None else ripe
    )
    parts = (trails.state, trails.slope, trails.clocks, when, trails.rows, trails.energies, trails.works, trails.done)
    places = _Trails(*(_address(x) for x in (*parts, many)))
    library = native_library()
    assert library is not None
    call = getattr(library, f"pathlines_travel_{dtype.name}")
    call.restype = None
    call(*(ctypes.byref(x) for x in (model, scheme, plan, places)))


def _address(array: np.ndarray | None) -> int | None:
    return None if array is None else array.ctypes.data
