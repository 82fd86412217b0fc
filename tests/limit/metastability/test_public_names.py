"""The theory of patterns, clusters, modes and landscapes by its public names."""

import numpy as np
import pytest

import pathlines as pl

theory = pl.limit.metastability


def test_patterns_clusters_modes_and_landscape():
    assert theory.dominant_degree(9.0, 2) == 4
    assert theory.growth_rates(9.0, 2, 4)[-1] == pytest.approx(0.7044970292996, abs=1e-13)
    assert theory.selection_probabilities(9.0, 1e6).sum() == pytest.approx(1, abs=1e-8)
    assert theory.formation_time(9.0, 2, 1e6) == pytest.approx((0.5 * np.log(1e6) + np.log(0.1)) / 0.7044970292996)
    assert theory.forecast(9.0, 2, 1e6).dominant_degree == 4
    assert theory.log_merging_time(25.0, 1.0, 0.01) == pytest.approx(8.6945854540483, abs=1e-12)
    assert theory.polygon_rates(4, 9.0, "usa")[2] == pytest.approx(0.00111068823678, abs=1e-14)
    assert theory.cap_certificate([0.0, 0.0, 2.0, 2.0], 40.0).holds
    assert theory.two_sample_modes(4.0) == pytest.approx(1.47950012, abs=5e-9)
    neurons = [[1.0, 0.0], [np.cos(2.0), np.sin(2.0)]]
    best = theory.perceptron_minimiser(
        theory.perceptron_landscape(theory.perceptron_potential(neurons, [1.0, -0.7]), 4.0)
    )
    assert best.energy == pytest.approx(-0.22814547120268, abs=1e-13)
