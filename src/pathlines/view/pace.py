"""Which recorded times become frames, so that each frame shows about as much motion as the next."""

from __future__ import annotations

from typing import Literal

import numpy as np

from pathlines.foundation.errors import require

Clock = Literal["motion", "time", "log"]
CLOCKS = ("motion", "time", "log")
EVEN = 0.25
"""The share of the frames that follow the time itself, so that a plateau is seen to last."""


def chosen_frames(times: np.ndarray, places: np.ndarray, count: int, clock: str = "motion") -> np.ndarray:
    """Indices of at most ``count`` recorded times, the first and the last among them; no state is made up.

    "motion" steps evenly along the root mean square length of the paths (and, for a quarter, along time, so that
    plateaus are seen to last), "time" evenly in t, "log" evenly in the logarithm of t.
    """
    require(clock in CLOCKS, "clock", f"be one of {', '.join(CLOCKS)}", clock)
    if len(times) <= count:
        return np.arange(len(times))
    progress = {"motion": _motion, "time": lambda t, _: t - t[0], "log": _logarithm}[clock](times, places)
    enough, many = count, 64 * count
    while many - enough > 1:
        between = (enough + many) // 2
        fits = len(_nearest(progress, between)) <= count
        enough, many = (between, many) if fits else (enough, between)
    return _nearest(progress, enough)


def _nearest(progress: np.ndarray, steps: int) -> np.ndarray:
    """The records nearest to so many even steps of the progress: fewer where several steps share one."""
    wanted = np.linspace(0.0, progress[-1], steps)
    right = np.clip(np.searchsorted(progress, wanted), 1, len(progress) - 1)
    nearer = np.where(wanted - progress[right - 1] < progress[right] - wanted, right - 1, right)
    return np.unique(np.concatenate([[0], nearer, [len(progress) - 1]]) if steps > 2 else [0, len(progress) - 1])


def _motion(times: np.ndarray, places: np.ndarray) -> np.ndarray:
    steps = np.sqrt(np.mean(np.sum(np.diff(places, axis=0) ** 2, axis=-1), axis=-1))
    length = np.append(0.0, np.cumsum(steps))
    if not length[-1] > 0:
        return times - times[0]
    return (1 - EVEN) * length / length[-1] + EVEN * (times - times[0]) / (times[-1] - times[0])


def _logarithm(times: np.ndarray, _: np.ndarray) -> np.ndarray:
    """Up to the first positive time frames cannot be even; it is one step."""
    positive = times[times > 0]
    logs = np.log(np.maximum(times, positive[0]))
    return logs - logs[0] + np.where(times > 0, (logs[-1] - logs[0]) / max(len(times), 2), 0.0)


def time_scale(times: np.ndarray) -> Literal["linear", "log"]:
    """A logarithmic axis where half of the records lie in the first hundredth of the time."""
    span = times[-1] - times[0]
    return "log" if span > 0 and np.median(times) - times[0] < 0.01 * span else "linear"
