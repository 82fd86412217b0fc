"""The dual filter at every place against Kalman and Bayes, and what it refuses."""

import numpy as np
import pytest

import pathlines as pl
from pathlines.foundation.errors import ArgumentError
from pathlines.limit.followups.filtering import bayes, kalman

LINE = pl.StateSpace([[0.9, 0.2], [0.0, 0.7]], [[1.0, 0.0], [0.5, 1.0]], 0.1 * np.eye(2), 0.4 * np.eye(2), mean=[1, -1])


def test_every_place_vs_kalman():
    tokens = np.random.default_rng(0).normal(size=(6, 2))
    said, known = pl.DualFilter(LINE).predict(tokens), kalman(LINE, tokens)
    np.testing.assert_allclose(said.states, known.means, atol=1e-11)
    np.testing.assert_allclose(said.next, known.means @ LINE.readout, atol=1e-11)
    assert said.attention.shape == (7, 6)
    assert np.all(said.attention[np.triu_indices(6)] == 0)  # causal: place s hears tokens up to s
    assert np.all(said.attention[np.arange(1, 7), np.arange(6)] > 0.1)


def test_every_place_vs_bayes():
    rng = np.random.default_rng(2)
    source = pl.HiddenMarkov(rng.dirichlet(np.ones(3), 3), rng.dirichlet(np.ones(4), 3))
    tokens = rng.integers(4, size=9)
    said = pl.DualFilter(source).predict(tokens)
    np.testing.assert_allclose(said.states, bayes(source, tokens), atol=1e-13)
    np.testing.assert_allclose(said.next.sum(axis=1), 1, atol=1e-13)
    early = pl.DualFilter(source, layers=3).predict(tokens).states
    np.testing.assert_allclose(early[:4], bayes(source, tokens)[:4], atol=1e-13)
    assert np.abs(early[-1] - bayes(source, tokens)[-1]).max() > 1e-9


def test_tokens_that_some_states_never_show():
    source = pl.HiddenMarkov([[0.5, 0.5], [0.3, 0.7]], [[1.0, 0.0, 0.0], [0.0, 0.6, 0.4]])
    tokens = [0, 2, 1, 0, 0]
    np.testing.assert_allclose(pl.DualFilter(source).predict(tokens).states, bayes(source, tokens), atol=1e-13)


def test_no_tokens_leave_the_first_state():
    np.testing.assert_allclose(pl.DualFilter(LINE).predict(np.zeros((0, 2))).states, [[1, -1]])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pl.DualFilter(LINE, step=50.0).predict(np.ones((3, 2))), "`step` must be below .*diverge"),
        (lambda: pl.DualFilter(LINE).predict(np.ones((3, 1))), "`tokens` must have shape"),
        (lambda: pl.DualFilter(pl.HiddenMarkov(np.eye(2), np.eye(2))).predict([0, 2]), "whole numbers from 0 to 1"),
        (lambda: pl.DualFilter(pl.HiddenMarkov(np.eye(2), np.eye(2))).predict([0, 1]), "probability 0"),
        (lambda: pl.DualFilter(pl.HiddenMarkov(np.eye(2), np.eye(2)), step=0.1), "`step` must not be given"),
        (lambda: pl.DualFilter("kalman"), "`source` must be a StateSpace or a HiddenMarkov"),
    ],
)
def test_what_cannot_be_is_refused(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()
