"""chain: random layers in lanes, the same numbers whatever the chunks, honest about collapse."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.claim.estimate import mean_and_error
from pathlines.domain import Sphere
from pathlines.foundation.errors import ArgumentError, FormError, PathlinesWarning
from pathlines.integrate import chain, flow, layers
from pathlines.integrate.chain import _groups
from pathlines.integrate.observe import Observable
from pathlines.model import PathModel, SelfAttention
from pathlines.model.homogenized.random_transformer import RandomTransformer
from pathlines.observable.overlap import mean_square, pair_artanh, pair_overlap
from pathlines.observable.pairs import cross_ratios, deficits, mean_overlap, u_max

KEY = jax.random.key(3)
MODEL = RandomTransformer(9, heads=2, step=0.6, beta=0.0)
SHARP = RandomTransformer(9, heads=2, step=0.6, logit_scale=2.0)
LAW = partial(Sphere(9).uniform, n=4)
TOKENS = Sphere(9).sines(4)
RECORD = (mean_overlap, u_max)


def run_of(model=MODEL, start=TOKENS, **changes):
    return chain(model, start, **{"depth": 6, "every": 2, "key": KEY, "record": RECORD, **changes})


# --- the driver ---


def test_layers_vs_a_loop_with_the_documented_keys():
    run = run_of(SHARP, LAW, sampler="naive", record="tokens", depth=3, every=1, runs=3)
    mine = jax.random.fold_in(KEY, 2)
    x = LAW(jax.random.fold_in(mine, 0))
    layer = jax.jit(lambda x, key: SHARP.random_layer(x, 0, key))
    for number in range(3):
        x = layer(x, jax.random.fold_in(mine, number + 1))
        np.testing.assert_allclose(run["tokens"].values[2, number + 1], x, rtol=0, atol=1e-13)
    assert run["tokens"].dims == ("run", "time", "token", "component")


def test_chunks_are_bitwise_invisible():
    """Lanes of a fixed width, groups of them in two chunks or in a chunk each."""
    whole, parts = run_of(SHARP, runs=700), run_of(SHARP, runs=700, memory=1.0)
    for name in ("mean_overlap", "u_max"):
        assert (whole[name].values == parts[name].values).all()


def test_more_runs_leave_the_first_ones_alone():
    many, few, one = run_of(runs=900), run_of(runs=600), run_of()
    assert (many["u_max"].values[:600] == few["u_max"].values).all()
    assert one["u_max"].dims == ("time",)
    np.testing.assert_allclose(one["u_max"].values, few["u_max"].values[0], rtol=0, atol=1e-13)
    assert (run_of()["u_max"].values == one["u_max"].values).all()
    assert run_of(key=jax.random.key(4))["u_max"].values[-1] != one["u_max"].values[-1]
    final = one.final
    assert final.state.shape == (4, 9)
    np.testing.assert_allclose(np.max(final.model.deficits(final.state, 0.0)), one["u_max"].values[-1], rtol=1e-12)


def test_common_weights():
    """The same start under common weights gives equal runs; the start of run 1 moves with the heads of run 0."""
    same = run_of(runs=3, common=True)["u_max"].values
    assert (same == same[0]).all()
    alone = run_of(runs=3)["u_max"].values
    assert (alone[0] == same[0]).all() and np.ptp(alone[:, -1]) > 0
    second = run_of(start=LAW, runs=2, common=True)["u_max"].values[1]
    alone = run_of(start=LAW(jax.random.fold_in(jax.random.fold_in(KEY, 1), 0)))["u_max"].values
    np.testing.assert_allclose(second, alone, rtol=0, atol=1e-13)


def test_clocks_and_setting():
    run = run_of()
    assert run.data["layer"].values.tolist() == [0, 2, 4, 6]
    np.testing.assert_allclose(run.time, 0.18 * run.data["layer"], rtol=1e-14)
    np.testing.assert_allclose(run.data["tau"], run.time)
    np.testing.assert_allclose(run.data["t"], 0.6 * run.data["layer"])
    assert run.setting["derived"]["layer_time"] == pytest.approx(0.18)
    assert run.setting["sampler"] == run.forms[0].name == "uniform"
    assert "layer_time = 0.18" in repr(run) and "predicted" in run.forms[0].reason
    assert run.certificate("finite").passed
    mean = RandomTransformer(law=type(MODEL.law)(9, value_mean=0.5), logit_scale=1.0)
    assert next(iter(mean.clocks)) == "t"


def test_gram_starts():
    """A Gram matrix, coordinates in its span and ambient tokens are the same start."""
    gram = 0.6 * np.eye(4) + 0.4
    for start in (gram, Sphere(9).simplex(4, 0.4), Sphere(4).simplex(4, 0.4)):
        run = run_of(SHARP, start, record=("overlaps", "mean_norm"), sampler="gram", depth=0, every=1)
        np.testing.assert_allclose(run["overlaps"].values[0], gram, atol=1e-13)
        assert run["mean_norm"].item() == pytest.approx(np.sqrt(0.55))
    ambient = run_of(SHARP, gram, record=("tokens", "overlaps"), depth=0, every=1)
    assert ambient["tokens"].shape == (1, 4, 9) and ambient.forms[0].name in ("naive", "low-rank")
    np.testing.assert_allclose(ambient["overlaps"].values[0], gram, atol=1e-14)


def test_single_precision():
    run = run_of(start=Sphere(9).sines(4, "float32"), runs=5)
    assert run["u_max"].dtype == np.float32 and np.isfinite(run["u_max"].values).all()


class Brownian(PathModel):
    """A scalar path and a counter, to show that any state will do."""

    scale: jax.Array

    def random_layer(self, state, number, key):
        y, count = state
        return y + self.scale * jax.random.normal(key, y.shape, y.dtype), count + number.astype(count.dtype)

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
        ({"sampler": "gram", "start": Sphere(9).sines(5)}, "it needs n ≤ d/2, but n = 5, d = 9"),
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
    with pytest.raises(FormError, match="no random layers"):
        chain(SelfAttention(1.0), TOKENS, depth=2, key=KEY)
    with pytest.raises(FormError, match="use chain"):
        flow(MODEL, TOKENS, until=1.0)
    with pytest.raises(FormError, match="no layer map"):
        layers(MODEL, TOKENS, depth=2)
    with pytest.raises(ArgumentError, match="must be 'auto' for Growth"):
        chain(Growth(), 1.0, depth=1, key=KEY, sampler="gram")


# --- what the chain must do ---


@pytest.mark.parametrize(("v", "wanted"), [(1.0, 0.0207), (0.25, 0.0096)])
def test_weak_error_of_two_tokens(v, wanted):
    """E R(τ = 1) - 0.2118357210 for β = 0, d = 4, R₀ = 0 (reference: spectral solution of the generator, spec table).

    The wanted biases come from 10⁶ paths (± 4e-4); here 2·10⁵ paths have a standard error of 1e-3.
    """
    model = RandomTransformer(4, step=np.sqrt(v), beta=0.0)
    depth = round(1 / v)
    run = chain(model, Sphere(4).simplex(2), depth=depth, every=depth, key=KEY, runs=200_000, record=pair_overlap)
    assert run.forms[0].name == "uniform" and run.time[-1] == pytest.approx(1)
    mean, error = mean_and_error(run["pair_overlap"].transpose("run", ...))
    assert abs(mean[-1] - 0.2118357210 - wanted) < 5 * error[-1]
    assert error[-1] < 1.2e-3


def test_uniform_attention_is_conformal_as_steps_shrink():
    """Cross-ratios at τ = 1: the relative change falls with η (one half of it or less for half the step)."""
    tokens = Sphere(24).sines(12)
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


@pytest.mark.parametrize("sampler", ["low-rank", "gram"])
def test_degenerate_starts_stay_finite(sampler):
    """Coincident tokens stay together (collapsed from layer 0); pairs and antipodes are no obstacle."""
    model = RandomTransformer(8, step=1.0, logit_scale=2.0)
    e = np.eye(8)
    for rows in (e[[0, 0, 0]], e[[0, 0, 1]], np.stack([e[0], -e[0], e[0]])):
        run = chain(model, rows, depth=4, key=KEY, runs=4, record=deficits, sampler=sampler)
        u, when = run["deficits"].values, run.data["collapse_layer"].values
        assert np.isfinite(u).all()
        together = rows[1, 0] == rows[2, 0]
        assert (when == 0).all() if together else np.isnan(when).all()
        assert (u.max() < 1e-25) == together


def test_observables_of_pairs_and_means():
    run = chain(MODEL, Sphere(9).simplex(2, 0.5), depth=0, key=KEY, record=(pair_overlap, pair_artanh, mean_square))
    assert run["pair_overlap"].item() == pytest.approx(0.5)
    assert run["pair_artanh"].item() == pytest.approx(np.arctanh(0.5))
    assert run["mean_square"].item() == pytest.approx(0.75)
    with pytest.raises(FormError, match="need two tokens"):
        run_of(record=pair_overlap)


def test_numbers_of_a_model_do_not_recompile():
    """b, η, p, the depth, and d of the Gram form are numbers of one program."""
    programs = _groups._cached._cache_size()
    for d, b, depth in ((40, 1.0, 2), (50, 2.0, 5)):
        model = RandomTransformer(d, step=0.1 * b, logit_scale=b)
        chain(model, np.eye(3), depth=depth, every=depth, key=KEY, runs=8, record=u_max, sampler="gram")
    assert _groups._cached._cache_size() == programs + 1
