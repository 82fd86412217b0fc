"""Ends of random starts are states that the atlas calls stable."""

import numpy as np

import pathlines as pl
from pathlines.sweep.generic_ends import STILL, _left


def test_two_tokens_under_negative_eigenvalues_polarise():
    (end,) = pl.sweep.generic_ends(np.diag([-3.0, -2.0, -1.0]), 1.0, 2, starts=12)
    assert (end.kind, end.p, end.n_plus, end.n_minus, end.share) == ("pure", 2, 1, 1, 1.0)


def test_ends_are_stable_states_whatever_the_axes():
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    value = turn @ np.diag([1.5, 0.3, -1.0]) @ turn.T
    stable = {(m.p, m.n_plus, m.n_minus) for m in pl.limit.followups.mode_atlas(value, 1.0, 5).pure if m.stable}
    ends = pl.sweep.generic_ends(value, 1.0, 5, starts=24, seed=3)
    assert {(e.p, e.n_plus, e.n_minus) for e in ends if e.kind == "pure"} <= stable
    assert sum(e.share for e in ends) == 1.0
    assert len(ends) > 1


def test_slow_tokens_are_not_at_rest():
    """diag(1, .9998, -.5): they move .01 in a tenth of the run, and as much in the next."""
    assert _left(0.0101, 0.01) > STILL
    assert _left(0.01, 0.0101) > STILL
    assert _left(1e-3, 1e-4) < STILL
    assert _left(1e-9, 2e-9) == 0
