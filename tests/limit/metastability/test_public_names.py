"""The theory of patterns, clusters, modes and landscapes under the package's own name."""

import numpy as np
import pytest

import pathlines as pl


def test_patterns_clusters_modes_and_landscape():
    assert pl.dominant_degree(9.0, 2) == 4
    assert pl.growth_rates(9.0, 2, 4)[-1] == pytest.approx(0.7044970292996, abs=1e-13)
    assert pl.selection_probabilities(9.0, 1e6).sum() == pytest.approx(1, abs=1e-8)
    assert pl.formation_time(9.0, 2, 1e6) == pytest.approx((0.5 * np.log(1e6) + np.log(0.1)) / 0.7044970292996)
    assert pl.forecast(9.0, 2, 1e6).dominant_degree == 4
    assert pl.log_merging_time(25.0, 1.0, 0.01) == pytest.approx(8.6945854540483, abs=1e-12)
    assert pl.polygon_rates(4, 9.0, "usa")[2] == pytest.approx(0.00111068823678, abs=1e-14)
    assert pl.cap_certificate([0.0, 0.0, 2.0, 2.0], 40.0).holds
    assert pl.two_sample_modes(4.0) == pytest.approx(1.47950012, abs=5e-9)
    neurons = [[1.0, 0.0], [np.cos(2.0), np.sin(2.0)]]
    best = pl.perceptron_minimiser(pl.perceptron_landscape(pl.perceptron_potential(neurons, [1.0, -0.7]), 4.0))
    assert best.energy == pytest.approx(-0.22814547120268, abs=1e-13)


def test_every_public_name_is_there_and_documented():
    for name in pl.__all__:
        assert getattr(pl, name) is not None
    for name in (
        "cap_certificate",
        "cluster_flow",
        "forecast",
        "growth_rates",
        "perceptron_landscape",
        "perceptron_minimiser",
        "zonal_start",
    ):
        assert getattr(pl, name).__doc__
