"""ensemble: the same numbers whatever the chunks, the same starts at every β, honest standard errors."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.claim.estimate import mean_and_error
from pathlines.domain import Sphere
from pathlines.foundation.errors import ArgumentError, PathlinesWarning
from pathlines.integrate import batched, ensemble, flow
from pathlines.limit.clustering.energy_range import initial_pair_rate
from pathlines.model import MODELS, SelfAttention
from pathlines.model.clustering.normalised import NormalisedAttention
from pathlines.numerics.few_samples import student
from pathlines.observable.pairs import mean_overlap, u_mean
from pathlines.weights import IdentityWeights, PiecewiseWeights

KEY = jax.random.key(7)
LAW = partial(Sphere(3).uniform, n=8)
TIMES = [0.0, 0.5, 2.0]
RECORD = (mean_overlap, u_mean)


def run_of(model=None, **changes):
    settings = {"runs": 70, "key": KEY, "times": TIMES, "record": RECORD, **changes}
    return ensemble(SelfAttention(2.0) if model is None else model, LAW, **settings)


def test_chunks_are_bitwise_invisible(optimised):
    """Three groups of lanes, in one chunk or in a chunk each."""
    width = batched.lane_count(8, 3)
    runs = 2 * width + 5
    whole = run_of(runs=runs)
    parts = run_of(runs=runs, memory=1.0)
    assert "1 groups per chunk" in parts.forms[0].reason
    assert whole.forms[0].reason != parts.forms[0].reason
    for name in ("mean_overlap", "u_mean"):
        assert (whole[name].values == parts[name].values).all()


def test_more_runs_leave_the_first_ones_alone():
    few, many = run_of(runs=5), run_of(runs=70)
    for name in ("mean_overlap", "u_mean"):
        assert (few[name].values == many[name].values[:5]).all()


def test_runs_vs_single_flows():
    run = run_of(runs=3, rtol=1e-10)
    for r in range(3):
        tokens = LAW(jax.random.fold_in(KEY, r))
        single = flow(SelfAttention(2.0), tokens, times=TIMES, record=RECORD, rtol=1e-10, form="tokens")
        for name in ("mean_overlap", "u_mean"):
            np.testing.assert_allclose(run[name].values[r], single[name].values, rtol=0, atol=1e-12)


def test_same_starts_at_every_parameter():
    run = run_of(over={"beta": [0.5, 2.0, 6.0]}, runs=20)
    assert run["u_mean"].dims == ("beta", "run", "time")
    first = run["u_mean"].sel(time=0.0).values
    assert (first == first[0]).all()
    assert np.ptp(run["u_mean"].sel(time=2.0).values, axis=0).min() > 1e-3


def test_parameter_vs_model_of_its_own():
    swept = run_of(over={"beta": [0.5, 2.0]}, runs=20)["u_mean"].sel(beta=2.0).values
    alone = run_of(SelfAttention(2.0), runs=20)["u_mean"].values
    np.testing.assert_allclose(swept, alone, rtol=0, atol=1e-14)


def test_starts_are_independent_and_reproducible():
    run, again = run_of(), run_of()
    assert (run["u_mean"].values == again["u_mean"].values).all()
    start = run["u_mean"].sel(time=0.0).values
    assert len(np.unique(start)) == len(start)
    other = run_of(key=jax.random.key(8))["u_mean"].sel(time=0.0).values
    assert not (start == other).any()


def test_standard_errors_cover_the_truth():
    """d/dt E<x_1,x_2> at t = 0 under USA is known exactly; runs are the unit of independence."""
    n, d, beta, t, runs = 6, 4, 1.0, 1e-3, 20_000
    law = partial(Sphere(d).uniform, n=n)
    run = ensemble(MODELS["usa"].build(beta), law, runs=runs, key=KEY, times=[0.0, t], record=mean_overlap)
    change = run["mean_overlap"].diff("time").isel(time=0) / t
    mean, error = mean_and_error(change.values)
    assert error == pytest.approx(student(runs) * change.std("run", ddof=1).item() / np.sqrt(runs))
    assert abs(mean - initial_pair_rate(n, d, beta)) < 5 * error
    assert error < 0.01 * mean


def test_schemes_and_break_points_vs_single_flows():
    weights = PiecewiseWeights([0.7], np.stack([np.eye(3), np.diag([1.5, 0.5, 1.0])]))
    for model in (NormalisedAttention(2.0, "mix"), SelfAttention(2.0, weights=weights)):
        run = run_of(model, runs=2, rtol=1e-10, times=[0.5, 3.0], record=u_mean)
        for r in range(2):
            tokens = LAW(jax.random.fold_in(KEY, r))
            single = flow(model, tokens, times=[0.5, 3.0], record=u_mean, rtol=1e-10, form="tokens")
            np.testing.assert_allclose(run["u_mean"].values[r], single["u_mean"].values, rtol=0, atol=1e-11)


def test_fixed_steps():
    run = run_of(runs=2, method="rk4", step=0.05)
    tokens = LAW(jax.random.fold_in(KEY, 1))
    single = flow(SelfAttention(2.0), tokens, times=TIMES, record=RECORD, method="rk4", step=0.05, form="tokens")
    np.testing.assert_allclose(run["u_mean"].values[1], single["u_mean"].values, rtol=0, atol=1e-14)


def _single_precision(key):
    return Sphere(3).uniform(key, 8, "float32")


def test_single_precision():
    run = ensemble(SelfAttention(2.0), _single_precision, runs=4, key=KEY, times=TIMES, record=u_mean, rtol=1e-5)
    assert run["u_mean"].dtype == np.float32
    assert np.isfinite(run["u_mean"].values).all()


def _mixed_sizes(key):
    """Starts in R² of which some grow out of bounds before others."""
    return jax.random.uniform(key, (4, 2)) * jnp.array([[1.0, 1.0]])


def test_unfinished_runs_are_said_and_are_nan():
    model = SelfAttention(0.0, space="euclidean", weights=IdentityWeights(100.0))
    with pytest.warns(PathlinesWarning, match="3 of 3 runs stalled or diverged"):
        run = ensemble(model, _mixed_sizes, runs=3, key=KEY, times=[0.1, 20.0], record=u_mean)
    assert np.isfinite(run["u_mean"].values[:, 0]).all()
    assert np.isnan(run["u_mean"].values[:, 1]).all()
    assert run.certificate("unfinished_runs").value == 3
    assert not run.certificate("unfinished_runs").passed


def test_step_limit_leaves_nan():
    with pytest.warns(PathlinesWarning, match="of 70 runs"):
        run = run_of(times=[0.0, 50.0], max_steps=3)
    assert np.isnan(run["u_mean"].values[:, 1]).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"runs": 0}, "`runs` must be an integer ≥ 1"),
        ({"over": {"beta": [1.0], "top": [2.0]}}, "name one model parameter"),
        ({"over": {"temperature": [1.0]}}, "names `temperature`"),
        ({"over": {"beta": [np.inf]}}, "finite"),
        ({"memory": 0.0}, "`memory`"),
        ({"times": None}, "Give either `until`"),
        ({"rtol": 1.0}, "`rtol`"),
        ({"max_steps": 0}, "`max_steps`"),
        ({"method": "rk4"}, "no error estimate"),
    ],
)
def test_bad_settings(changes, message):
    with pytest.raises(ArgumentError, match=message):
        run_of(**changes)


def test_bad_law():
    with pytest.raises(ArgumentError, match="rows of length 1"):
        ensemble(SelfAttention(2.0), partial(jax.random.normal, shape=(4, 3)), runs=2, key=KEY, until=1.0)
