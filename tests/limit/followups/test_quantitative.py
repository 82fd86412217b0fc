"""Sharp rates of the unnormalised mean field: reference values, and characteristics on the axis."""

import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.clustering.conformal import poisson_radius
from pathlines.limit.clustering.mean_field import axisymmetric_flow
from pathlines.limit.followups import quantitative as qu


def test_reference_values_of_the_poisson_kernel():
    times = [1.0, 2.0, 5.0]
    np.testing.assert_allclose(poisson_radius(times, 0.5), [0.689468553611, 0.843347256015, 0.990043768049], atol=6e-13)
    known = [0.788075435969, 0.559736981064, 0.141111530008]
    np.testing.assert_allclose(qu.poisson_distance(times, 0.5), known, atol=6e-13)


def test_late_distances_keep_their_digits():
    """At rate ½ from √((1-r0²)/r0²) on."""
    assert qu.poisson_distance([60.0], 0.5)[0] == pytest.approx(np.sqrt(3) * np.exp(-30), rel=1e-12)


def test_reference_rates():
    assert [qu.sharp_rate(2, b) for b in (0.0, 0.3, 0.6)] == pytest.approx([0.5, 0.3704, 0.2744], abs=5e-5)
    assert [qu.sharp_rate(3, b) for b in (-0.2, 0.3, 0.5)] == pytest.approx([0.8187, 0.7408, 0.6065], abs=5e-5)
    assert qu.sharp_rates(5, qu.resonance(5))[0] == pytest.approx(qu.sharp_rates(5, qu.resonance(5))[1])


@pytest.mark.parametrize(("d", "beta"), [(2, 0.3), (3, 0.5)])
def test_rate_vs_characteristics(d, beta):
    times = np.array([9.0, 12.0])
    squares = axisymmetric_flow(lambda t: 1 + 0.5 * np.cos(t), times, d, beta, "usa", panels=16, points=8)
    # axisymmetric_flow has USA on the clock e^{-β}t, in which the kernel is e^{β⟨x,y⟩}
    rate = -np.diff(np.log(squares))[0] / 3 / 2
    assert rate == pytest.approx(qu.sharp_rate(d, beta), rel=0.02)


def test_crossover_and_poles():
    assert qu.crossover_delay(0.3, 100, 1000) == pytest.approx(np.exp(0.3) * np.log(10))
    whole, particle = qu.pole_growth(0.0, 2 / 3)
    assert (whole, particle) == pytest.approx((1.0, 1 / 3))
    assert qu.pole_growth(0.5 * np.log(2), 2 / 3)[1] == pytest.approx(0.0, abs=1e-15)


def test_bad_input():
    with pytest.raises(ArgumentError, match="`d` must"):
        qu.sharp_rate(1, 0.0)
    with pytest.raises(ArgumentError, match="`mass` must"):
        qu.pole_growth(0.0, 1.0)
    with pytest.raises(ArgumentError, match="`fewer` must"):
        qu.crossover_delay(0.0, 0, 5)
