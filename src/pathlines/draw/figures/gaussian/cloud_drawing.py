"""Drawing parts for Gaussian clouds: ellipses, the disc of covariances of trace one."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle, Ellipse

from pathlines.draw.style import GRID, MUTED

CLASS_COLOURS = {
    "converged": "#0b62a8",
    "to-zero": "#59636e",
    "blow-up": "#d1495b",
    "exponential": "#e09f3e",
    "algebraic": "#3aa6b9",
    "undecided": "#c9ced6",
}


def ellipse(covariance: Any, centre: Any = (0.0, 0.0), **style: Any) -> Ellipse:
    """The set |Σ^{-1/2}(x - α)| = 1."""
    values, vectors = np.linalg.eigh(np.asarray(covariance, float))
    wide, high = 2 * np.sqrt(np.maximum(values[::-1], 0.0))
    turn = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
    return Ellipse(tuple(centre), wide, high, angle=turn, **{"fc": "none", **style})


def on_disc(covariances: Any) -> tuple[np.ndarray, np.ndarray]:
    """(Σ_11 - Σ_22, 2Σ_12)/tr Σ: the unit disc, its rim the covariances of rank one."""
    cov = np.asarray(covariances, float)
    trace = cov[..., 0, 0] + cov[..., 1, 1]
    return (cov[..., 0, 0] - cov[..., 1, 1]) / trace, 2 * cov[..., 0, 1] / trace


def draw_disc(axes: Axes) -> None:
    """The disc with its rim and centre."""
    axes.add_patch(Circle((0, 0), 1.0, fc="none", ec=MUTED, lw=1.0, zorder=2))
    axes.plot([0], [0], "+", color=GRID, ms=6, zorder=1)
    axes.set(aspect="equal", xlim=(-1.12, 1.12), ylim=(-1.12, 1.12), xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    axes.set(xlabel=r"$(\Sigma_{11}-\Sigma_{22})/\mathrm{tr}\,\Sigma$", ylabel=r"$2\,\Sigma_{12}/\mathrm{tr}\,\Sigma$")
