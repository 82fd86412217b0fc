"""Interleaved timing: one sample of every contender a round, so that a busy minute hits all of them."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np

from pathlines.sweep.bench.case import Case, reason_to_leave_out

SAMPLE = 50e-3
"""Seconds of one sample at least, of repeated calls: after a rest the second core takes milliseconds to join in."""

REST = 20e-3
"""Seconds between contenders: idle threads of the one before have stopped spinning by then."""

SHORT = 50e-3
"""Calls below this are made once before their sample: it wakes their threads and fills the caches, as a loop would."""

PATIENCE = 5.0
"""A call that takes longer than this is not repeated."""


class Timing(msgspec.Struct, frozen=True):
    """One contender's seconds per call: median and quartiles over samples; ``error`` against an independent sum."""

    method: str
    ours: bool
    seconds: float
    low: float
    high: float
    samples: int
    error: float


class Result(msgspec.Struct, frozen=True):
    """A case with the times of its contenders, and why others were left out."""

    case: str
    group: str
    n: int
    d: int
    dtype: str
    what: str
    timings: tuple[Timing, ...]
    left_out: dict[str, str]

    def seconds(self, method: str) -> float | None:
        """The median of one method, if it took part."""
        return next((t.seconds for t in self.timings if t.method == method), None)

    def best(self, ours: bool) -> Timing | None:
        """The fastest of ours, or of the peers."""
        return min((t for t in self.timings if t.ours == ours), key=lambda t: t.seconds, default=None)

    @property
    def ratio(self) -> float | None:
        """Best peer's time over that of the method we choose (above one: we are faster)."""
        peer, chosen = self.best(ours=False), self.seconds("automatic")
        return None if peer is None or chosen is None else peer.seconds / chosen


def measure(case: Case, seconds: float, quick: bool = False) -> Result:
    """All contenders of a case that can take part, within about ``seconds`` after their first calls."""
    problem = case.build()
    left_out, calls, errors, firsts = {}, {}, {}, {}
    for contender in case.contenders:
        name, why = contender.name, reason_to_leave_out(contender, problem, quick)
        if why:
            left_out[name] = why
            continue
        try:
            call = contender.make(problem)
            first, answer = _timed(call)
            errors[name] = case.error(problem, contender.read(problem, answer))
            firsts[name] = first if contender.steady and first > PATIENCE else _timed(call)[0]
        except Exception as error:  # a peer that does not work here must not end the comparison of the others
            left_out[name] = f"failed: {type(error).__name__}: {' '.join(str(error).split())[:120]}"
        else:
            calls[name] = call
        answer = None
    samples = interleaved(calls, firsts, seconds)
    ours = {c.name: c.ours for c in case.contenders}
    timings = tuple(_timing(name, ours[name], samples[name], errors[name]) for name in calls)
    return Result(case.name, case.group, case.n, case.d, case.dtype, case.what, timings, left_out)


def interleaved(
    calls: Mapping[str, Callable[[], Any]], firsts: Mapping[str, float], seconds: float
) -> dict[str, list[float]]:
    """Seconds a call, in 7 to 31 rounds of one sample of each; calls over ``PATIENCE`` keep their first time.

    Each round takes them in another order, so that none always follows the same one.
    """
    samples = {name: [first] if first > PATIENCE else [] for name, first in firsts.items()}
    repeats = {name: max(1, round(SAMPLE / max(firsts[name], 1e-7))) for name in calls if not samples[name]}
    a_round = sum(count * firsts[name] + REST for name, count in repeats.items())
    names, order = list(repeats), np.random.default_rng(0)
    for _ in range(int(np.clip(seconds / max(a_round, REST), 7, 31))):
        for name in (names[k] for k in order.permutation(len(names))):
            time.sleep(REST)
            if firsts[name] < SHORT:
                calls[name]()
            samples[name].append(_sample(calls[name], repeats[name]))
    return samples


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    answer = call()
    return time.perf_counter() - began, answer


def _sample(call: Callable[[], Any], repeats: int) -> float:
    gc.disable()
    began = time.perf_counter()
    for _ in range(repeats):
        call()
    seconds = (time.perf_counter() - began) / repeats
    gc.enable()
    return seconds


def _timing(name: str, ours: bool, samples: list[float], error: float) -> Timing:
    low, middle, high = (float(q) for q in np.quantile(samples, [0.25, 0.5, 0.75]))
    return Timing(name, ours, middle, low, high, len(samples), error)
