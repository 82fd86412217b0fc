"""Claims, figures and a film that take a tenth of a second, so that a kill falls between any two of their steps."""

import time
from functools import partial
from typing import Any

import numpy as np

from pathlines.claim import Evidence, absolute, claim
from pathlines.draw.animation import Reel, animation
from pathlines.draw.gallery import picture
from pathlines.draw.style import new_figure
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting

MANY = 8
FRAMES = 12


class Dot(Setting):
    frames: int = FRAMES


class Walk(Setting):
    wait: float = 0.05


class Sum(Setting):
    number: int = 0
    wait: float = 0.1


def simulate(s: Sum) -> Evidence:
    time.sleep(s.wait)
    return Evidence({"sum": float(np.arange(s.number + 1).sum())})


def predict(s: Sum) -> Evidence:
    return Evidence({"sum": s.number * (s.number + 1) / 2})


def draw(number: int, s: Walk) -> Any:
    time.sleep(s.wait)
    figure, axes = new_figure()
    axes[0][0].plot(np.random.default_rng(number).normal(size=2000))
    return figure


@animation("tiny/film", PERSPECTIVE, "A dot that moves.", quick=Dot())
def film(s: Dot) -> Reel:
    figure, axes = new_figure()
    (dot,) = axes[0][0].plot([0.0], [0.0], "o")
    return Reel(figure, s.frames, lambda k: dot.set_data([0.01 * k], [0.0]))


for k in range(MANY):
    picture(f"tiny/{k}", PERSPECTIVE, "A walk.", quick=Walk())(partial(draw, k))
    claim(
        f"tiny/{k}",
        PERSPECTIVE,
        "made up",
        "The first numbers sum up to n(n+1)/2.",
        models=("sa",),
        quick=Sum(number=k),
        within={"sum": absolute(1e-12, "whole numbers")},
        simulate=simulate,
        predict=predict,
    )
