import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.clustering.clock import Clock


def exponential_clock():
    """t = e^τ - 1."""
    return Clock(np.exp, lambda tau: 0.5)


def test_time_and_progress_vs_closed_form():
    tau = np.array([0.0, 1e-300, 1e-9, 0.3, 0.5, 7.7, 40.0])
    time = np.expm1(tau)
    np.testing.assert_allclose(exponential_clock().time_at(tau), time, rtol=2e-15)
    np.testing.assert_allclose(exponential_clock().progress_at(time), tau, rtol=2e-15)


def test_answers_do_not_depend_on_the_other_questions():
    times = np.array([0.1, 3.0, 1e6])
    together = exponential_clock().progress_at(times)
    alone = [exponential_clock().progress_at(np.array([t]))[0] for t in times]
    np.testing.assert_array_max_ulp(together, np.array(alone), 4)  # NumPy's logarithm may round alone or in company


def test_zero_time_alone():
    np.testing.assert_array_equal(exponential_clock().progress_at(np.zeros(2)), [0.0, 0.0])


def test_hopeless_time_is_an_error():
    with pytest.raises(ArgumentError, match="panels"):
        Clock(np.ones_like, lambda tau: 1e-9).time_at(np.array([1.0]))
