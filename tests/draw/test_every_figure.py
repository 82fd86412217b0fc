"""Every named figure draws, at a tiny setting, without a warning, with its axes labelled."""

import io
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.draw.gallery import FIGURES
from pathlines.draw.style import house_style
from pathlines.foundation.papers import Paper

PHASE: dict[str, Any] = {
    "dimensions": [2, 6],
    "columns": 2,
    "n": 4,
    "betas": 3,
    "times": 5,
    "samples": 2,
    "beta_max": 2.0,
}
TINY: dict[str, dict[str, Any]] = {
    "causal/attention-paths": {"n": 12},
    "causal/retrieval-profiles": {"n": 8, "prompts": 64, "depths": [0.3], "shares": [0.5, 1.3]},
    "causal/shape-diagram": {"slopes": 4},
    "clustering/attention-matrix": {"n": 6, "d": 4, "times": [0.0, 1.0], "until": 2.0, "frames": 5},
    "clustering/bipolar-stability": {"grid": 6, "probes": 3},
    "clustering/codimension": {"n": 6, "until": 8.0, "frames": 9},
    "clustering/general-weights": {"n": 4, "d": 3, "betas": 2, "times": 4, "until": 2.0, "samples": 2},
    "clustering/high-dimensional-coordinates": {
        "n": 8,
        "d": 8,
        "density": 0.5,
        "until": 12.0,
        "frames": 9,
        "step": 0.1,
    },
    "clustering/histograms": {"n": 4, "dimensions": [6], "times": [0.0, 1.0], "bins": 8, "runs": 2},
    "clustering/hyperplanes": {"n": 6, "until": 2.0, "frames": 9},
    "clustering/layer-vs-flow": {"n": 4, "betas": 3, "beta_max": 2.0, "steps": [0.2, 0.5], "token_betas": [1.0]},
    "clustering/leaders": {"n": 6, "times": [0.0, 1.0]},
    "clustering/long-context": {"grid": 9, "points": 3, "simulated": 8},
    "clustering/mixed": {"n": 8, "until": 6.0, "frames": 17},
    "clustering/phase-diagram": {**PHASE, "dimensions": [6]},
    "clustering/phase-diagram-usa": {**PHASE, "dimensions": [2]},
    "clustering/polytopes": {"n": 8, "until": 2.0, "frames": 9},
    "clustering/precision": {"n": 3, "until": 30.0, "frames": 16, "rtol": 1e-9},
    "clustering/readme": {
        "n": 8,
        "times": [0.0, 2.0, 4.0, 6.0],
        "until": 10.0,
        "frames": 10,
        "phase_n": 4,
        "phase_d": 2,
        "betas": 3,
        "beta_max": 2.0,
        "phase_times": 5,
        "samples": 2,
    },
    "clustering/schemes": {"n": 4, "d": 6, "until": 3.0, "frames": 5, "runs": 2},
    "clustering/spectra": {"n": 4, "until": 1.0, "frames": 4, "runs": 2, "single": 1},
    "clustering/sphere-snapshots": {"n": 6, "rows": [[3, 1.0], [2, 2.0]], "times": [0.0, 2.0], "frames": 9},
    "homogenized/architecture-curves": {
        "n": 4,
        "d": 8,
        "heads": 2,
        "width": 6,
        "depth": 4,
        "every": 2,
        "reach": 4,
        "runs": 2,
    },
    "homogenized/collapse-map": {
        "n_min": 8,
        "n_max": 64,
        "ns": 2,
        "b_max": 1.0,
        "bs": 2,
        "marked_n": [16],
        "marked_b": [1.0],
        "lines": [0.0, 1.0],
    },
    "homogenized/corrected-drift": {"steps": [0.1, 0.05], "until": 0.2},
    "homogenized/layer-map": {"n": 4, "d": 8, "steps": [1.4], "runs": [3], "points": 3, "until": 2.0},
    "homogenized/logistic": {"cases": [[6, 8, 0.05, "linear"]], "step": 0.8, "until": 2.0, "runs": 2},
    "homogenized/logistic-sde": {
        "until": 0.2,
        "frames": 5,
        "paths": 2,
        "times": 3,
        "d": 4,
        "step": 0.8,
        "chain_until": 0.5,
        "runs": 4,
    },
    "homogenized/overlap-curves": {"n": 4, "curves": [1.0, 2.0], "betas": 2, "rows": 5, "frames": 9},
    "homogenized/participation": {"n": 4, "scales": [1.0], "narrow": [1.0], "points": 3, "frames": 9, "width": 64},
    "homogenized/regimes": {"layers": 24, "step": 0.3, "heads": 8, "d": 64},
    "homogenized/theorem-1": {"paths": 1, "until": 0.2, "layers": [2, 3]},
    "gaussian/anisotropy": {"kinds": ["softmax"], "frames": 9, "ellipses": 3, "until": 2.0},
    "gaussian/blow-up-times": {"side": 5},
    "gaussian/class-map": {"points": 3},
    "gaussian/disc-of-starts": {"examples": ["line", "both"], "side": 3},
    "gaussian/fate": {"frames": 12, "ellipses": 3},
    "gaussian/rank-histograms": {"dimensions": [3], "draws": 8},
    "gaussian/validity-window": {"starts": [0.2]},
    "metastability/growth-rates": {"modes": 5, "more": [5.0]},
    "metastability/dominant-degree": {"columns": 5, "rows": 4, "shown": 4, "d_max": 16, "beta_max": 20.0},
    "metastability/circle-tokens": {"n": 400, "cells": [[5.0, 0.2, 0.1]], "steps": 8, "tracks": 10},
    "metastability/density-profile": {"cells": [[5.0, 0.2]], "points": 200, "modes": 10, "frames": 2, "steps": 8},
    "metastability/selection-probability": {"betas": [5.0], "beta": 5.0, "tokens": [1e6], "runs": 2, "points": 100},
    "metastability/perceptron-cases": {"n": 6, "until": 1.0, "records": 5},
    "metastability/perceptron-clusters": {"n": 6, "betas": [1.0, 4.0], "draws": 1, "until": 1.0},
    "metastability/perceptron-minimiser": {"betas": [4.0]},
    "metastability/staircase": {"betas": [20.0, 1000.0]},
    "metastability/merging-times": {"angles": [0.0, 0.9, 2.0], "points": 3, "lines": 4, "beta_max": 40.0},
    "metastability/certificate": {"gaps": [1.8], "points": 4, "beta_max": 60.0},
    "metastability/kde-modes": {
        "sizes": [20, 50],
        "betas": [3.0, 10.0],
        "runs": 5,
        "diagonal": [20, 50],
        "places": [[200, 10.0], [50, 40.0]],
        "places_runs": 5,
    },
}


