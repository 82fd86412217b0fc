"""Fates of Gaussian clouds against closed forms, and the stiff method behind them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError, PrecisionError
from pathlines.integrate import flow
from pathlines.integrate.batched import in_turns
from pathlines.integrate.gaussian_fate import fates
from pathlines.integrate.observe import Observable
from pathlines.integrate.rosenbrock import gauss_jordan
from pathlines.limit.gaussian.l2 import singular_key_blow_up
from pathlines.limit.gaussian.opposed import opposed_covariance
from pathlines.limit.gaussian.softmax import identity_value_blow_up, identity_value_limit
from pathlines.model.base import Model
from pathlines.model.gaussian.closure import SoftmaxGaussian, sigma_points
from pathlines.model.gaussian.normalised import L2Gaussian, SinkhornGaussian

COV = np.array([[1.0, 0.3], [0.3, 0.7]])
FACTOR = np.linalg.cholesky(COV)
STATE = Observable("state", "state", "x", lambda snapshot: snapshot.state[0, 0])


def test_blow_up_times_vs_closed_form():
    rng = np.random.default_rng(3)
    scores = rng.standard_normal((8, 2, 2)) + 0.8 * np.eye(2)
    found = fates([SoftmaxGaussian(np.eye(2), a) for a in scores], np.stack([FACTOR] * 8), rtol=1e-10)
    for fate, a in zip(found, scores, strict=True):
        time, direction = identity_value_blow_up(a, COV)
        if np.isinf(time):
            assert fate.kind in ("converged", "to-zero", "algebraic")
            continue
        assert fate.kind == "blow-up" and fate.rank == 1
        assert fate.blow_up_time == pytest.approx(time, rel=2e-9)
        assert abs(direction @ fate.direction) == pytest.approx(1, abs=1e-6)
        assert fate.rate_exponent == pytest.approx(1, abs=1e-3)


def test_every_class_in_the_plane():
    q = np.array([[0.8, 0.6]])
    models = [
        SoftmaxGaussian(np.eye(2), np.eye(2)),
        SoftmaxGaussian(np.eye(2), -np.eye(2)),
        SoftmaxGaussian([[0.0, 1.0], [1.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]),
        SoftmaxGaussian(np.eye(2), -q.T @ q),
    ]
    found = fates(models, np.stack([FACTOR, FACTOR, np.diag([0.8, 0.6]) ** 0.5, FACTOR]))
    assert [f.kind for f in found] == ["blow-up", "to-zero", "exponential", "algebraic"]
    np.testing.assert_allclose(found[-1].covariance, identity_value_limit(-q.T @ q, COV), atol=1e-4)
    assert found[-1].rank == 1 and found[-1].blow_up_time is None


def test_a_low_rank_start_keeps_its_rank():
    (fate,) = fates(SoftmaxGaussian(np.eye(2), np.eye(2)), np.array([[0.6], [0.8]]))
    assert fate.kind == "blow-up" and fate.rank == 1
    assert fate.blow_up_time == pytest.approx(0.5, rel=1e-8)
    np.testing.assert_allclose(fate.direction, [0.6, 0.8], atol=1e-12)


@pytest.mark.slow
def test_l2_blow_up_with_a_singular_key():
    start = np.array([[1.0, 0.5], [0.5, 1.0]])
    (fate,) = fates(L2Gaussian(np.diag([0.0, 1.0]), [[0.0, 1.0]], [[1.0, 0.0]]), np.linalg.cholesky(start))
    assert fate.kind == "blow-up"
    assert fate.blow_up_time == pytest.approx(singular_key_blow_up(1.0, 1.0, 1.0, start), rel=1e-7)
    assert fate.rate_exponent == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize(("kind", "model"), [("l2", L2Gaussian), ("sinkhorn", SinkhornGaussian)])
def test_kinds_whose_clock_would_stop(kind, model):
    """V = I, K = -Q: the heads lose sight of the cloud as it comes to rest like 1/t; K = Q: it grows like e^{2t}.

    The factor is followed to 1e-9, and its short axis is 2e-4 of it in the end.
    """
    q = np.array([[0.8, 0.6]])
    (resting,) = fates(model(np.eye(2), q, -q), FACTOR)
    assert resting.kind == "algebraic" and resting.rank == 1
    exact = opposed_covariance(kind, resting.time, q, COV)
    np.testing.assert_allclose(resting.covariance, exact, rtol=1e-6)
    np.testing.assert_allclose(resting.eigenvalues[1], np.linalg.eigvalsh(exact)[0], rtol=2 * 1e-9 / 2e-4)
    (growing,) = fates(model(np.eye(2), q, q), FACTOR)
    assert growing.kind == "exponential"
    assert growing.rate == pytest.approx(2, rel=1e-9)


def test_companions_change_nothing():
    """Clouds share lanes with whoever waits; none of that shows in a fate."""
    rng = np.random.default_rng(5)
    models = [SoftmaxGaussian(v, a) for v, a in zip(*rng.standard_normal((2, 20, 2, 2)), strict=True)]
    starts = np.stack([FACTOR] * 20)
    whole, part = fates(models, starts), fates(models[::-2], starts[::-2])
    assert whole[::-2] == part
    assert len({f.kind for f in whole}) > 1


def test_growth_over_the_last_decade():
    """tr Σ ∝ s for e^{ct}, whatever s the run ends at."""
    model = SoftmaxGaussian([[0.0, 1.0], [1.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]])
    for until in (1e4, 1e6):
        (fate,) = fates(model, np.diag([0.8, 0.6]) ** 0.5, until=until)
        assert fate.kind == "exponential" and fate.scale_free == until
        assert fate.slope == pytest.approx(1, abs=50 / until)


def test_arguments():
    with pytest.raises(ArgumentError, match="one d × r factor a model"):
        fates([SoftmaxGaussian(np.eye(2), np.eye(2))] * 2, FACTOR)
    with pytest.raises(ArgumentError, match="until"):
        fates(SoftmaxGaussian(np.eye(2), np.eye(2)), FACTOR, until=1e12)
    with pytest.raises(ArgumentError, match="rtol"):
        fates(SoftmaxGaussian(np.eye(2), np.eye(2)), FACTOR, rtol=0.0)


@pytest.mark.parametrize(
    ("factor", "message"),
    [
        (np.zeros((2, 2)), "factor 0 is zero"),
        (np.eye(3), "must have 2 rows"),
        (np.array([[np.nan, 0], [0, 1]]), "must be finite"),
        (np.zeros((0, 2, 2)), "one d × r factor a model"),
    ],
)
def test_bad_factors_in_one_line(factor, message):
    with pytest.raises(ArgumentError, match=message):
        fates(SoftmaxGaussian(np.eye(2), np.eye(2)), factor)


def test_fates_need_64_bits():
    with jax.enable_x64(False), pytest.raises(PrecisionError, match="enable_float64"):
        fates(SoftmaxGaussian(np.eye(2), np.eye(2)), FACTOR)


def test_clouds_that_stand_still_and_one_that_only_seems_to_vanish():
    """A factor that turns, Y → YO, and zero weights leave Σ alone; diag(1, x) shrinks by e^{-12} before T* = 1/(2x)."""
    turning, nothing = np.array([[0.0, 1.0], [-1.0, 0.0]]), np.zeros((2, 2))
    models = [SoftmaxGaussian(np.eye(2), turning), SoftmaxGaussian(np.eye(2), nothing), SoftmaxGaussian(nothing)]
    models += [SoftmaxGaussian(np.eye(2), np.diag([-1.0, 1.0]))] * 2
    starts = np.stack([np.eye(2), FACTOR, FACTOR, np.diag([1, 1e-3]), np.diag([1, 1e-4])])
    *still, sooner, later = fates(models, starts)
    assert [f.kind for f in still] == ["converged"] * 3
    for fate, start in zip(still, starts, strict=False):
        np.testing.assert_allclose(fate.covariance, start @ start.T, atol=1e-8)
    assert sooner.kind == later.kind == "blow-up"
    assert sooner.blow_up_time == pytest.approx(5e5, rel=1e-5)
    assert later.blow_up_time == pytest.approx(5e7, rel=1e-3)


class Stiff(Model):
    """x' = -λ(x - cos t) - sin t, with the solution cos t: stiff and with a time of its own."""

    rate: jax.Array

    def initial(self, tokens):
        """The start is the state."""
        return tokens

    def tokens(self, state, t):
        """And the state what is seen."""
        return state

    def check(self, tokens):
        """Any start."""

    def drift(self, state, t):
        """Towards cos t."""
        return -self.rate * (state - jnp.cos(t)) - jnp.sin(t)


