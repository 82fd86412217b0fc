"""Mistakes that schedules of ReLU pieces can have, for bounds and zeros to notice."""

from __future__ import annotations

from typing import Any

import numpy as np

from pathlines.claim.fitting import Mistake
from pathlines.transport.euclid.schedule import EuclideanSchedule


def compressing(of: str) -> Mistake:
    """Pieces with a share of a in w: shears that do not preserve volume."""

    def change(right: Any, size: float) -> Any:
        def wrong(*a: Any, **k: Any) -> EuclideanSchedule:
            flow = right(*a, **k)
            return EuclideanSchedule(flow.w + size * flow.a, flow.a, flow.b, flow.t)

        return wrong

    return Mistake(of, "pieces that move by {:g} along a", change, (1e-12, 1e-6))


def repeated(of: str) -> Mistake:
    """A schedule that is done, undone and done again."""

    def change(right: Any, size: float) -> Any:
        def wrong(*a: Any, **k: Any) -> EuclideanSchedule:
            flow = right(*a, **k)
            for _ in range(int(size)):
                flow = flow.compose(flow.inverse()).compose(flow)
            return flow

        return wrong

    return Mistake(of, "a schedule done, undone and done again", change, (1.0,))


def misdirected(of: str) -> Mistake:
    """Schedules of coordinates whose last has a share of its move in the coordinate before."""

    def change(right: Any, size: float) -> Any:
        def wrong(*a: Any, **k: Any) -> list[EuclideanSchedule]:
            *first, last = right(*a, **k)
            return [*first, EuclideanSchedule(last.w + size * np.roll(last.w, -1, axis=1), last.a, last.b, last.t)]

        return wrong

    return Mistake(of, "a share {:g} of each move in the coordinate before", change, (1e-12, 1e-6))


def too_far_back(of: str) -> Mistake:
    """Schedules whose way back is too long."""

    def change(right: Any, size: float) -> Any:
        class Wrong(right):
            def backward(self, y: Any, *, fused: bool = True) -> tuple[np.ndarray, np.ndarray]:
                back = self.inverse()
                return right((1 + size) * back.w, back.a, back.b, back.t).forward(y)

        return Wrong

    return Mistake(of, "a way back that is {:g} too long", change, (1e-9, 1e-6))
