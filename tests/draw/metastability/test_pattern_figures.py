"""The figures of patterns out of uniform tokens show what they say."""

import numpy as np
import pytest

from pathlines.draw.figures.metastability.circle_patterns import centres
from pathlines.draw.figures.metastability.growth_rates import printed_curve
from pathlines.limit.metastability.growth import growth_rates


def test_the_printed_curve_is_the_rate_over_pi():
    """Maximum 5.92 at k = 3 for β = 5 (the published plot)."""
    k = np.arange(1, 11)
    np.testing.assert_allclose(printed_curve(k, 5.0) * np.pi, growth_rates(5.0, 2, 10, "usa") * np.exp(5), rtol=1e-12)
    assert printed_curve(3, 5.0) == pytest.approx(5.92, abs=5e-3)


def test_centres_of_a_polygon():
    corners = (0.4 + 2 * np.pi * np.arange(3) / 3) % (2 * np.pi)
    np.testing.assert_allclose(centres(corners, 3), np.sort(corners), atol=1e-12)