def test_rodas5p_order_and_stiffness():
    """Order five on a mild problem that depends on time; accurate with large steps on a stiff one."""
    errors = []
    for step in (0.2, 0.1):
        run = flow(
            Stiff(jnp.asarray(2.0)), np.full((1, 1), 2.0), times=[2.0], record=STATE, method="rodas5p", step=step
        )
        exact = np.cos(2.0) + np.exp(-4.0)
        errors.append(abs(float(run["state"].values[-1]) - exact))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(5, abs=0.6)
    run = flow(Stiff(jnp.asarray(1e6)), np.ones((1, 1)), times=[2.0], record=STATE, method="rodas5p", rtol=1e-8)
    assert abs(float(run["state"].values[-1]) - np.cos(2.0)) < 1e-7
    assert run.certificate("accepted_steps").value < 200


def test_gauss_jordan_vs_lapack():
    matrices = np.random.default_rng(0).standard_normal((6, 7, 7))
    matrices[0] = np.eye(7)[[3, 1, 0, 6, 5, 2, 4]]  # every pivot but one is off the diagonal
    np.testing.assert_allclose(jax.vmap(gauss_jordan)(matrices), np.linalg.inv(matrices), rtol=1e-10, atol=1e-12)


def test_turns_of_unequal_jobs():
    """Every job is done as often as it asks, never beside itself, in groups that are not too large."""
    left, seen = np.arange(23) % 7, np.zeros(23, int)

    def work(jobs):
        assert len(set(jobs)) == len(jobs) <= 4
        seen[jobs] += 1
        return jobs[seen[jobs] <= left[jobs]]

    in_turns(work, np.arange(3, 23), 4, False)
    np.testing.assert_array_equal(seen[3:], left[3:] + 1)
    assert not seen[:3].any()


def test_rodas5p_vs_dop853_on_a_closure():
    model, start = SoftmaxGaussian([[1, 0.3], [0.2, -0.5]], [[0.8, -0.2], [0.1, 0.4]]), sigma_points([0.1, 0.2], COV)
    ends = [flow(model, start, times=[0.4], record="covariance", method=m, rtol=1e-10)["covariance"].values[-1]
            for m in ("rodas5p", "dop853")]  # fmt: skip
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-8)
