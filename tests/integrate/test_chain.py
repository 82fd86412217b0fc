"""chain: random layers in lanes, the same numbers whatever the chunks, honest about collapse."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.domain import Sphere
from pathlines.foundation.errors import ArgumentError, FormError, PathlinesWarning
from pathlines.integrate import chain, flow, layers
from pathlines.integrate.observe import Observable
from pathlines.model import PathModel, RandomTransformer, SelfAttention
from pathlines.observable.analysis import mean_and_error
from pathlines.observable.overlap import mean_square, pair_artanh, pair_overlap
from pathlines.observable.pairs import cross_ratios, deficits, mean_overlap, u_max

KEY = jax.random.key(3)
MODEL = RandomTransformer(9, heads=2, step=0.6, logit_scale=2.0)
LAW = partial(Sphere(9).uniform, n=4)
RECORD = (mean_overlap, u_max)


def run_of(model=MODEL, start=LAW, **changes):
    return chain(model, start, **{"depth": 6, "every": 2, "key": KEY, "record": RECORD, **changes})


# --- the driver ---------------------------------------------------------------------------------------------------------


def test_layers_vs_a_loop_with_the_documented_keys():
    run = run_of(sampler="naive", record="tokens", depth=3, every=1, runs=3)
    mine = jax.random.fold_in(KEY, 2)
    x = LAW(jax.random.fold_in(mine, 0))
    for number in range(3):
        x = MODEL.random_layer(x, number, jax.random.fold_in(mine, number + 1))
        np.testing.assert_allclose(run["tokens"].values[2, number + 1], x, rtol=0, atol=1e-13)
    assert run["tokens"].dims == ("run", "time", "token", "component")


def test_chunks_are_bitwise_invisible():
    """Lanes of a fixed width in one chunk a core or in many; more runs leave the first ones alone."""
    whole, parts = run_of(runs=700), run_of(runs=700, memory=1.0)
    for name in ("mean_overlap", "u_max"):
        assert (whole[name].values == parts[name].values).all()
    more = run_of(runs=900)
    assert (more["u_max"].values[:700] == whole["u_max"].values).all()


def test_one_run_is_the_first_of_many():
    many, one = run_of(runs=300), run_of()
    assert one["u_max"].dims == ("time",)
    np.testing.assert_allclose(one["u_max"].values, many["u_max"].values[0], rtol=0, atol=1e-13)
    assert (run_of()["u_max"].values == one["u_max"].values).all()
    assert run_of(key=jax.random.key(4))["u_max"].values[-1] != one["u_max"].values[-1]
    assert one.final is not None and one.final.state.shape == (4, 4)
    np.testing.assert_allclose(np.max(one.final.model.deficits(one.final.state, 0.0)), one["u_max"].values[-1], rtol=1e-12)


def test_common_weights():
    """The same start under common weights gives equal runs; different starts are moved by the same heads."""
    tokens = LAW(KEY)
    same = run_of(start=tokens, runs=3, common=True)["u_max"].values
    assert (same == same[0]).all()
    alone = run_of(start=tokens, runs=3)["u_max"].values
    assert (alone[0] == same[0]).all() and np.ptp(alone[:, -1]) > 0
    rotated = run_of(start=lambda key: LAW(key)[::-1], runs=2, common=True, sampler="naive", record="tokens", depth=2)
    plain = run_of(runs=2, common=True, sampler="naive", record="tokens", depth=2)
    np.testing.assert_allclose(rotated["tokens"].values, plain["tokens"].values[:, :, ::-1], atol=1e-13)


def test_clocks_and_setting():
    run = run_of()
    assert run.data["layer"].values.tolist() == [0, 2, 4, 6]
    np.testing.assert_allclose(run.time, 0.18 * run.data["layer"], rtol=1e-14)
    np.testing.assert_allclose(run.data["tau"], run.time)
    np.testing.assert_allclose(run.data["t"], 0.6 * run.data["layer"])
    assert run.setting["derived"]["layer_time"] == pytest.approx(0.18)
    assert run.setting["sampler"] == run.forms[0].name == "gram"
    assert "layer_time = 0.18" in repr(run) and "predicted" in run.forms[0].reason
    assert run.certificate("finite").passed
    mean = RandomTransformer(law=type(MODEL.law)(9, value_mean=0.5), logit_scale=1.0)
    assert next(iter(mean.clocks)) == "t"


def test_gram_starts():
    """A Gram matrix, its span factor and ambient tokens are the same start."""
    gram = 0.6 * np.eye(4) + 0.4
    tokens = Sphere(9).simplex(4, 0.4)
    found = [run_of(start=s)["u_max"].values for s in (gram, tokens, Sphere(4).simplex(4, 0.4))]
    assert found[0][0] == pytest.approx(0.6)
    np.testing.assert_allclose(found[1], found[2], rtol=0, atol=1e-12)
    ambient = run_of(start=gram, record=("tokens", "overlaps"))
    assert ambient["tokens"].shape == (4, 4, 9) and ambient.forms[0].name == "low-rank"
    np.testing.assert_allclose(ambient["overlaps"].values[0], gram, atol=1e-14)


def test_single_precision():
    run = run_of(start=partial(Sphere(9).uniform, n=4, dtype="float32"), runs=5)
    assert run["u_max"].dtype == np.float32 and np.isfinite(run["u_max"].values).all()


class Brownian(PathModel):
    """A scalar path and a counter, to show that any state will do."""

    scale: jax.Array

    def random_layer(self, state, number, key):
        y, count = state
        return y + self.scale * jax.random.normal(key, y.shape, y.dtype), count + number

    @property
    def clocks(self):
        return {"t": 0.25}


class Growth(PathModel):
    """Doubles until it overflows."""

    def random_layer(self, state, number, key):
        return state * 1e200


def test_any_state():
    """Variance scale²ℓ; Σ number = ℓ(ℓ-1)/2."""
    path = Observable("path", "path", "y", lambda s: s.state[0])
    count = Observable("count", "count", "c", lambda s: s.state[1])
    run = chain(Brownian(jnp.asarray(0.5)), (0.0, 0.0), depth=16, every=8, key=KEY, runs=20_000, record=(path, count))
    assert run.time.tolist() == [0.0, 2.0, 4.0] and "collapse_layer" not in run.data.coords
    assert (run["count"].values[:, -1] == 120).all()
    for row, variance in ((1, 2.0), (2, 4.0)):
        values = run["path"].values[:, row]
        assert abs(values.var() - variance) < 5 * variance * np.sqrt(2 / 20_000)
        assert abs(values.mean()) < 5 * np.sqrt(variance / 20_000)


def test_state_is_recorded_by_default_and_overflow_is_said():
    with pytest.warns(PathlinesWarning, match="1 of 1 runs"):
        run = chain(Growth(), np.ones(2), depth=2, key=KEY)
    assert run["state"].dims == ("time", "component") and run["state"].values[1, 0] == 1e200
    assert not run.certificate("finite").passed


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"depth": -1}, "`depth` must be an integer ≥ 0"),
        ({"depth": 5}, "multiple of `every` = 2"),
        ({"runs": 0}, "`runs` must be an integer ≥ 1"),
        ({"memory": 0.0}, "`memory`"),
        ({"sampler": "fast"}, "`sampler` must be 'auto' or one of"),
        ({"sampler": "gram", "record": "tokens"}, "ambient coordinates"),
        ({"start": np.ones((4, 9))}, "rows of length 1"),
        ({"start": np.full((4, 9), np.nan)}, "must be finite"),
        ({"start": partial(jax.random.normal, shape=(4, 9))}, "rows of length 1"),
        ({"start": [[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]]}, "has the eigenvalue -0.8"),
    ],
)
def test_bad_settings(changes, message):
    with pytest.raises(ArgumentError, match=message):
        run_of(**changes)


def test_what_is_not_a_chain():
    tokens = LAW(KEY)
    with pytest.raises(FormError, match="no random layers"):
        chain(SelfAttention(1.0), tokens, depth=2, key=KEY)
    with pytest.raises(FormError, match="use chain"):
        flow(MODEL, tokens, until=1.0)
    with pytest.raises(FormError, match="no layer map"):
        layers(MODEL, tokens, depth=2)
    with pytest.raises(ArgumentError, match="must be 'auto' for Growth"):
        chain(Growth(), 1.0, depth=1, key=KEY, sampler="gram")


# --- what the chain must do ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("v", "wanted"), [(1.0, 0.0207), (0.25, 0.0096)])
def test_weak_error_of_two_tokens(v, wanted):
    """E R(τ = 1) - 0.2118357210 for β = 0, d = 4, R₀ = 0 (reference: spectral solution of the generator, spec table).

    The wanted biases come from 10⁶ paths (± 4e-4); here 2·10⁵ paths have a standard error of 1e-3.
    """
    model = RandomTransformer(4, step=np.sqrt(v), beta=0.0)
    depth = round(1 / v)
    run = chain(model, Sphere(4).simplex(2), depth=depth, every=depth, key=KEY, runs=200_000, record=pair_overlap)
    assert run.forms[0].name == "uniform" and run.time[-1] == pytest.approx(1)
    mean, error = mean_and_error(run["pair_overlap"])
    assert abs(mean[-1] - 0.2118357210 - wanted) < 5 * error[-1]
    assert error[-1] < 1.2e-3


def test_uniform_attention_is_conformal_as_steps_shrink():
    """Cross-ratios at τ = 1: the relative change falls with η (one half of it or less for half the step)."""
    tokens = Sphere(24).uniform(KEY, 12)
    change = []
    for step, depth in ((0.2, 25), (0.1, 100)):
        model = RandomTransformer(24, step=step, beta=0.0)
        run = chain(model, tokens, depth=depth, every=depth, key=KEY, runs=20, record=cross_ratios)
        ratio = run["cross_ratios"].values
        change.append(np.abs(ratio[:, 1] / ratio[:, 0] - 1).mean())
    assert change[0] < 5e-3 and change[1] < 0.6 * change[0]


def _contraction(d, v, draws=400_000):
    """Mean of ln of the factor by which one layer shrinks a small deficit, in NumPy.

    Tokens near x get the same increment: y = x + √(v/d) z, and N has the derivative P_y/|y| there.
    """
    z = np.random.default_rng(0).normal(size=(draws, d)) * np.sqrt(v / d)
    z[:, 0] += 1
    square = np.sum(z * z, axis=1)
    return np.mean(np.log((1 - z[:, 1] ** 2 / square) / square))


@pytest.mark.parametrize(("sampler", "heads"), [("low-rank", 2), ("gram", 1)])
def test_deep_into_collapse(sampler, heads):
    """From u = 1e-8 to 1e-25, far below what 1 - <x,y> can show: the mean of ln u falls at the linearised rate.

    5 s.e. of 1000 runs; the collapse is reported when all deficits are below 1e-12.
    """
    d, v, depth = 6, 1.0, 60
    model = RandomTransformer(d, heads=heads, step=np.sqrt(v * heads), logit_scale=1.0)
    start = np.asarray([[np.cos(a), np.sin(a)] for a in (0.0, 1.4e-4, -0.7e-4)])
    run = chain(model, start, depth=depth, every=depth, key=KEY, runs=1000, record=deficits, sampler=sampler)
    u = run["deficits"].values[:, :, 0, 1]
    fall = np.log(u[:, 1] / u[:, 0]) / depth
    assert abs(fall.mean() - _contraction(d, v)) < 5 * fall.std() / np.sqrt(1000)
    assert np.exp(fall.mean() * depth) < 1e-16
    when = run.data["collapse_layer"].values
    assert run.certificate("collapsed").value == np.sum(np.isfinite(when)) > 990
    assert 5 < np.nanmedian(when) < depth


@pytest.mark.parametrize("sampler", ["low-rank", "gram", "naive"])
def test_degenerate_starts_stay_finite(sampler):
    """Coincident tokens stay together (collapsed from layer 0), antipodal ones are antipodal at the start."""
    model = RandomTransformer(8, step=1.0, logit_scale=2.0)
    e = np.eye(8)
    for rows in (e[[0, 0, 0]], e[[0, 0, 1]], np.stack([e[0], -e[0], e[0]])):
        run = chain(model, rows, depth=4, key=KEY, runs=4, record=deficits, sampler=sampler)
        u = run["deficits"].values
        assert np.isfinite(u).all()
        assert np.nanmax(np.abs(u[:, :, 0, 0])) == 0
    together = chain(model, e[[0, 0, 0]], depth=4, key=KEY, runs=4, record=u_max, sampler=sampler)
    assert (together.data["collapse_layer"].values == 0).all()
    assert together["u_max"].values.max() < 1e-25


def test_observables_of_pairs_and_means():
    run = chain(MODEL, Sphere(9).simplex(2, 0.5), depth=0, key=KEY, record=(pair_overlap, pair_artanh, mean_square))
    assert run["pair_overlap"].item() == pytest.approx(0.5)
    assert run["pair_artanh"].item() == pytest.approx(np.arctanh(0.5))
    assert run["mean_square"].item() == pytest.approx(0.75)
    with pytest.raises(FormError, match="need two tokens"):
        run_of(record=pair_overlap)


def test_numbers_of_a_model_do_not_recompile():
    """β, η, d of the Gram form are numbers of one program."""
    from pathlines.integrate.chain import _groups

    before = _groups._cached._cache_size() if hasattr(_groups, "_cached") else None
    for d, b in ((40, 1.0), (50, 2.0)):
        run_of(RandomTransformer(d, heads=2, step=0.1 * b, logit_scale=b), partial(Sphere(4).uniform, n=4), runs=8)
    if before is not None:
        assert _groups._cached._cache_size() - before <= 1


def test_model_is_a_pytree_of_numbers():
    leaves = [x for x in jax.tree.leaves(MODEL) if eqx.is_array(x)]
    assert all(leaf.ndim == 0 for leaf in leaves)
