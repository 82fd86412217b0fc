"""Standard errors of few, equal and binary samples against exact tails and simulation."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from pathlines.claim.estimate import controlled_mean, mean_and_error, root_and_error, share_and_error
from pathlines.numerics.few_samples import student


@pytest.mark.parametrize(("samples", "factor"), [(6, 3.1), (15, 1.4), (100, 1.05), (100_000, 1.0)])
def test_student_factor(samples, factor):
    assert student(samples) == pytest.approx(factor, rel=0.02)


def test_six_samples_exceed_four_errors_as_rarely_as_many():
    """Chance 6.3e-5 by Student's law: of 10⁵ draws of six, 6.3 ± 2.5; without the factor 1030."""
    draws = np.random.default_rng(0).standard_normal((6, 100_000))
    mean, error = mean_and_error(draws)
    assert np.sum(np.abs(mean) > 4 * error) <= 6.3 + 5 * 2.5


def test_equal_counts_keep_an_error():
    """A mode of chance 10/m is missed by m samples with chance e^{-10}: four errors must cover it."""
    mean, error = mean_and_error(np.ones(40), unit=1.0)
    assert mean == 1.0
    assert 4 * error == pytest.approx(-np.log(norm.sf(4)) / 40)


def test_many_samples_have_the_usual_error():
    draws = np.random.default_rng(1).standard_normal(100_000)
    assert mean_and_error(draws, unit=1.0)[1] == pytest.approx(draws.std() / np.sqrt(1e5), rel=1e-3)


@pytest.mark.parametrize("p", [0.001, 0.02, 0.3, 0.5, 0.97])
@pytest.mark.parametrize("m", [10, 40, 400])
def test_shares_miss_the_truth_less_than_once_in_ten_thousand(p, m):
    k = np.arange(m + 1)
    share, error = share_and_error(k, m)
    assert binom.pmf(k, m, p)[np.abs(share - p) > 4 * error].sum() < 2 * norm.sf(4)


def test_share_of_many():
    assert share_and_error(3000, 10_000)[1] == pytest.approx(np.sqrt(0.21 / 1e4), rel=0.02)


def test_control_variates():
    """Of y = 3 + 2x + noise with E x = 0 the intercept is found with the error of the noise alone, five of them."""
    rng = np.random.default_rng(8)
    x, noise = rng.standard_normal((2, 400))
    mean, error = controlled_mean(3 + 2 * x + 0.1 * noise, x[:, None])
    assert abs(mean - 3) < 5 * error
    assert error == pytest.approx(0.1 / 20, rel=0.15)
    few, wide = controlled_mean(3 + 2 * x[:11], x[:11, None])
    assert few == pytest.approx(np.mean(3 + 2 * x[:11])) and wide > 0.3


def test_root_of_a_mean_square():
    assert root_and_error(4.0, 0.4) == (2.0, 0.1)
