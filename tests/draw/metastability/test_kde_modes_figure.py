"""Kernel density modes as drawn: the estimator is a density."""

import io

import numpy as np
import pytest

from pathlines.draw.modes_figure import ensemble_figure, estimator
from pathlines.draw.style import house_style
from pathlines.observable.kde_modes import normal_modes


def test_estimator_integrates_to_one():
    samples = np.random.default_rng(0).standard_normal(30)
    t = np.linspace(-8, 8, 4001)
    assert np.trapezoid(estimator(t, samples, 20.0), t) == pytest.approx(1.0, abs=1e-8)


def test_many_more_bandwidths_than_samples_still_draw():
    """β > n²: no theory, only samples."""
    figure = ensemble_figure(3, normal_modes(3, 100.0, 4, 0))
    with house_style():
        figure.savefig(io.BytesIO(), format="svg")
