"""Numbers that a float cannot hold are errors with the remedy, and round numbers lie where they are said to lie."""

import warnings

import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.clustering.energy_range import energy_maximum, energy_minimum
from pathlines.limit.homogenized.overlap_curve import overlap_curve
from pathlines.limit.homogenized.regimes import regime
from pathlines.limit.metastability.kde_modes import two_sample_modes
from pathlines.limit.metastability.slow_laws import polygon_rates


@pytest.mark.parametrize("call", [lambda: energy_minimum(3, 1e3), lambda: energy_maximum([1.0, 1e3])])
def test_energies_do_not_overflow_in_silence(call):
    with pytest.raises(ArgumentError, match="overflows"):
        call()


@pytest.mark.parametrize("kind", ["sa", "usa"])
def test_rates_do_not_underflow_in_silence(kind):
    with pytest.raises(ArgumentError, match="underflow"):
        polygon_rates(3, 1e4, kind)
    assert np.all(polygon_rates(3, 300.0, kind)[1:] > 0)


def test_nothing_leaks_from_limits():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert two_sample_modes(0.0) == 1.0
        np.testing.assert_array_equal(overlap_curve([0.0, 1.0], 8, 1.0, d=2), 0.0)


def test_a_product_of_round_numbers_lies_on_the_boundary():
    """0.1³ · 100 is 0.1 and not 0.10000000000000002."""
    assert regime(0.1, 0.0, 100).label == "ode2"