def unlabelled(axes: Axes) -> list[str]:
    """The visible axes without a label; a colour bar needs one only."""
    if not axes.axison or not axes.get_visible():
        return []
    if getattr(axes, "_colorbar", None) is not None:
        return [] if axes.get_xlabel() or axes.get_ylabel() else ["colour bar"]
    sides = (("x", axes.xaxis, axes.get_xlabel()), ("y", axes.yaxis, axes.get_ylabel()))
    return [name for name, axis, label in sides if axis.get_visible() and not label]


@pytest.mark.parametrize("name", list(FIGURES))
def test_a_figure_draws_with_labels_and_without_warnings(name):
    figure = FIGURES[name].draw(changes=TINY[name])
    assert isinstance(figure, Figure)
    assert figure.axes
    assert [(axes.get_title(loc="left"), missing) for axes in figure.axes if (missing := unlabelled(axes))] == []
    with house_style():
        figure.savefig(io.BytesIO(), format="svg")


@pytest.mark.parametrize("name", list(FIGURES))
def test_a_figure_says_what_it_shows_and_from_where(name):
    entry = FIGURES[name]
    assert isinstance(entry.paper, Paper)
    assert len(entry.caption) > 80
    assert entry.caption.endswith(".")
    assert set(entry.full) <= set(entry.quick)


def test_every_tiny_setting_belongs_to_a_figure():
    assert set(TINY) == set(FIGURES)


def test_unlabelled_axes_are_found():
    figure = Figure()
    axes = figure.subplots()
    axes.set_xlabel("t")
    assert unlabelled(axes) == ["y"]
