"""Changes of clock: t(τ) = ∫_0^τ speed(τ') dτ' tabulated by Gauss panels and inverted, to some 14 digits.

A scalar autonomous ODE dτ/dt = 1/speed(τ) is a quadrature; doing it as one is more accurate and cheaper than any
time stepper, and an answer at one time does not depend on which other times were asked for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pathlines.foundation.errors import ArgumentError

Function = Callable[[np.ndarray], np.ndarray]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_NODES, _WEIGHTS = 0.5 * (_NODES + 1.0), 0.5 * _WEIGHTS
_MOST_PANELS = 200_000


class Clock:
    """The map τ -> t(τ) from τ = 0 on, and its inverse.

    ``speed`` is dt/dτ > 0 on arrays; ``width`` gives, at a τ, a length over which ln(speed) changes by at most about 1
    (so that 20 Gauss points are exact to rounding). Panels are added as far as the questions reach; each costs 20
    evaluations of ``speed``.
    """

    def __init__(self, speed: Function, width: Callable[[float], float]) -> None:
        self._speed = speed
        self._width = width
        self._edges = [0.0]
        self._times = [0.0]

    def _integral(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        length = right - left
        return length * (self._speed(left[:, None] + length[:, None] * _NODES) @ _WEIGHTS)

    def _extend(self, *, progress: float = 0.0, time: float = 0.0) -> None:
        """Add panels until they cover ``progress`` and ``time``; in batches, because a panel alone is all overhead."""
        while self._edges[-1] < progress or self._times[-1] < time:
            batch = [self._edges[-1]]
            for _ in range(min(16 + len(self._edges) // 2, 1024)):
                batch.append(batch[-1] + self._width(batch[-1]))
            edges = np.array(batch)
            lengths = self._integral(edges[:-1], edges[1:])
            self._times.extend((self._times[-1] + np.cumsum(lengths)).tolist())
            self._edges.extend(batch[1:])
            if len(self._edges) > _MOST_PANELS:
                raise ArgumentError(f"The time change needs more than {_MOST_PANELS} panels; ask for an earlier time.")

    def time_at(self, progress: np.ndarray) -> np.ndarray:
        """t(τ) for an array of finite τ ≥ 0."""
        tau = np.ravel(progress)
        self._extend(progress=float(np.max(tau, initial=0.0)))
        edges, times = np.array(self._edges), np.array(self._times)
        panel = np.searchsorted(edges, tau, side="right") - 1
        return (times[panel] + self._integral(edges[panel], tau)).reshape(np.shape(progress))

    def progress_at(self, time: np.ndarray) -> np.ndarray:
        """τ(t) for an array of finite t ≥ 0: Newton inside the panel, where the speed hardly changes."""
        t = np.ravel(time)
        self._extend(time=float(np.max(t, initial=0.0)))
        edges, times = np.array(self._edges), np.array(self._times)
        panel = np.clip(np.searchsorted(times, t, side="right") - 1, 0, max(len(edges) - 2, 0))
        if len(edges) == 1:
            return np.zeros(np.shape(time))
        left, right = edges[panel], edges[panel + 1]
        rest = t - times[panel]
        tau = left + (right - left) * rest / (times[panel + 1] - times[panel])
        for _ in range(12):
            step = (self._integral(left, tau) - rest) / self._speed(tau)
            tau = np.clip(tau - step, left, right)
            if np.all(np.abs(step) <= 1e-16 * tau):
                break
        return tau.reshape(np.shape(time))
