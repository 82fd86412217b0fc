"""The figures of patterns out of uniform tokens: they draw, labelled and without warnings, and show what they say."""

import io

import numpy as np
import pytest

from pathlines.draw.figures.metastability.circle_patterns import centres
from pathlines.draw.figures.metastability.growth_rates import printed_curve
from pathlines.draw.gallery import FIGURES
from pathlines.draw.style import house_style
from pathlines.limit.metastability.growth import growth_rates

TINY = {
    "growth-rates": {"modes": 5, "more": [5.0]},
    "dominant-degree": {"columns": 5, "rows": 4, "shown": 4, "d_max": 16, "beta_max": 20.0},
    "circle-tokens": {"n": 400, "cells": [[5.0, 0.2, 0.1]], "steps": 8, "tracks": 10},
    "density-profile": {"cells": [[5.0, 0.2]], "points": 200, "modes": 10, "frames": 2, "steps": 8},
    "selection-probability": {"betas": [5.0], "beta": 5.0, "tokens": [1e6], "runs": 2, "points": 100},
}


@pytest.mark.parametrize("name", TINY)
def test_a_figure_draws(name):
    entry = FIGURES[f"metastability/{name}"]
    figure = entry.draw(changes=TINY[name])
    assert all(axes.get_xlabel() or axes.get_ylabel() for axes in figure.axes)
    with house_style():
        figure.savefig(io.BytesIO(), format="svg")
    assert len(entry.caption) > 80
    assert entry.caption.endswith(".")
    assert set(entry.full) <= set(entry.quick)


def test_the_printed_curve_is_the_rate_over_pi():
    """Maximum 5.92 at k = 3 for β = 5 (the published plot)."""
    k = np.arange(1, 11)
    np.testing.assert_allclose(printed_curve(k, 5.0) * np.pi, growth_rates(5.0, 2, 10, "usa") * np.exp(5), rtol=1e-12)
    assert printed_curve(3, 5.0) == pytest.approx(5.92, abs=5e-3)


def test_centres_of_a_polygon():
    corners = (0.4 + 2 * np.pi * np.arange(3) / 3) % (2 * np.pi)
    np.testing.assert_allclose(centres(corners, 3), np.sort(corners), atol=1e-12)
