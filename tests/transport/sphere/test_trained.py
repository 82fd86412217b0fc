"""The trained baseline: its integrator, its answer, and the verifier's beside it."""

from functools import partial

import numpy as np
import pytest

import pathlines as pl
from pathlines.foundation.errors import ArgumentError
from pathlines.transport.sphere import trained
from pathlines.transport.sphere.trained import train_schedule


def clouds(seed, *shape):
    x = np.random.default_rng(seed).standard_normal(shape)
    return list(x / np.linalg.norm(x, axis=-1, keepdims=True))


def test_training_vs_verifier():
    inputs, targets = clouds(1, 2, 3, 3), clouds(2, 2, 3, 3)
    found = train_schedule(inputs, targets, 3, steps=60)
    before = pl.verify_schedule(pl.transport.sphere.SphereSchedule(3), inputs, targets).w2
    assert max(found.verified_w2) < 0.7 * max(before)
    assert found.verified_w2 == pl.verify_schedule(found.schedule, inputs, targets).w2
    # four steps of order four for weights of order one: an error of some (1/4)^4 for each layer
    np.testing.assert_allclose(found.trainer_w2, found.verified_w2, atol=0.05)
    assert found.trainer_w2 != found.verified_w2


def test_the_interpolator_says_both(monkeypatch):
    monkeypatch.setattr(trained, "STEPS", 30)
    monkeypatch.setattr(trained, "train_schedule", partial(train_schedule, steps=30))
    inputs, targets = clouds(1, 2, 3, 3), clouds(2, 2, 3, 3)
    fitted = pl.MeasureInterpolator("trained", pieces=2).fit(inputs, targets)
    assert fitted.report_["pieces"] == fitted.schedule_.count == 2
    assert len(fitted.report_["trainer_w2"]) == len(fitted.report_["w2"]) == 2
    assert fitted.timeline_[-1].w2 == max(fitted.report_["w2"])
    moved = fitted.transform(inputs)
    ends = pl.verify_schedule(fitted.schedule_, inputs).ends
    np.testing.assert_allclose(moved[0].points, ends[0], atol=1e-8)


def test_what_cannot_be_trained():
    with pytest.raises(ArgumentError, match="tokens of equal weight"):
        train_schedule([*clouds(1, 1, 3, 3), *clouds(1, 1, 2, 3)], clouds(2, 2, 3, 3))
    with pytest.raises(ArgumentError, match="shape"):
        train_schedule(clouds(1, 2, 3, 3), clouds(2, 2, 4, 3))
    with pytest.raises(ArgumentError, match="`steps` must be"):
        train_schedule(clouds(1, 1, 3, 3), clouds(2, 1, 3, 3), steps=0)
