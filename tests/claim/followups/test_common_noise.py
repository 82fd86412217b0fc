"""What the claims of common noise say where layers are long: undecided, or the law of the layers."""

import numpy as np
import pytest

from pathlines.claim.followups.common_noise import Mean, Nearby, predict_mean, predict_slopes


@pytest.mark.parametrize(
    "s",
    [
        Mean(dims=(64,)),
        Mean(dims=(8,), activation="erf", sigma_w=5.0, sigma_b=0.0, gap=1e-5, until=0.2),
    ],
)
def test_what_long_layers_leave_decides_nothing(s):
    assert set(predict_mean(s).undecided) == {"mean_gap", "lower", "upper"}


def test_what_layers_leave_is_small_beside_the_mean():
    found = predict_mean(Mean())
    assert not found.undecided
    assert float(found.uncertainties["mean_gap"][0]) < 2e-4 * float(found.values["mean_gap"][0])


def test_layers_on_the_circle_have_a_law_of_their_own():
    found = predict_slopes(Nearby(dims=(2,), time_step=0.1))
    assert found.values["slope"] == pytest.approx([-1.0], abs=1e-3)
    assert -1.1 < float(found.values["layer_slope"][0]) < -1.05
    assert np.all(found.uncertainties["slope"] > 1e-3)
