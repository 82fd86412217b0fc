"""The smallest single change that keeps the mean cosine after some layer at or below a target.

Each knob multiplies by x = e^s. The slope of the predicted cosine at s = 0 says which way to turn; s is doubled until
the target is met, and the crossing is found by Brent's method to 1% of x. Some eight predictions a knob.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache

import msgspec
from scipy.optimize import brentq

from pathlines.advice.knobs import Knob
from pathlines.architecture import Architecture
from pathlines.foundation.errors import finite_number, positive_integer
from pathlines.limit.architecture.predict import cosine_curve
from pathlines.limit.architecture.start import Tokens

_SMALL = 0.05
FURTHEST = 64.0
_FLAT = 1e-5  # a knob with less effect than this on the cosine is no knob here


class Target(msgspec.Struct, frozen=True):
    """The mean cosine is to be at most ``cosine`` after ``layer`` layers."""

    cosine: float
    layer: int

    def __post_init__(self) -> None:
        finite_number("target_cosine", self.cosine, -1.0, 1.0)
        positive_integer("at_layer", self.layer)


class Change(msgspec.Struct, frozen=True):
    """A knob, its effect ∂cosine/∂log x, and the factor that meets the target (None: none does) with the cosine."""

    knob: str
    fields: str
    slope: float
    factor: float | None
    cosine: float | None


def smallest_first(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Those that meet the target first, by how little they have to be turned."""
    return tuple(
        sorted(changes, key=lambda c: (c.factor is None, abs(math.log(c.factor)) if c.factor else -abs(c.slope)))
    )


def change(knob: Knob, architecture: Architecture, tokens: Tokens, target: Target, now: float) -> list[Change]:
    """How far the knob has to be turned from the cosine ``now``; none where the architecture does not have it."""
    if knob.name == "residual scale of the perceptron" and not architecture.mlp_width:
        return []

    @cache
    def excess(s: float) -> float:
        turned = knob.turn(architecture, math.exp(s))
        return float(cosine_curve(turned, tokens, target.layer)[-1]) - target.cosine

    slope = (excess(_SMALL) + target.cosine - now) / _SMALL
    if now <= target.cosine:
        return [Change(knob.name, knob.fields, slope, 1.0, now)]
    s = _crossing(excess, -math.copysign(1.0, slope)) if abs(slope) > _FLAT else None
    if s is None:
        return [Change(knob.name, knob.fields, slope, None, None)]
    return [Change(knob.name, knob.fields, slope, math.exp(s), excess(s) + target.cosine)]


def _crossing(excess: Callable[[float], float], direction: float) -> float | None:
    """The least |s| of that sign with excess ≤ 0, up to 1%; None within a factor of ``FURTHEST``."""
    before, s = 0.0, 0.5 * direction
    while excess(s) > 0:
        if abs(s) >= math.log(FURTHEST):
            return None
        before = s
        s = direction * min(2 * abs(s), math.log(FURTHEST))
    root, push = float(brentq(excess, before, s, xtol=0.01, rtol=1e-3)), 0.005 * direction
    while excess(root) > 0:  # Brent's answer may lie on either side of the crossing
        root, push = root + push, 2 * push
    return root
