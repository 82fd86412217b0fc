"""What a comparison would notice, against tolerances solved by hand."""

import numpy as np
import pytest

from pathlines.claim import absolute, at_most, relative, standard_errors
from pathlines.claim.power import notices


@pytest.mark.parametrize(
    ("tolerance", "measured", "expected", "found"),
    [
        (absolute(0.1, "r"), 2.0, 2.0, 0.05),
        (absolute(0.1, "r"), 2.06, 2.0, 0.08),  # up: 2.06 + 0.1 = 2.16, down: 2.06 − 0.1 = 1.96
        (relative(0.1, "r"), 1.0, 1.0, 1 / 0.9 - 1),
        (standard_errors(4.0, "r"), 1.0, 1.0, 0.4),
        (absolute(0.1, "r"), [1.0, 10.0], [1.0, 10.0], 0.01),  # the entry that notices most decides
    ],
)
def test_smallest_error_noticed_in_both_directions(tolerance, measured, expected, found):
    assert notices(tolerance, measured, expected, 0.1) == pytest.approx(found, rel=1e-6)


@pytest.mark.parametrize("case", [(at_most("r"), 1.0, 2.0), (absolute(0.1, "r"), 0.0, 0.0), (absolute(0.1, "r"), 3, 1)])
def test_bounds_zeros_and_refuted_numbers_have_none(case):
    assert notices(*case, 0.0) is None


def test_blind_comparison():
    assert notices(relative(2.0, "r"), 1.0, 1.0, 0.0) == np.inf
