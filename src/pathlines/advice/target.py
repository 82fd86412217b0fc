"""The smallest turn of a knob that keeps the mean cosine after some layer at or below a target, for most seeds.

Single models scatter about the mean, so the aim is a share of them (nine of ten by default):

    mean + z·spread + ``UNSURE`` ≤ target,   z the normal quantile of the share,

with the predicted spread and the error that the mean itself is promised to. Each knob multiplies by x = e^s. The slope
of the mean at s = 0 says which way to turn; s is doubled until the target is met, and the crossing is found by Brent's
method to 2% of x. Some ten predictions a knob.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache

import msgspec
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from pathlines.advice.knobs import Knob
from pathlines.architecture import Architecture
from pathlines.foundation.errors import finite_number, positive_integer
from pathlines.limit.architecture.predict import Band, cosine_band, cosine_curve
from pathlines.limit.architecture.start import Tokens

_SMALL = 0.05
FURTHEST = 64.0
_FLAT = 1e-5  # a knob with less effect than this on the cosine is no knob here
CONFIDENCE = 0.9
SATURATED = 0.99
"""Mean cosine at which slopes say nothing any more, so that both ways are tried."""
UNSURE = 0.015
"""Mean error that predictions are held to (docs/advise.md); a remedy keeps clear of it."""


class Target(msgspec.Struct, frozen=True):
    """The mean cosine is to be at most ``cosine`` after ``layer`` layers, for a share ``confidence`` of seeds."""

    cosine: float
    layer: int
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        finite_number("target_cosine", self.cosine, -1.0, 1.0)
        positive_integer("at_layer", self.layer)
        finite_number("confidence", self.confidence, 0.5, 0.999)

    def share(self, band: Band) -> float:
        """Of random starts that are predicted to meet it."""
        if self.cosine >= 1 or band.spread <= 0:
            return float(band.cosine <= self.cosine)
        return float(ndtr((self.cosine - band.cosine) / band.spread))

    def met(self, band: Band) -> bool:
        """Whether that share is large enough."""
        return self.share(band) >= self.confidence

    def excess(self, band: Band) -> float:
        """What is missing to it with room for the prediction's own error."""
        return band.cosine + float(ndtri(self.confidence)) * band.spread + UNSURE - self.cosine


class Change(msgspec.Struct, frozen=True):
    """A knob, its effect ∂cosine/∂log x, and the factor that meets the target (None: none does).

    ``cosine``, ``spread`` and ``share``: mean and s.d. over seeds then, and the share of seeds that meet the target.
    """

    knob: str
    fields: str
    slope: float
    factor: float | None
    cosine: float | None
    spread: float | None = None
    share: float | None = None


def smallest_first(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Those that meet the target first, by how little they have to be turned."""
    return tuple(
        sorted(changes, key=lambda c: (c.factor is None, abs(math.log(c.factor)) if c.factor else -abs(c.slope)))
    )


def change(knob: Knob, architecture: Architecture, tokens: Tokens, target: Target, now: float) -> list[Change]:
    """How far the knob has to be turned; ``now`` is the mean by ``cosine_curve``. None where the knob is not there."""
    if knob.name == "residual scale of the perceptron" and not architecture.mlp_width:
        return []

    @cache
    def band(s: float) -> Band:
        return cosine_band(knob.turn(architecture, math.exp(s)), tokens, target.layer)

    turned = knob.turn(architecture, math.exp(_SMALL))
    slope = (float(cosine_curve(turned, tokens, target.layer)[-1]) - now) / _SMALL
    ways = (-1.0, 1.0) if now > SATURATED else (-math.copysign(1.0, slope),) if abs(slope) > _FLAT else ()
    found = (_crossing(lambda s: target.excess(band(s)), way) for way in ways)
    s = next((s for s in found if s is not None), None)
    if s is None:
        return [Change(knob.name, knob.fields, slope, None, None)]
    factor = _rounded(math.exp(s))
    there = band(math.log(factor))
    return [Change(knob.name, knob.fields, slope, factor, there.cosine, there.spread, target.share(there))]


def _rounded(x: float) -> float:
    """To two digits, away from one."""
    unit = 10.0 ** (math.floor(math.log10(x)) - 1)
    digits = math.floor(x / unit) if x < 1 else math.ceil(x / unit)
    return float(f"{digits * unit:.2g}")


def _crossing(excess: Callable[[float], float], direction: float) -> float | None:
    """The least |s| of that sign with excess ≤ 0, up to 2%; None within a factor of ``FURTHEST``."""
    before, s = 0.0, 0.5 * direction
    while excess(s) > 0:
        if abs(s) >= math.log(FURTHEST):
            return None
        before = s
        s = direction * min(2 * abs(s), math.log(FURTHEST))
    if excess(before) <= 0:  # the mean itself misses by less than the room that is kept
        return before
    root, push = float(brentq(excess, before, s, xtol=0.02, rtol=1e-3)), 0.01 * direction
    while excess(root) > 0:  # Brent's answer may lie on either side of the crossing
        root, push = root + push, 2 * push
    return root
