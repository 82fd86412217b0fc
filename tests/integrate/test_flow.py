"""flow: closed forms, exact break points, blocks that change nothing, honest endings, clear refusals."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.attention import UnnormalisedAttention
from pathlines.domain import Sphere
from pathlines.foundation.errors import ArgumentError, FormError, PathlinesWarning
from pathlines.integrate import flow, journey
from pathlines.limit.clustering.clusters import two_cluster_overlap
from pathlines.limit.clustering.equiangular import deficit_at
from pathlines.limit.clustering.schemes import reduced_trajectory
from pathlines.model import Model, SelfAttention
from pathlines.model.clustering.normalised import NormalisedAttention
from pathlines.model.clustering.schemes import MixLN
from pathlines.observable.pairs import deficits, mean_overlap, u_max, u_mean
from pathlines.weights import FixedWeights, IdentityWeights, PiecewiseWeights

SHARP = {"method": "dop853", "rtol": 1e-12}


def start(n=8, d=3):
    return Sphere(d).sines(n)


# --- against closed forms


@pytest.mark.parametrize("kind", ["sa", "usa"])
def test_simplex_vs_closed_form(kind):
    n, times = 6, np.array([0.3, 1.0, 2.5])
    attention = UnnormalisedAttention() if kind == "usa" else None
    for beta in (0.0, 1.0, 3.0):
        run = flow(
            SelfAttention(beta, attention=attention), Sphere(n).simplex(n, 0.1), times=times, record=u_mean, **SHARP
        )
        np.testing.assert_allclose(run["u_mean"], deficit_at(times, n, beta, kind, 0.1), rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("times", [[40.0], [1.0, 10.0, 40.0], np.linspace(0, 40, 161)], ids=["1", "3", "161"])
def test_late_deficits_vs_closed_form(times):
    """Far below 1e-16, because pair deficits take over from coordinates in time, however few times are recorded."""
    n, beta = 5, 1.0
    run = flow(SelfAttention(beta), Sphere(n).simplex(n), times=times, record=u_mean, **SHARP)
    np.testing.assert_allclose(run["u_mean"], deficit_at(times, n, beta), rtol=1e-7)
    assert [f.name for f in run.forms] == ["tokens", "GramAttention"]
    assert run["u_mean"].values[-1] < 1e-33


def test_deficits_of_very_different_sizes_do_not_stall():
    """Two pairs 10⁻⁹ apart inside a cluster 10⁻³ wide: their deficits are differences of much larger ones."""
    centres = Sphere(3).normalise([[1.0, 0.0, 0.0], [1.0, 2e-4, 0.0], [1.0, 0.0, 3e-4]])
    offset = np.zeros((6, 3))
    offset[1::2, 1] = 1e-9
    tokens = Sphere(3).normalise(np.repeat(np.asarray(centres), 2, axis=0) + offset)
    run = flow(SelfAttention(2.0), tokens, times=[10.0, 20.0], record=deficits, method="dop853", rtol=1e-11)
    assert [f.name for f in run.forms] == ["tokens", "GramAttention"]
    assert run.certificate("accepted_steps").value < 200
    across = run["deficits"].values[:, 0, 2]
    assert across[1] / across[0] == pytest.approx(np.exp(-20.0), rel=1e-6)


def test_change_of_form_is_bitwise_invisible_to_blocks(monkeypatch):
    times = np.linspace(0, 40, 81)
    whole = flow(SelfAttention(1.0), start(), times=times, record=u_mean, rtol=1e-8)
    assert [f.name for f in whole.forms] == ["tokens", "GramAttention"]
    monkeypatch.setattr(journey, "BLOCKS", (5, 5))
    monkeypatch.setattr(journey, "PAIRS_A_CALL", 0.0)
    parts = flow(SelfAttention(1.0), start(), times=times, record=u_mean, rtol=1e-8)
    assert whole.forms == parts.forms
    assert (whole["u_mean"].values == parts["u_mean"].values).all()


def test_form_that_comes_too_late_is_declined():
    """Ripe with less than one unit of time left: the tokens go on, and the run ends."""
    n, beta = 5, 1.0
    run = flow(SelfAttention(beta), Sphere(n).simplex(n), times=[8.0, 8.6], record=u_mean, **SHARP)
    assert [f.name for f in run.forms] == ["tokens"]
    assert run["u_mean"].values[-1] < 5e-7
    np.testing.assert_allclose(run["u_mean"], deficit_at([8.0, 8.6], n, beta), rtol=1e-7)


def test_multiplicities_vs_copies():
    pair = Sphere(3).normalise([[1.0, 0.0, 0.0], [-0.3, 0.8, 0.1]])
    merged = flow(SelfAttention(2.5, multiplicities=[3, 7]), pair, times=[2.0], record=deficits, **SHARP)
    copies = flow(SelfAttention(2.5), np.repeat(pair, [3, 7], axis=0), times=[2.0], record=deficits, **SHARP)
    overlap = float(pair[0] @ pair[1])
    expected = 1 - two_cluster_overlap(2.0, 3, 7, 2.5, overlap)
    assert merged["deficits"].values[0, 0, 1] == pytest.approx(expected, abs=1e-11)
    assert copies["deficits"].values[0, 0, -1] == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("form", ["tokens", "span", "gram-deficit"])
def test_forms_agree(form):
    x = Sphere(12).uniform(jax.random.key(2), 5)
    times = np.linspace(0, 3, 7)
    run = flow(SelfAttention(2.0), x, times=times, record=deficits, form=form, **SHARP)
    reference = flow(SelfAttention(2.0), x, times=times, record=deficits, **SHARP)
    assert run.forms[0].name == form
    assert reference.forms[0].name == "span"
    np.testing.assert_allclose(run["deficits"], reference["deficits"], rtol=0, atol=1e-11)


def test_circle_form_vs_tokens():
    x = Sphere(2).uniform(jax.random.key(3), 130)
    automatic = flow(SelfAttention(2.0), x, times=[0.5, 2.0], record=deficits, rtol=1e-10)
    direct = flow(SelfAttention(2.0), x, times=[0.5, 2.0], record=deficits, rtol=1e-10, form="tokens")
    assert automatic.forms[0].name == "circle-fourier"
    np.testing.assert_allclose(automatic["deficits"], direct["deficits"], rtol=0, atol=1e-8)


def test_span_form_returns_ambient_tokens():
    x = Sphere(9).uniform(jax.random.key(4), 4)
    span, ambient = (flow(SelfAttention(2.0), x, times=[0.0, 1.0], form=form, **SHARP) for form in ("span", "tokens"))
    np.testing.assert_allclose(span["tokens"], ambient["tokens"], rtol=0, atol=1e-12)


def test_fixed_and_adaptive_steps_agree():
    x, model = start(), SelfAttention(2.0)
    adaptive = flow(model, x, times=[2.0], **SHARP)["tokens"].values
    for method, step in (("rk4", 0.005), ("rk45", 0.02), ("dop853", 0.1)):
        fixed = flow(model, x, times=[2.0], method=method, step=step)["tokens"].values
        np.testing.assert_allclose(fixed, adaptive, rtol=0, atol=1e-9)


def test_two_tolerances_agree_and_the_error_scales():
    exact = flow(SelfAttention(4.0), start(), times=[3.0], **SHARP)["tokens"].values
    errors = [
        np.abs(flow(SelfAttention(4.0), start(), times=[3.0], rtol=rtol)["tokens"].values - exact).max()
        for rtol in (1e-5, 1e-8)
    ]
    assert errors[1] < 1e-6
    assert errors[1] < errors[0] / 20


def test_recorded_times_do_not_matter():
    """Every recorded state is a solver state: asking for more times changes the others within tolerance only."""
    sparse = flow(SelfAttention(2.0), start(), times=[1.0, 3.0], **SHARP)["tokens"].values
    dense = flow(SelfAttention(2.0), start(), times=np.linspace(0, 3, 151), **SHARP)["tokens"].values
    np.testing.assert_allclose(dense[[50, 150]], sparse, rtol=0, atol=1e-10)


# --- blocks and budgets change nothing


def recorded(model, tokens, times, **how):
    return flow(model, tokens, times=times, record=("tokens", "u_mean"), accumulate=mean_overlap, form="tokens", **how)


@pytest.mark.parametrize("block", [5, 200])
def test_blocks_of_times_are_bitwise_invisible(monkeypatch, block):
    times = np.linspace(0, 4, 45)
    whole = recorded(SelfAttention(3.0), start(), times, rtol=1e-7)
    monkeypatch.setattr(journey, "BLOCKS", (block, block))
    parts = recorded(SelfAttention(3.0), start(), times, rtol=1e-7)
    assert all((whole[name].values == parts[name].values).all() for name in whole.data)
    assert whole.certificate("accepted_steps") == parts.certificate("accepted_steps")


def test_step_budgets_are_bitwise_invisible(monkeypatch):
    times = np.linspace(0, 20, 3)
    whole = recorded(SelfAttention(3.0), start(), times, rtol=1e-10)
    assert whole.certificate("accepted_steps").value > 50
    monkeypatch.setattr(journey, "PAIRS_A_CALL", 0.0)
    parts = recorded(SelfAttention(3.0), start(), times, rtol=1e-10)
    assert all((whole[name].values == parts[name].values).all() for name in whole.data)


def test_same_call_same_bits():
    runs = [flow(SelfAttention(3.0), start(), until=5.0, record=u_max) for _ in range(2)]
    assert (runs[0]["u_max"].values == runs[1]["u_max"].values).all()


def test_interrupted_run_resumes_bit_for_bit():
    times = np.linspace(0, 6, 40)
    whole = recorded(SelfAttention(3.0), start(), times, rtol=1e-9)
    kept = []
    with pytest.warns(PathlinesWarning, match="max_steps = 30"):
        part = recorded(SelfAttention(3.0), start(), times, rtol=1e-9, max_steps=30, checkpoint=kept.append)
    assert 0 < len(part.time) < len(times)
    rest = recorded(SelfAttention(3.0), start(), times, rtol=1e-9, resume=kept[-1])
    assert all((whole[name].values == rest[name].values).all() for name in whole.data)


# --- break points


def weights_pair():
    first, second = np.diag([1.5, 0.5, 1.0]), np.array([[1.0, 0.4, 0.0], [0.0, 1.0, -0.3], [0.2, 0.0, 1.0]])
    return first, second


@pytest.mark.parametrize("method", [SHARP, {"method": "rk4", "step": 0.07}], ids=["adaptive", "fixed"])
def test_piecewise_weights_vs_two_runs(method):
    (first, second), switch = weights_pair(), 0.83
    model = SelfAttention(2.0, weights=PiecewiseWeights([switch], np.stack([first, second])))
    whole = flow(model, start(), times=[0.4, switch, 2.0], **method)["tokens"].values
    before = flow(SelfAttention(2.0, weights=FixedWeights(first)), start(), times=[0.4, switch], **method)[
        "tokens"
    ].values
    after = flow(SelfAttention(2.0, weights=FixedWeights(second)), before[-1], times=[2.0 - switch], **method)[
        "tokens"
    ].values
    np.testing.assert_allclose(whole[:2], before, rtol=0, atol=1e-15)
    np.testing.assert_allclose(whole[2], after[-1], rtol=0, atol=1e-11)


def test_break_points_keep_the_order_of_the_method():
    """With the jump stepped over, RK4 would fall to order one."""
    first, second = weights_pair()
    model = SelfAttention(2.0, weights=PiecewiseWeights([0.83], np.stack([first, second])))
    exact = flow(model, start(), times=[2.0], **SHARP)["tokens"].values
    errors = [
        np.abs(flow(model, start(), times=[2.0], method="rk4", step=h)["tokens"].values - exact).max()
        for h in (0.08, 0.04)
    ]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(4, abs=0.4)


def test_mix_ln_switch_vs_reduction():
    times = np.array([0.5, 1.0, 1.7, 4.0])
    model = NormalisedAttention(2.0, MixLN(1.0), magnitudes=1.3)
    run = flow(model, Sphere(6).simplex(6, 0.05), times=times, record=("u_mean", "magnitude"), **SHARP)
    deficit, size = reduced_trajectory("mix", times, 6, 2.0, 0.05, 1.3, switch=1.0)
    np.testing.assert_allclose(run["u_mean"], deficit, rtol=0, atol=1e-11)
    np.testing.assert_allclose(run["magnitude"].values.mean(axis=1), size, rtol=0, atol=1e-11)


# --- honest endings


class Sink(Model):
    """dx/dt = -1/x: from 1, zero at t = ½, where the equation ends."""

    def initial(self, tokens):
        return tokens

    def tokens(self, state, t):
        return state

    def check(self, tokens):
        pass

    def drift(self, state, t):
        return -1 / state


def test_stalled_run_keeps_what_it_has():
    with pytest.warns(PathlinesWarning, match="stalled at t = 0.5: the step size fell below rounding"):
        run = flow(Sink(), np.ones((1, 1)), times=[0.18, 0.48, 1.5, 2.0])
    np.testing.assert_allclose(run["tokens"].values[:, 0, 0], [0.8, 0.2], rtol=1e-6)
    assert run.time.tolist() == [0.18, 0.48]
    assert run.outcome.startswith("stalled")


@pytest.mark.parametrize("how", [{}, {"method": "rk4", "step": 0.01}], ids=["adaptive", "fixed"])
def test_diverging_run_keeps_what_it_has(how):
    model = SelfAttention(0.0, space="euclidean", weights=IdentityWeights(100.0))
    with pytest.warns(PathlinesWarning, match="diverged at t = ") as caught:
        run = flow(model, np.array([[1.0, 2.0], [3.0, 4.0]]), times=[0.1, 1.0, 20.0], **how)
    assert len(caught) == 1
    assert run.time.tolist() == [0.1, 1.0]
    assert np.isfinite(run["tokens"].values).all()


def test_step_limit_is_said():
    with pytest.warns(PathlinesWarning, match="max_steps = 5 steps are used up"):
        run = flow(SelfAttention(2.0), start(), times=[0.01, 50.0], rtol=1e-10, max_steps=5)
    assert run.time.tolist() == [0.01]
    assert float(run.final[2]) < 50


def test_step_limit_just_enough_is_no_problem():
    steps = int(flow(SelfAttention(2.0), start(), times=[1.0]).certificate("accepted_steps").value)
    run = flow(SelfAttention(2.0), start(), times=[1.0], max_steps=steps)
    assert run.outcome == "completed"


def test_failed_certificate_warns():
    model = SelfAttention(3.0)
    wrong = eqx.tree_at(lambda m: m.top, model, jnp.asarray(0.9))
    with pytest.warns(PathlinesWarning, match="energy_identity"):
        flow(wrong, start(), until=3.0, record=u_mean)
    assert flow(model, start(), until=3.0, record=u_mean).certificate("energy_identity").passed


def test_cross_ratio_certificate_only_where_it_applies():
    names = {c.name for c in flow(SelfAttention(0.0), start(), times=[1.0], **SHARP).certificates}
    assert "cross_ratios" in names
    for model in (SelfAttention(0.5), NormalisedAttention(0.0, "pre")):
        assert "cross_ratios" not in {c.name for c in flow(model, start(), times=[1.0], **SHARP).certificates}


# --- single precision


def test_single_precision():
    x = np.asarray(start(), np.float32)
    run = flow(SelfAttention(2.0), x, times=[0.0, 1.0, 3.0], rtol=1e-5)
    assert run["tokens"].dtype == np.float32
    assert run.setting["dtype"] == "float32"
    exact = flow(SelfAttention(2.0), start(), times=[0.0, 1.0, 3.0], **SHARP)["tokens"]
    np.testing.assert_allclose(run["tokens"], exact, rtol=0, atol=1e-4)


# --- refusals


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"until": None}, "Give either `until`"),
        ({"times": [1.0]}, "Give either `until`"),
        ({"until": 0.0}, "`until` must be a finite number > 0"),
        ({"until": None, "times": [1.0, 0.5]}, "`times` must be increasing"),
        ({"until": None, "times": [-1.0, 0.5]}, "`times` must be increasing numbers ≥ 0"),
        ({"until": None, "times": [np.nan]}, "`times` must be finite"),
        ({"rtol": 0.0}, "`rtol`"),
        ({"atol": -1.0}, "`atol`"),
        ({"max_steps": 0}, "`max_steps` must be an integer ≥ 1"),
        ({"record": 3.0}, "record"),
        ({"form": "fourier"}, "`form` must be one of auto, tokens"),
    ],
)
def test_bad_settings(changes, message):
    with pytest.raises((ArgumentError, TypeError), match=message):
        flow(SelfAttention(1.0), start(), **{"until": 1.0, **changes})


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (np.ones((4, 3)), "rows of length 1"),
        (np.full((4, 3), np.nan), "finite"),
        (np.array([1.0, 0.0]), "shape"),
        (np.zeros((0, 3)), "shape"),
        (np.array([["a", "b"]]), "numeric"),
    ],
)
def test_bad_tokens(tokens, message):
    with pytest.raises(ArgumentError, match=message):
        flow(SelfAttention(1.0), tokens, until=1.0)


def test_forms_that_do_not_apply():
    with pytest.raises(FormError, match="d > n"):
        flow(SelfAttention(1.0), start(), until=1.0, form="span")
    with pytest.raises(FormError, match="d = 2"):
        flow(SelfAttention(1.0), start(), until=1.0, form="circle-fourier")
    with pytest.raises(FormError, match="token coordinates"):
        flow(SelfAttention(1.0), start(), until=1.0, form="gram-deficit")
