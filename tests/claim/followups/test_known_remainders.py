"""Settings at which a known remainder exceeds the tolerance are said to decide nothing."""

import numpy as np
import pytest

from pathlines.claim import CLAIMS
from pathlines.claim.clustering.spectral_selection import unresolved
from pathlines.claim.followups.dual_filter import Random, Tracked, drawn, predict_weights
from pathlines.claim.followups.multi_head import Heads, predict_settling
from pathlines.claim.followups.quantitative import Quantiles, Rates, predict_quantiles, predict_rates, settled_rate
from pathlines.limit.followups.filtering import curvatures


@pytest.mark.parametrize(
    ("setting", "decided"),
    [
        ({"frequencies": (0.3, 0.3), "until": 250.0}, True),
        ({"frequencies": (1.0, 1.0), "until": 120.0}, False),
        ({"seed": 10, "frequencies": (2.5, 2.5), "until": 250.0}, False),
    ],
)
def test_a_slowest_mode_that_does_not_lead_yet(setting, decided):
    assert ("rate" not in predict_settling(Heads(path="decaying", **setting)).undecided) == decided


def test_two_exponents_that_are_too_close():
    assert unresolved((2.0, 0.1, -1.0), 20.0, 20, 0.01)
    assert not unresolved((2.0, 0.5, -1.0), 20.0, 20, 0.01)
    assert not unresolved((3.0, 1.0, -2.0), 15.0, 10, 0.02)


def test_an_ill_conditioned_filter():
    assert not predict_weights(Tracked()).undecided
    rough = predict_weights(Tracked(noise=((1e-4,),), moves=((0.0, 0.0), (0.0, 0.0))))
    assert set(rough.undecided) == {"error", "weights", "dual", "estimate"}


@pytest.mark.parametrize("seed", [3, 8, 12, 14, 39, 57])
def test_drawn_sources_fit_the_step(seed):
    s = Random(seed=seed)
    assert s.step * curvatures(drawn(s)[0], s.length)[-1] < 2


def test_a_rate_below_the_papers_exponent():
    assert "above_the_bound" in predict_rates(Rates(betas=(4.0,))).undecided
    assert "above_the_bound" not in predict_rates(Rates()).undecided


def test_neighbours_that_hold_one_another_delay_the_crossover():
    assert "delay" in predict_quantiles(Quantiles(beta=1.5)).undecided
    assert not predict_quantiles(Quantiles()).undecided


def test_rates_that_do_not_change_are_settled():
    assert settled_rate(np.zeros(3)) == (0.0, 0.0)


@pytest.mark.parametrize("name", ["D1", "D3", "P2", "P3", "Q1", "Q2", "Q3", "Q5", "S1", "T1", "T2", "T3"])
def test_full_sizes_are_decided_by_what_is_known(name):
    """Where the prediction is quick; the others take their simulation to say so."""
    claim = CLAIMS[f"followups/{name}"]
    assert not claim.predict(claim.setting("full")).undecided
