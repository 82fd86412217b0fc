"""What we want to be true of the times: ratios within one run, each met, not met, or not measured."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import msgspec

from pathlines.sweep.bench.case import QUADRATIC
from pathlines.sweep.bench.machine import Machine
from pathlines.sweep.bench.measure import Result
from pathlines.sweep.bench.memory import Memory

CHOSEN = "automatic"
MOST_LISTED = 4
VERDICTS = {True: "met", False: "not met", None: "not measured"}


class Goal(msgspec.Struct, frozen=True):
    """A sentence, what was measured (a list when it is about several cases), and whether all of it is as wanted."""

    text: str
    measured: str
    met: bool | None


Found = list[tuple[str, float | None, bool]]


def goals(results: list[Result], machine: Machine | None, memories: list[Memory]) -> tuple[Goal, ...]:
    """All goals, in the order of the page."""
    table = {r.case: r for r in results}
    return tuple(
        _goal(text, found)
        for text, found in (
            *_dense(table),
            *_limit(table, machine),
            *_spectral(table),
            *_choice(table),
            *_small(table),
            *_everywhere(table),
            *_memory(memories),
        )
    )


def _goal(text: str, found: Found) -> Goal:
    known = [(name, value, good) for name, value, good in found if value is not None]
    failed, fine = ([(n, v) for n, v, good in known if good == wanted] for wanted in (False, True))
    parts = [f"{value:.3g} ({name})" for name, value in (failed if len(known) > MOST_LISTED else failed + fine)]
    if len(known) > MOST_LISTED and fine:
        values = sorted(value for _, value in fine)
        parts.append(f"{'the other ' if failed else ''}{len(fine)} from {values[0]:.3g} to {values[-1]:.3g}")
    missing = [name for name, value, _ in found if value is None]
    if missing and known:
        parts.append(f"not measured: {', '.join(missing)}")
    return Goal(text, "; ".join(parts), False if failed else (None if missing or not known else True))


def _ratio(table: dict[str, Result], case: str, peer: str, ours: str = CHOSEN) -> float | None:
    """Seconds of a peer over ours."""
    result = table.get(case)
    a, b = (result.seconds(peer), result.seconds(ours)) if result else (None, None)
    return None if a is None or b is None else a / b


def _at_least(pairs: list[tuple[str, float | None]], least: float) -> Found:
    return [(name, value, value is not None and value >= least) for name, value in pairs]


def _dense(table: dict[str, Result]) -> Iterator[tuple[str, Found]]:
    for dtype, least in (("float32", 5.0), ("float64", 4.0)):
        cases = [f"drift/n=20000,d={d}/{dtype}" for d in (2, 3)]
        found = [(c, _ratio(table, c, "PyTorch SDPA")) for c in cases]
        yield f"Dense, low dimension, {dtype}: at least {least:g} × as fast as PyTorch SDPA", _at_least(found, least)
    cases = [f"drift/{size}/{t}" for size in ("n=4000,d=128", "n=1000,d=64") for t in ("float32", "float64")]
    found = [(c, _ratio(table, c, "PyTorch SDPA")) for c in cases]
    yield "Dense, high dimension: no slower than PyTorch SDPA", _at_least(found, 1.0)


def _limit(table: dict[str, Result], machine: Machine | None) -> Iterator[tuple[str, Found]]:
    found: Found = []
    for case in (f"drift/n=20000,d={d}/{t}" for d in (2, 3) for t in ("float32", "float64")):
        seconds = table[case].seconds(CHOSEN) if case in table else None
        known = machine is not None and seconds is not None
        times = seconds * machine.exponentials[case[-7:]] * 1e9 / 20000**2 if known else None  # type: ignore
        found.append((case, times, times is not None and times <= 1.5))
    yield "Dense, low dimension: within 1.5 × the time of its exponentials alone (in cache)", found


def _spectral(table: dict[str, Result]) -> Iterator[tuple[str, Found]]:
    for space, sizes, least in (("circle", (10**4, 10**5, 10**6), 5.0), ("sphere", (10**5, 10**6), 3.0)):
        cases = [f"{space}/n={n}" for n in sizes]
        found = [(c, _ratio(table, c, "FINUFFT", "native series")) for c in cases]
        yield f"Series on the {space}: at least {least:g} × as fast as FINUFFT", _at_least(found, least)
        if space == "circle":
            found = [(c, _ratio(table, c, "FINUFFT", "portable series")) for c in cases]
            yield "Series on the circle in pure JAX: no slower than FINUFFT", _at_least(found, 1.0)
        growth = _growth(table, space)
        yield (
            f"Series on the {space}: ten times the tokens in at most fifteen times the time",
            [(f"{space}, n = 1e5 to 1e6", growth, growth is not None and growth <= 15)],
        )


def _growth(table: dict[str, Result], space: str) -> float | None:
    ends = [
        table[c].seconds("native series") if c in table else None for c in (f"{space}/n=100000", f"{space}/n=1000000")
    ]
    return None if ends[0] is None or ends[1] is None else ends[1] / ends[0]


def _choice(table: dict[str, Result]) -> Iterator[tuple[str, Found]]:
    found: Found = []
    for result in table.values():
        best, chosen = result.best(ours=True), result.seconds(CHOSEN)
        if result.group in ("circle", "sphere") and best is not None:
            times = chosen / best.seconds if chosen else inf if QUADRATIC in result.left_out.values() else None
            found.append((result.case, times, times is not None and times <= 1.3))
    yield "Series or dense sums: what is chosen takes at most 1.3 × the best of ours", found


def _small(table: dict[str, Result]) -> Iterator[tuple[str, Found]]:
    result = table.get("solve/n=32,d=3")
    ways = {"compiled steps": "compiled steps", CHOSEN: "flow, with checks, certificates and the labelled result"}
    found: Found = []
    for method, words in ways.items():
        seconds = result.seconds(method) if result else None
        ms = None if seconds is None else 1e3 * seconds
        found.append((f"ms, {words}", ms, ms is not None and ms < 3))
    yield "Adaptive solve of n = 32, d = 3 to T = 10 at 1e-8: under 3 ms", found
    case = "solve/n=200,d=3"
    for peers, least in ((("SciPy RK45", "SciPy DOP853"), 10.0), (("diffrax",), 4.0)):
        ratios = [(f"{case}, {peer}", _ratio(table, case, peer)) for peer in peers]
        yield f"The README's run: at least {least:g} × as fast as {peers[0].split()[0]}", _at_least(ratios, least)
    for dtype, least in (("float32", 3.0), ("float64", 4.5)):
        case = f"ensemble/runs=1000/{dtype}"
        yield (
            f"Ensemble of 1000 runs, {dtype}: at least {least:g} × as fast as batched PyTorch",
            _at_least([(case, _ratio(table, case, "PyTorch bmm"))], least),
        )


def _everywhere(table: dict[str, Result]) -> Iterator[tuple[str, Found]]:
    found: Found = []
    for result in table.values():
        if result.group in ("drift", "steps") and result.ratio is not None:
            found.append((result.case, 1 / result.ratio, 1 / result.ratio <= 1.3))
    yield "Never more than 1.3 × the time of the best peer, at any size of the table", found


def _memory(memories: list[Memory]) -> Iterator[tuple[str, Found]]:
    found: Found = [(f"GB, {m.method}", m.peak / 1e9, m.peak < 1e9) for m in memories]
    yield "Peak memory of a drift with n = 2·10⁵, d = 3: under 1 GB", found
