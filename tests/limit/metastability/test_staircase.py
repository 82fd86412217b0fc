"""The quadrature over closing gaps; reference values from section 9 of specification 04-metastability-and-modes."""

import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.metastability.merging import log_merging_time
from pathlines.limit.metastability.staircase import isolated_pairs, staircase

FOUR = (0, 0.5, 1.1, 2.4)


def test_table():
    found = staircase(FOUR, 20, kind="sa")
    np.testing.assert_allclose(found.log_times, (1.724198977, 3.335804425, 22.941100399), rtol=1e-9)
    np.testing.assert_allclose(found.levels, (0.25, 0.375, 0.625, 1))
    assert found.final == pytest.approx(0.71079536, abs=5e-9)
    found = staircase((0, 0.9, 2, 3.3, 4.9), 30)
    np.testing.assert_allclose(found.log_times, (9.439695913, 19.590101794, 34.946913126, 56.861173411), rtol=1e-9)


@pytest.mark.parametrize("kind", ["usa", "sa"])
def test_pairs_alone_at_large_beta(kind):
    """Influences of others are e^{-β(cos .5 - cos .6)} = e^{-52}."""
    every, alone = staircase(FOUR, 1000, kind=kind), isolated_pairs(FOUR, 1000, kind=kind)
    np.testing.assert_allclose(alone.log_times, every.log_times, rtol=1e-9)
    assert alone.final == pytest.approx(every.final, abs=1e-8)


def test_two_clusters_are_the_closed_form():
    found = staircase([0.2, 1.7], 9, masses=(0.2, 0.8), kind="sa")
    assert found.log_times[0] == pytest.approx(log_merging_time(9, 1.5, 0.01, "sa", (0.2, 0.8)), abs=1e-9)
    around = staircase([0.1, 6.0], 30)
    assert around.log_times[0] == pytest.approx(log_merging_time(30, 0.1 - 6.0 + 2 * np.pi, 0.01), abs=1e-9)


@pytest.mark.parametrize(("beta", "mass"), [(100, 1e-4), (1000, 1e-6), (1000, 1e-12)])
def test_light_clusters(beta, mass):
    """Under SA they close in a time of order of their mass."""
    found = staircase([0, 0.5], beta, [mass, 1 - mass], "sa").log_times[0]
    assert found == pytest.approx(log_merging_time(beta, 0.5, 0.01, "sa", (mass, 1 - mass)), abs=2e-10)


def test_refusals_and_standstill():
    with pytest.raises(ArgumentError, match="less than 2π"):
        staircase([0.0, 7.0], 9)
    with pytest.raises(ArgumentError, match="`masses`"):
        staircase([0.0, 1.0], 9, masses=[1.0])
    square = staircase([0.0, np.pi / 2, np.pi, 3 * np.pi / 2], 9)
    assert np.isnan(square.log_times).all()
