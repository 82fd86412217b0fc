"""Relative entropy from samples alone, and error targets that use it."""

import numpy as np
import pytest

import pathlines as pl
from pathlines.foundation.errors import ArgumentError
from pathlines.transport.euclid.neighbours import entropy_of

LAW = pl.transport.GaussianMixture([0.6, 0.4], [[-1.0, 0.0], [1.5, 1.0]], [0.4 * np.eye(2), [[0.5, 0.2], [0.2, 0.3]]])


@pytest.mark.parametrize("d", [1, 2, 5])
def test_entropy_vs_closed_form(d):
    """KL(N(0, s²)‖N(0, 1)) = d((s² - 1)/2 - log s)."""
    found = entropy_of(1.3 * np.random.default_rng(d).standard_normal((2000, d)))
    assert abs(found.kl - d * ((1.3**2 - 1) / 2 - np.log(1.3))) < 5 * found.error < 0.3


def test_repeated_rows_have_no_density():
    with pytest.raises(ArgumentError, match="a row more than 8 times"):
        entropy_of(np.ones((50, 2)))


@pytest.mark.parametrize(
    ("estimator", "columns"),
    [(pl.Transport1D, 1), (pl.TriangularFlow, 2), (lambda **k: pl.RidgeFlow(knots=8, **k), 2)],
)
def test_targets_from_samples(estimator, columns):
    data = LAW.sample(3000, seed=4)[:, :columns]
    loose, tight = (estimator(error=e).fit(data) for e in (0.5, 0.12))
    assert loose.report_.pieces <= tight.report_.pieces
    for flow, error in ((loose, 0.5), (tight, 0.12)):
        assert flow.report_.kl + 2 * flow.report_.kl_error <= error
    if columns == 2:
        fresh = LAW.sample(20_000, seed=5)
        true = float(np.mean(LAW.log_prob(fresh) - tight.log_prob(fresh)))
        assert true <= 0.12 and abs(true - tight.report_.kl) < 5 * tight.report_.kl_error
    with pytest.raises(ArgumentError, match="was not met with 3000 samples: KL is estimated as"):
        estimator(error=1e-4).fit(data)


def test_a_budget_or_a_target():
    with pytest.raises(ArgumentError, match="exclude each other"):
        pl.RidgeFlow(pieces=100, error=0.1).fit(LAW.sample(100))
