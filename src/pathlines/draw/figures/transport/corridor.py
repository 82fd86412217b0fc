"""One point passes all others: gather, corridor, restore (arXiv:2411.04551, Figures 5 and 6)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.orthographic import View, draw_on_sphere, draw_sphere
from pathlines.draw.style import COLOURS, INK, MUTED, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.papers.transport import MEASURE_TO_MEASURE
from pathlines.foundation.setting import Setting, means
from pathlines.transport.sphere.gate import Gate, gate_flow
from pathlines.transport.sphere.steer import ANCHOR, corridor_along

STEPS = 40
"""Points of a drawn path."""


class Passing(Setting):
    """One of M random points on S²."""

    points: Annotated[of.Count, means("points that are parked", "M - 1")] = 14
    angle: Annotated[of.Positive, means("from where the moving point starts to where it goes", unit="radians")] = 1.3
    azimuth: of.Azimuth = 45.0
    elevation: of.Elevation = 18.0
    seed: of.Seed = 1


@picture(
    "transport/corridor",
    MEASURE_TO_MEASURE,
    "One point (red) goes to its place (ring) and no other point does. Two gates, open on either side of the slab "
    "|⟨γ, x⟩| ≤ ε/2 (dashed), gather the parked points near ω; one gate sends the point along the corridor; the two "
    "gates reversed bring all others back to where they were (small circles). Lines: the way of each point.",
    quick=Passing(),
    full=Passing(points=40),
)
def passing(s: Passing) -> Figure:
    """Four frames."""
    x, y, parked, gamma, gates = _problem(s)
    figure, (panels,) = new_figure(1, 4, width=2.35, height=2.75)
    view, middle = View(s.azimuth, s.elevation), len(gates) // 2
    stages = [
        ("start", []),
        ("gather", gates[:middle]),
        ("corridor", gates[middle : middle + 1]),
        ("restore", gates[middle + 1 :]),
    ]
    now = np.vstack([x, parked])
    for axes, (name, pieces) in zip(panels, stages, strict=True):
        draw_sphere(axes, view)
        _draw_slab(axes, view, gamma, float(np.abs(parked @ gamma).min()) / 2)
        now = _draw_ways(axes, view, now, pieces)
        _draw_places(axes, view, parked, MUTED, 6.5, "where they were")
        _draw_places(axes, view, y[None], COLOURS[1], 10.0, "goal")
        draw_on_sphere(axes, view, now[1:], COLOURS[0], 20.0)
        draw_on_sphere(axes, view, now[:1], COLOURS[1], 42.0, zorder=6)
        axes.set_title(f"{name}: {len(pieces)} {'gate' if len(pieces) == 1 else 'gates'}" if pieces else name)
    _draw_anchors(panels[1], view, -(x + y) / np.linalg.norm(x + y), gamma)
    for ink, name, size in ((COLOURS[0], "parked points", 4.5), (COLOURS[1], "moving point", 6.5)):
        panels[1].plot([], [], "o", color=ink, ms=size, label=name)
    panels[1].plot(
        [], [], color=COLOURS[3], ls=(0, (3, 1.6)), lw=1.0, label=r"$|\langle\gamma, x\rangle| = \varepsilon/2$"
    )
    legend_below(figure, [panels[1]], columns=5)
    return figure


def _problem(s: Passing) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[Gate]]:
    """x and y on the equator about e₂, γ = e₃, and the first draw of parked points that leaves a corridor."""
    rng = np.random.default_rng(s.seed)
    x, y = (np.array([np.sin(v), np.cos(v), 0.0]) for v in (-s.angle / 2, s.angle / 2))
    gamma = np.eye(3)[2]
    for _ in range(200):
        parked = rng.standard_normal((s.points, 3))
        parked /= np.linalg.norm(parked, axis=1, keepdims=True)
        gates = corridor_along(gamma, x, y, parked) if np.abs(parked @ gamma).min() > 0.08 else None
        if gates is not None and len(gates) == 5:
            return x, y, parked, gamma, gates
    raise ArgumentError(f"Setting `points` must leave a corridor free, but {s.points} of them are in the way.")


def _draw_places(axes: Axes, view: View, places: np.ndarray, ink: str, size: float, label: str) -> None:
    """Rings, pale on the far side."""
    flat, depth = view.project(places)
    for k, ((a, b), near) in enumerate(zip(flat, depth > 0, strict=True)):
        style = {"mfc": "none", "mec": ink, "ms": size, "mew": size / 9, "alpha": 1.0 if near else 0.5}
        axes.plot(a, b, "o", zorder=3, label=None if k else label, ls="none", **style)


def _draw_ways(axes: Axes, view: View, now: np.ndarray, pieces: list[Gate]) -> np.ndarray:
    """The way of each point through the pieces, and where they are then."""
    for piece in pieces:
        shares = np.linspace(0, 1, STEPS)
        paths = np.array([gate_flow(piece._replace(duration=v * piece.duration), now) for v in shares])
        moved = np.abs(paths[-1] - now).max(axis=1) > 1e-9
        for k in np.flatnonzero(moved):
            flat, depth = view.project(paths[:, k])
            for side, alpha in ((depth >= 0, 0.85), (depth < 0, 0.3)):
                ink = COLOURS[1] if k == 0 else COLOURS[0]
                axes.plot(*np.where(side[:, None], flat, np.nan).T, color=ink, lw=1.8 if k == 0 else 0.8, alpha=alpha)
        now = paths[-1]
    return now


def _draw_slab(axes: Axes, view: View, gamma: np.ndarray, height: float) -> None:
    """The two circles ⟨γ, x⟩ = ±ε/2."""
    one, two = np.linalg.svd(gamma[None])[2][1:]
    turn = np.linspace(0, 2 * np.pi, 241)[:, None]
    for sign in (1, -1):
        ring = sign * height * gamma + np.sqrt(1 - height**2) * (np.cos(turn) * one + np.sin(turn) * two)
        flat, depth = view.project(ring)
        for side, alpha in ((depth >= 0, 0.9), (depth < 0, 0.3)):
            axes.plot(*np.where(side[:, None], flat, np.nan).T, color=COLOURS[3], ls=(0, (3, 1.6)), lw=1.0, alpha=alpha)


def _draw_anchors(axes: Axes, view: View, omega: np.ndarray, gamma: np.ndarray) -> None:
    """ω and the two points at which the gates aim."""
    anchors = [omega, *(np.cos(ANCHOR) * omega + sign * np.sin(ANCHOR) * gamma for sign in (1, -1))]
    for point, name in zip(anchors, ("$\\omega$", "$\\omega_+$", "$\\omega_-$"), strict=True):
        (a, b), _ = view.project(point)
        axes.plot(a, b, "x", color=INK, ms=5, mew=1.2, zorder=7)
        axes.annotate(name, (a, b), (6, 3), textcoords="offset points", fontsize=9, color=INK, zorder=8)
