"""Simulated concentration against the law of the plateau, in other frames and for other densities."""

import numpy as np
import pytest

import pathlines as pl
from pathlines.limit.followups import separatrix as law


def test_mass_and_distance_vs_theory():
    density = lambda a: np.exp(np.cos(a - 0.3) + 0.4 * np.sin(2 * a))  # noqa: E731
    value = np.array([[0.6, 0.5], [0.5, -0.1]])
    found = pl.integrate.concentrate(density, 60.0, value, [0.0, 1.0, 9.0], 800)
    known = law.misassignment(density, 60.0, value)
    assert found.misassigned == pytest.approx(known.mass, rel=0.02)
    assert found.net == pytest.approx(known.net, abs=0.02 * known.mass)
    np.testing.assert_allclose(found.shifts, known.shifts, rtol=0.03, atol=2e-4)
    np.testing.assert_allclose(found.distance[:2], law.distances(density, 60.0, value, [0.0, 1.0]), rtol=0.02)
    assert found.times.tolist() == [0.0, 1.0, 9.0] and found.start.masses.sum() == pytest.approx(1)


def test_what_goes_both_ways_is_no_net_mass():
    found = pl.integrate.concentrate(lambda a: 1 + 0.5 * np.sin(2 * a), 64.0, np.diag([1.0, 0.3]), [9.0], 400)
    assert found.misassigned == pytest.approx(0.0035842850, rel=0.02)
    assert abs(found.net) < 1e-3 * found.misassigned
