"""Settings at which a theorem says nothing are inconclusive, not refuted."""

import numpy as np
import pytest

from pathlines.claim.followups.adamw import Chains, Crowds, Training, predict_crowds, predict_scatter, predict_training
from pathlines.claim.followups.wide_shallow import (
    Escape,
    Students,
    WideNeurons,
    judged,
    neurons_of,
    predict_escape,
    predict_students,
)


def test_loud_heads_need_more_of_them():
    """Chains of 8 × 8 heads at σ = 2 had gradients 24 % above the law."""
    assert predict_scatter(Chains(shapes=((8, 8),), sigma_b=2.0, sigma_v=2.0, n=4)).undecided.keys() >= {
        "tokens",
        "gradients",
    }
    assert not predict_scatter(Chains()).undecided


def test_crowds_of_the_claim_are_decided():
    assert not predict_crowds(Crowds(tokens=(6, 12))).undecided


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"shapes": ((8, 1), (1, 64)), "reference": (24, 8)}, {"nearer"}),
        ({"decay": 3.0, "eps": 1.0, "shapes": ((4, 1), (8, 4)), "reference": (16, 4)}, {"learned", "nearer"}),
        ({"shapes": ((6, 1), (6, 16)), "reference": (6, 4)}, {"nearer"}),
    ],
)
def test_training_that_is_not_of_the_claim(changes, names):
    assert names <= predict_training(Training(runs=8, **changes)).undecided.keys()


def test_losses_of_rounding_agree():
    """Two inputs are fitted to rounding: losses of 1e-32 are no numbers to compare, and nobody gets stuck."""
    s = Students(inputs=2, steps=4000)
    found = predict_students(s, neurons_of, 5, 3, 0.25)
    assert {"narrowest_over_widest", "spread"} <= found.undecided.keys()
    targets = neurons_of(s)[1]
    rows = [np.full(8, 1e-32), np.full(8, 3e-32), np.full(8, 7e-31)]
    assert judged(s, rows, targets)["narrowest_over_widest"] == 1


def test_descents_that_grow_are_inconclusive():
    assert predict_students(Students(step=50.0, steps=50), neurons_of, 5, 3, 0.25).undecided.keys() >= {"early_losses"}
    grown = predict_escape(Escape(step=8.0, until=400.0, times=(0.1,), probes=8, shares=(1.0,)))
    assert "descent" in grown.undecided
    assert "descent" not in predict_escape(Escape(times=(0.1,), probes=8, shares=(1.0,), until=2.0)).undecided
    assert not predict_students(WideNeurons(starts=6), neurons_of, 5, 3, 0.25).undecided
