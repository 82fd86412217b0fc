"""Triangular flows against their target, conditionals and each other."""

import numpy as np
import pytest
from scipy.special import ndtr

from pathlines.foundation.errors import ArgumentError
from pathlines.transport.euclid.stack import conditional_schedule
from pathlines.transport.euclid.triangular import TriangularFlow, density_parts
from pathlines.transport.targets import GaussianMixture

B = GaussianMixture(
    [0.35, 0.35, 0.3],
    [[-1.5, 0], [1.2, 1], [0.5, -1.8]],
    [[[0.5, 0.2], [0.2, 0.4]], [[0.4, -0.15], [-0.15, 0.3]], [[0.6, 0], [0, 0.2]]],
)
"""Target B of the tables."""
FLOW = TriangularFlow(bins=16, knots=16).fit_density(B)


def test_pieces_and_error_of_the_table():
    assert FLOW.report_.pieces == 352
    assert abs(FLOW.report_.kl - 1.15e-2) < 5 * FLOW.report_.kl_error  # 1.149e-2 ± 1.5e-4 from a million other draws
    assert FLOW.report_.round_trip < 1e-9


def test_density_integrates_to_one():
    x, step = np.linspace(-7, 7, 1401, retstep=True)
    grid = np.stack(np.meshgrid(x, x), -1).reshape(-1, 2)
    assert abs(np.exp(FLOW.log_prob(grid)).sum() * step**2 - 1) < 1e-3  # first order in the step at each kink


def test_conditional_sampling_vs_the_exact_conditional():
    for x in (-1.5, 0.0, 1.0):
        drawn = FLOW.sample(20_000, seed=1, given=x)
        assert (drawn[:, 0] == x).all()
        y = np.sort(drawn[:, 1])
        exact = B.line([x]).cdf(y)
        pinsker = np.sqrt(FLOW.report_.kl / 2)  # of the mean over x, beside a sampling error of 0.01
        assert np.abs(exact - (np.arange(20_000) + 0.5) / 20_000).max() < pinsker
        logs = FLOW.log_prob(y[:, None], given=x)
        joint = FLOW.log_prob(np.column_stack([np.full(len(y), x), y]))
        marginal = FLOW.parts_[0].log_prob(np.array([[x, 0.0]]))[0] + 0.5 * np.log(2 * np.pi)
        np.testing.assert_allclose(logs, joint - marginal, atol=1e-9)


def test_cells_in_three_dimensions():
    rng = np.random.default_rng(0)
    edges, slopes = [np.array([-0.5, 0.5]), np.array([-0.5, 0.5])], rng.uniform(0.5, 2, (3, 3))
    flow = conditional_schedule(3, edges, lambda c: (np.linspace(-4, 4, 5), slopes[c] * np.linspace(-4, 4, 5)))
    assert flow.count == 4 * 2 * 2 + 9 * 5 + 2 == 63
    x = rng.normal(size=(2000, 3))
    cell = [np.searchsorted(e, x[:, r]) for r, e in enumerate(edges)]
    inside = np.abs(x[:, 2]) < 4
    expected = x[:, 2] * slopes[cell[0], cell[1]]
    np.testing.assert_allclose(flow.forward(x)[0][inside, 2], expected[inside], atol=1e-6)
    np.testing.assert_array_equal(flow.forward(x)[0][:, :2], x[:, :2])
    np.testing.assert_allclose(flow.backward(flow.forward(x)[0])[0], x, atol=1e-9)


def test_fused_vs_one_by_one_with_steep_ramps():
    part = density_parts(B, 4, 6, 8)[1]
    x = np.random.default_rng(1).normal(size=(200, 2))
    fast, slow = part.forward(x)[0], part.forward(x, fused=False)[0]
    assert np.abs(fast - slow).max() < 2.0**-52 * 128 / 2.0**-20 * 4 * 10  # ε Λ|x|/δ for each of a few ramps


def test_error_target_and_budget():
    flow = TriangularFlow(error=0.02).fit_density(B)
    assert flow.report_.kl + 2 * flow.report_.kl_error <= 0.02
    small = TriangularFlow(pieces=200).fit_density(B).report_
    assert small.pieces <= 200


def test_samples_are_fitted():
    flow = TriangularFlow().fit(B.sample(5000, 1))
    fresh = B.sample(20_000, 2)
    kl = np.mean(B.log_prob(fresh) - flow.log_prob(fresh))
    assert 0 < kl < 0.08  # the best of the naive fits has 0.056 at this size
    z = flow.transform(fresh)
    assert np.abs(ndtr(z).mean(0) - 0.5).max() < 0.02
    assert flow.report_.round_trip < 1e-9


def test_bad_input():
    with pytest.raises(ArgumentError, match="`given` must be the first 1 to 1"):
        FLOW.sample(3, given=[1.0, 2.0])
    with pytest.raises(ArgumentError, match="`pieces` must be at least"):
        TriangularFlow(pieces=9).fit_density(B)
    with pytest.raises(ArgumentError, match="like GaussianMixture"):
        TriangularFlow().fit_density(3)
    with pytest.raises(ArgumentError, match="positive and sum to 1"):
        GaussianMixture([0.5, 1.0], np.zeros((2, 1)), np.ones((2, 1, 1)))


@pytest.mark.parametrize(("scale", "centre"), [(1e4, 0.0), (1e-4, 0.0), (1.0, 1e5), (1e-3, 1e4)])
def test_units_of_samples_do_not_matter(scale, centre):
    """Density, pieces within a budget and conditional draws, for data in any units."""
    data = B.sample(800, seed=3)
    one, other = (TriangularFlow(pieces=200).fit(x) for x in (data, scale * data + centre))
    assert other.report_.pieces <= 200 and other.report_.round_trip < 1e-7
    same = other.log_prob(scale * data + centre) + 2 * np.log(scale)
    # the budget buys other sizes, six pieces going to the units, so sizes are given for the comparison
    given = [TriangularFlow(bins=6, knots=8).fit(x) for x in (data, scale * data + centre)]
    a, b = (f.log_prob(x) for f, x in zip(given, (data, scale * data + centre)))
    np.testing.assert_allclose(b + 2 * np.log(scale), a, atol=1e-3)  # dyadic scales differ from the data's by ≤ √2
    assert abs(same.mean() - one.log_prob(data).mean()) < 0.1
    first = scale * 0.3 + centre
    drawn = given[1].sample(500, given=first)
    assert (drawn[:, 0] == first).all()
    wanted = given[0].sample(500, given=0.3)[:, 1]
    np.testing.assert_allclose((drawn[:, 1] - centre) / scale, wanted, atol=1e-3)


def test_columns_that_do_not_vary():
    with pytest.raises(ArgumentError, match="column 1 does not vary"):
        TriangularFlow().fit(np.column_stack([np.arange(40.0), np.full(40, 3.0)]))
    with pytest.raises(ArgumentError, match="RidgeFlow takes any d"):
        TriangularFlow().fit(np.random.default_rng(0).normal(size=(100, 20)))
