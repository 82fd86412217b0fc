"""Contextual flows: what the claims say at settings where their laws do not hold yet."""

import math

import numpy as np
import pytest

from pathlines.claim.followups import context_flow
from pathlines.claim.followups.context_flow import (
    Depth,
    Nearest,
    predict_depth,
    predict_nearest,
    simulate_depth,
)


def test_depth_is_decided_where_it_stands():
    """At both sizes nothing is undecided, and the remainders are small beside 10 % and 3 %."""
    for contexts, share in (((25, 100), 0.004), ((25, 100, 400), 0.001)):
        found = predict_depth(Depth(contexts=contexts))
        assert not found.undecided
        assert 5 * found.uncertainties["scaled_rms"] < share * found.values["scaled_rms"]


@pytest.mark.parametrize(
    ("change", "undecided"),
    [
        ({"start": (4.0, 3.0)}, {"scaled_rms", "slope"}),  # e^{2|h|²} = 1e6
        ({"value": ((0.6, 0.0), (0.0, 0.6))}, {"limit", "scaled_rms", "slope"}),  # θ passes 1/√2 on the way
        ({"value": ((2.0, 0.0), (0.0, 2.0)), "until": 4.0}, {"limit", "scaled_rms", "slope"}),  # blows up
        ({"score": ((0.8, 0.0), (0.0, 0.0))}, {"limit", "scaled_rms", "slope"}),
        ({"contexts": (2, 4)}, {"scaled_rms", "slope"}),
        ({"until": 40.0, "start": (3.0, 0.0)}, {"limit", "scaled_rms", "slope"}),  # ten steps are too few
    ],
)
def test_depth_is_undecided_where_single_tokens_decide(change, undecided):
    assert undecided <= set(predict_depth(Depth(**change)).undecided)


def test_depth_in_high_dimension_is_unknown():
    many = Depth(score=np.eye(4).tolist(), value=np.eye(4).tolist(), start=(0.1,) * 4)
    assert set(predict_depth(many).values.values()) == {None}


@pytest.fixture
def scattered(monkeypatch):
    """Ends of the run scattered by 1/√n around where the closure ends, without running it."""

    def moved(_model, start, _span, _key, n, draws, _steps):
        rng = np.random.default_rng(n)
        return ENDS + rng.standard_normal((draws, len(start))) / np.sqrt(n)

    monkeypatch.setattr(context_flow, "_moved", moved)


ENDS = np.array([0.82064204, 0.3709956])


def test_equal_contexts_count_once(scattered):
    """Two equal longest contexts: the extrapolation takes the two longest that differ."""
    found, again = (simulate_depth(Depth(contexts=n)) for n in ((25, 100, 100), (100, 25)))
    assert found.values["scaled_rms"] == again.values["scaled_rms"] == pytest.approx(math.sqrt(2), rel=0.05)
    assert not found.undecided


def test_coarse_steps_are_undecided(scattered):
    long = Depth(steps=1, draws=10**5, contexts=(10**3, 10**7))
    assert "more steps" in simulate_depth(long).undecided["scaled_rms"]


def test_nearest_slope_between_finite_contexts():
    """-a + a(a+1)/(2n) and not -1/d: on a line from 3 to 10 it is that of 1/(2(n+1)); nothing is undecided."""
    found = predict_nearest(Nearest(dims=(1, 2), contexts=(3, 10)))
    assert found.values["slope"][0] == pytest.approx(math.log(4 / 11) / math.log(10 / 3), rel=1e-9)
    assert predict_nearest(Nearest(dims=(8,), contexts=(100, 6400))).undecided == {}
    far = predict_nearest(Nearest(dims=(3, 5), contexts=(10**5, 10**6))).values["slope"]
    np.testing.assert_allclose(far, [-1 / 3, -1 / 5], atol=1e-5)
