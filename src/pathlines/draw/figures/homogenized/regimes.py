"""Which limit holds at which step, noise and depth (Homogenized Transformers, arXiv:2604.01978)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from msgspec import Meta

from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, INK, MUTED, THEORY, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.limit.homogenized.parameters import HomogenizedParameters
from pathlines.limit.homogenized.regimes import EXPONENT_BOUNDARIES, exponents, regime

WIDE, HIGH, MARGIN = 1.4, 1.9, 0.15
FILLS = {"failure": "#eceff2", "ode2": "#f6dfb9", "ode1": "#cfe6da", "static": "#cfdfee"}
NAMES = {"failure": "not covered", "ode2": "ODE II", "ode1": "ODE I", "static": "static", "sde": "SDE"}
Points = list[tuple[float, float]]
Map = Callable[[Any, Any], tuple[Any, Any]]


class Window(NamedTuple):
    """What is shown of the exponents: the usual part of the plane, and the architecture wherever it is."""

    left: float
    right: float
    low: float
    high: float


def _window(a: float, c: float) -> Window:
    right = max(WIDE, a + MARGIN)
    return Window(min(0.0, a - MARGIN), right, min(1 - right, c - MARGIN), max(HIGH, c + MARGIN))


def _regions(w: Window) -> dict[str, Points]:
    """Polygons in the exponents (a, c) of η = L^{-a}, α = L^{-c}; all share the line a + c = 1."""
    first, second, third = (EXPONENT_BOUNDARIES[k] for k in ("static", "ode1", "ode2"))

    def above(left: float, right: float) -> Points:
        return [(left, 1 - left), (right, 1 - right), (right, w.high), (left, w.high)]

    below = [(w.left, w.low), (w.right, w.low), (w.right, 1 - w.right)]
    return {
        "failure": [*below, (third, 1 - third), (third, w.high), (w.left, w.high)],
        "ode2": above(third, second),
        "ode1": above(second, first),
        "static": above(first, w.right),
    }


class Architecture(Setting):
    """An architecture on the map of regimes."""

    layers: Annotated[Annotated[int, Meta(ge=2)], means("layers", "L")] = 1000
    step: of.Step = 0.04
    heads: of.Heads = 2
    d: of.Dimension = 256
    head_lines: Annotated[of.Counts, means("numbers of heads whose lines are drawn", "H")] = (8, 64)


def _draw(axes: Axes, place: Map, proxy: float, w: Window, s: Architecture) -> None:
    """The regions, what less than one head would need, and the architecture, with exponents mapped by ``place``."""
    for label, points in _regions(w).items():
        axes.fill(*place(*np.array(points).T), color=FILLS[label], lw=0, zorder=1)
    third = EXPONENT_BOUNDARIES["ode2"]
    for a in EXPONENT_BOUNDARIES.values():
        axes.plot(*place(np.array([a, a]), np.array([1 - a, w.high])), color=MUTED, lw=0.9, zorder=2)
    line = np.array([third, w.right])
    axes.plot(*place(line, 1 - line), color=COLOURS[1], lw=3, zorder=3, label=r"SDE: $\alpha\eta L = O(1)$")
    shift = -np.log(proxy) / np.log(s.layers)  # α = ης²/H reads c = a - log ς²/log L + log H/log L
    edge = np.array([w.left, w.right])
    bottom = min(w.low, w.left + shift)
    forbidden = np.array([(w.left, w.left + shift), (w.right, w.right + shift), (w.right, bottom), (w.left, bottom)])
    axes.fill(*place(*forbidden.T), fc="none", ec=MUTED, hatch="///", lw=0, alpha=0.55, zorder=2)
    axes.fill([], [], fc="none", ec=MUTED, hatch="///", alpha=0.55, label=r"out of reach: $\alpha > \eta\varsigma^2$")
    axes.plot(*place(edge, edge + shift), color=THEORY, lw=1.3, zorder=4, label="one head")
    for k, heads in enumerate(s.head_lines):
        more = np.log(heads) / np.log(s.layers)
        axes.plot(*place(edge, edge + shift + more), color=THEORY, lw=0.8, ls=((0, (5, 2)), ":")[k % 2], zorder=4,
                  label=f"{heads} heads")  # fmt: skip
    names = {"failure": (0.16, 1.28, 90), "ode2": (0.417, 1.55, 90), "ode1": (0.75, 1.62, 0), "static": (1.2, 1.65, 0)}
    for label, (a, c, turn) in names.items():
        axes.text(*place(a, c), NAMES[label], ha="center", va="center", rotation=turn, color=INK, zorder=6,
                  fontweight="bold", fontsize=8.5, bbox={"fc": FILLS[label], "ec": "none", "pad": 1.5})  # fmt: skip
    axes.grid(False)


def _architecture(axes: Axes, at: tuple[float, float], s: Architecture) -> None:
    label = f"η = {s.step:g}, H = {s.heads}, d = {s.d}"
    axes.plot(*at, marker="*", ms=13, mfc=COLOURS[3], mec=INK, mew=0.8, ls="", zorder=8, label=label)


@picture(
    "homogenized/regimes",
    HOMOGENIZED,
    "Which limit describes L random layers of step η and noise parameter α = ης²/H: on the left for one depth, on the "
    "right in the exponents of η = L⁻ᵃ, α = L⁻ᶜ. The SDE lives on the line αηL = 1; no model has less than one head "
    "(hatched), and more heads lower α. The star is one architecture; lines are where a condition equals one, its "
    "label asks for at most a tenth. Centred weights stand still in ODE I and II, and for them the SDE holds wherever "
    "v = αη is small, also where the diagram says not covered.",
    quick=Architecture(),
)
def regimes(s: Architecture) -> Figure:
    """The (η, α) plane at depth L, and the plane of exponents."""
    numbers = HomogenizedParameters.gaussian(2, s.d, s.step, heads=s.heads, logit_scale=1.0, layers=s.layers)
    star = tuple(float(v) for v in exponents(s.step, numbers.alpha, s.layers))
    w = _window(*star)
    figure, ((left, right),) = new_figure(1, 2, width=4.3, height=3.9)
    depth = float(s.layers)
    _draw(left, lambda a, c: (depth**-a, depth**-c), numbers.variance_proxy, w, s)
    _architecture(left, (s.step, numbers.alpha), s)
    left.set(xscale="log", yscale="log", xlabel=r"step $\eta$", ylabel=r"noise parameter $\alpha$")
    left.set(
        xlim=(depth**-w.right, depth**-w.left), ylim=(depth**-w.high, depth**-w.low), title=f"L = {s.layers} layers"
    )
    _draw(right, lambda a, c: (a, c), numbers.variance_proxy, w, s)
    _architecture(right, star, s)
    right.set(xlabel=r"$a$,  $\eta = L^{-a}$", ylabel=r"$c$,  $\alpha = L^{-c}$", xlim=w[:2], ylim=w[2:])
    right.set_xticks([0, 1 / 3, 1 / 2, 1], ["0", "⅓", "½", "1"])
    found = [NAMES[regime(s.step, numbers.alpha, s.layers, centred=centred).label] for centred in (False, True)]
    right.set_title(f"star: {found[0]}; centred: {found[1]}")
    legend_below(figure, [left], columns=3)
    return figure
