"""Figures of studies: lines with error bars, maps, theory dashed; and what two dimensions cannot show."""

import numpy as np
import pytest
import xarray as xr

from pathlines.draw import study_figure
from pathlines.foundation.errors import ArgumentError


def study(**sizes):
    shape = tuple(sizes.values())
    values = np.random.default_rng(0).normal(size=shape)
    return xr.Dataset({"y": (tuple(sizes), values), "status": (tuple(sizes), np.zeros(shape))})


def test_lines_have_error_bars_and_theory():
    data = study(beta=6, n=3, repeat=5)
    data["y_theory"] = data.y.isel(repeat=0) * 0
    axes = study_figure(data).axes[0]
    assert len(axes.containers) == 3 and len(axes.get_legend().get_texts()) == 4


def test_two_long_axes_are_a_map_and_words_are_places():
    assert study_figure(study(beta=9, n=8)).axes[0].collections
    data = study(kind=3).assign_coords(kind=["sa", "usa", "l2"])
    assert [t.get_text() for t in study_figure(data).axes[0].get_xticklabels()] == ["sa", "usa", "l2"]


def test_sizes_that_double_have_a_logarithmic_axis():
    axes = study_figure(study(n=5).assign_coords(n=2 ** np.arange(3, 8))).axes[0]
    assert axes.get_xscale() == "log"


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(ArgumentError, match="lies over 3 dimensions"):
        study_figure(study(a=2, b=2, c=2))
    with pytest.raises(ArgumentError, match="nothing to draw"):
        study_figure(study(a=2)[["status"]])
