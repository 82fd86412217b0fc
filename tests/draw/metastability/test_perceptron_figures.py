"""Clusters in the figures of the perceptron landscape."""

import numpy as np
import pytest

from pathlines.draw.figures.metastability.perceptron_clusters import clusters, clusters_of
from pathlines.draw.gallery import FIGURES
from pathlines.foundation.errors import ArgumentError
from pathlines.limit.metastability.perceptron_landscape import perceptron_landscape
from pathlines.limit.metastability.perceptron_minimiser import perceptron_minimiser
from pathlines.limit.metastability.perceptron_potential import on_circle, perceptron_potential


def test_clusters_by_linkage_with_a_least_share():
    x = on_circle(np.concatenate([np.full(60, 0.0), np.full(39, 1.0), [2.0]]))
    assert clusters(x, 25.0) == (3, 0.6)
    assert clusters(x, 25.0, least=0.02) == (2, 0.6)
    assert clusters(x, 0.01)[0] == 3  # linkage at π/4 at most on the circle, though 1/(2√β) = 5
    found = perceptron_minimiser(perceptron_landscape(perceptron_potential(on_circle([2.0]), [-0.7]), 25.0))
    assert clusters_of(found, 25.0) == (2, 0.5)


def test_dimension_of_the_cluster_figure():
    with pytest.raises(ArgumentError, match="`d` must be 2 or 3"):
        FIGURES["metastability/perceptron-clusters"].draw(changes={"d": 4})
