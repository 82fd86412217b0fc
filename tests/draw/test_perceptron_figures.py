"""The figures of the perceptron landscape draw at a tiny setting."""

import io

import numpy as np
import pytest

from pathlines.draw.figures.metastability.perceptron_clusters import clusters, clusters_of
from pathlines.draw.gallery import FIGURES
from pathlines.draw.style import house_style
from pathlines.foundation.errors import ArgumentError
from pathlines.limit.metastability.perceptron_landscape import landscape
from pathlines.limit.metastability.perceptron_minimiser import minimise
from pathlines.limit.metastability.perceptron_potential import on_circle, perceptron_potential

TINY = {
    "perceptron-cases": {"n": 6, "until": 1.0, "records": 5},
    "perceptron-clusters": {"n": 6, "betas": [1.0, 4.0], "draws": 1, "until": 1.0},
    "perceptron-minimiser": {"betas": [4.0]},
}


@pytest.mark.parametrize("name", list(TINY))
def test_a_figure_draws_with_labels_and_without_warnings(name):
    entry = FIGURES[f"metastability/{name}"]
    figure = entry.draw(changes=TINY[name])
    for axes in figure.axes:
        bar = getattr(axes, "_colorbar", None) is not None
        assert (any if bar else all)([axes.get_xlabel(), axes.get_ylabel()])
    with house_style():
        figure.savefig(io.BytesIO(), format="svg")
    assert len(entry.caption) > 80 and entry.caption.endswith(".") and set(entry.full) <= set(entry.quick)


def test_clusters_by_linkage_with_a_least_share():
    x = on_circle(np.concatenate([np.full(60, 0.0), np.full(39, 1.0), [2.0]]))
    assert clusters(x, 25.0) == (3, 0.6)
    assert clusters(x, 25.0, least=0.02) == (2, 0.6)
    assert clusters(x, 0.01)[0] == 3  # linkage at π/4 at most on the circle, though 1/(2√β) = 5
    found = minimise(landscape(perceptron_potential(on_circle([2.0]), [-0.7]), 25.0))
    assert clusters_of(found, 25.0) == (2, 0.5)


def test_dimension_of_the_cluster_figure():
    with pytest.raises(ArgumentError, match="`d` must be 2 or 3"):
        FIGURES["metastability/perceptron-clusters"].draw(changes={"d": 4})
