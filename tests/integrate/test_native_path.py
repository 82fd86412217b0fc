"""Runs in native code against the same runs in compiled JAX: same steps, same answers to rounding."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pathlines as pl
from pathlines.foundation.errors import PathlinesWarning
from pathlines.integrate import journey as driver
from pathlines.integrate.journey import Journey
from pathlines.integrate.native_path import native_system
from pathlines.kernels.native import native_serves

pl.enable_float64()
pytestmark = pytest.mark.skipif(not native_serves("float64"), reason="no native kernels here")

RNG = np.random.default_rng(5)
Q, K, V = (np.eye(3) + 0.3 * RNG.normal(size=(3, 3)) for _ in range(3))
HEADS = RNG.normal(size=(3, 2, 3, 3)) / 2
WIDE = np.eye(12) + 0.1 * RNG.normal(size=(12, 12))


def start(n, d, dtype="float64", seed=0):
    return pl.Sphere(d).uniform(jax.random.key(seed), n).astype(dtype)


def both(monkeypatch, model, tokens, **settings):
    """(the run in native code, the same in compiled JAX)."""
    used = []
    natively = Journey._natively
    with monkeypatch.context() as m:
        m.setattr(Journey, "_natively", lambda self, block: used.append(1) or natively(self, block))
        fast = pl.flow(model, tokens, progress=False, **settings)
    assert used, "the native path was not taken"
    with monkeypatch.context() as m:
        m.setattr(driver, "native_run", lambda *_: None)
        slow = pl.flow(model, tokens, progress=False, **settings)
    return fast, slow


def agree(fast, slow, tolerance):
    assert fast.outcome == slow.outcome
    assert set(fast.data.data_vars) == set(slow.data.data_vars)
    for name in slow.data.data_vars:
        a, b = fast.data[name].values, slow.data[name].values
        assert a.dtype == b.dtype and a.shape == b.shape and fast.data[name].dims == slow.data[name].dims
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=name)
    assert [c.name for c in fast.certificates] == [c.name for c in slow.certificates]
    assert [c.passed for c in fast.certificates] == [c.passed for c in slow.certificates]
    assert fast.certificate("accepted_steps") == slow.certificate("accepted_steps")
    assert [(f.name, f.reason) for f in fast.forms] == [(f.name, f.reason) for f in slow.forms]


CASES = {
    "plain": (lambda: pl.SelfAttention(4.0), 24, 3),
    "two tokens": (lambda: pl.SelfAttention(1.0), 2, 2),
    "one token": (lambda: pl.SelfAttention(1.0), 1, 3),
    "circle": (lambda: pl.SelfAttention(9.0), 33, 2),
    "no interaction": (lambda: pl.SelfAttention(0.0), 24, 3),
    "sharp": (lambda: pl.SelfAttention(900.0), 24, 3),
    "four": (lambda: pl.SelfAttention(2.0), 17, 4),
    "five": (lambda: pl.SelfAttention(2.0), 17, 5),
    "wide": (lambda: pl.SelfAttention(5.0), 50, 24),
    "span": (lambda: pl.SelfAttention(3.0), 6, 9),
    "many": (lambda: pl.SelfAttention(3.0), 150, 3),
    "very many": (lambda: pl.SelfAttention(3.0, summation="dense"), 600, 3),
    "repulsive": (lambda: pl.SelfAttention(2.0, weights=pl.weights.IdentityWeights(-1.0)), 24, 3),
    "unnormalised": (lambda: pl.SelfAttention(2.0, attention=pl.attention.UnnormalisedAttention()), 24, 3),
    "scaled": (lambda: pl.SelfAttention(3.0, attention=pl.attention.UnnormalisedAttention(shift=3.0)), 20, 4),
    "frozen": (lambda: pl.SelfAttention(2.0, frozen=5), 24, 3),
    "weights": (lambda: pl.SelfAttention(2.0, weights=pl.weights.FixedWeights(V, Q, K)), 24, 3),
    "values": (lambda: pl.SelfAttention(2.0, weights=pl.weights.FixedWeights(V)), 24, 3),
    "keys": (lambda: pl.SelfAttention(2.0, weights=pl.weights.FixedWeights(V, key=K)), 24, 3),
    "matched": (lambda: pl.SelfAttention(1.0, weights=pl.weights.FixedWeights(Q.T @ Q, Q, Q)), 24, 3),
    "opposed": (lambda: pl.SelfAttention(1.0, weights=pl.weights.FixedWeights(-Q.T @ Q, Q, Q)), 24, 3),
    "heads": (lambda: pl.SelfAttention(1.0, weights=pl.weights.FixedWeights(*HEADS)), 24, 3),
    "wide weights": (lambda: pl.SelfAttention(2.0, weights=pl.weights.FixedWeights(WIDE, WIDE.T)), 40, 12),
    "masses": (lambda: pl.SelfAttention(2.0, multiplicities=1.0 + np.arange(24) % 3), 24, 3),
    "listeners": (lambda: pl.SelfAttention(2.0, multiplicities=(np.arange(24) < 15) * 1.0), 24, 3),
    "sharp listeners": (lambda: pl.SelfAttention(400.0, multiplicities=(np.arange(24) % 2) * 1.0), 24, 3),
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_run_as_in_compiled_jax(name, monkeypatch):
    build, n, d = CASES[name]
    record = ["tokens", "energy_fraction", "cluster_count"]
    fast, slow = both(monkeypatch, build(), start(n, d), times=[0.0, 0.3, 1.5], record=record, form="tokens")
    agree(fast, slow, 1e-10)


@pytest.mark.parametrize("method", ["rk45", "rk23", "dop853"])
def test_adaptive_methods(method, monkeypatch):
    agree(*both(monkeypatch, pl.SelfAttention(4.0), start(30, 3), until=3.0, method=method, rtol=1e-6), 1e-10)


@pytest.mark.parametrize("method", ["rk4", "rk4-end", "heun", "euler"])
def test_fixed_steps(method, monkeypatch):
    agree(*both(monkeypatch, pl.SelfAttention(4.0), start(30, 3), until=2.0, method=method, step=0.05), 1e-12)


@pytest.mark.parametrize("name", ["plain", "weights", "wide", "unnormalised", "many"])
def test_single_precision(name, monkeypatch):
    build, n, d = CASES[name]
    fast, slow = both(monkeypatch, build(), start(n, d, "float32"), times=[0.5, 1.5], rtol=1e-4, form="tokens")
    assert fast["tokens"].dtype == np.float32
    for key in slow.data.data_vars:
        np.testing.assert_allclose(fast.data[key], slow.data[key], atol=3e-5)


def test_automatic_forms_are_those_of_the_other_path(monkeypatch):
    agree(*both(monkeypatch, pl.SelfAttention(2.0), start(6, 40), until=4.0), 1e-9)


def test_deficits_take_over_where_they_did(monkeypatch):
    fast, slow = both(monkeypatch, pl.SelfAttention(1.0), start(8, 3), until=30.0, record="u_max")
    assert [f.name for f in fast.forms] == ["tokens", "GramAttention"]
    agree(fast, slow, 1e-7)
    assert fast.forms[1].since == pytest.approx(slow.forms[1].since, rel=1e-9)


def test_bits_do_not_depend_on_how_often_the_run_was_interrupted(monkeypatch):
    model, tokens = pl.SelfAttention(4.0), start(150, 3)
    whole = pl.flow(model, tokens, until=5.0, progress=False)
    from pathlines.integrate.native_path import NativeRun

    monkeypatch.setattr(NativeRun, "budget", lambda self: 3)
    monkeypatch.setattr(NativeRun, "room", lambda self: 7)
    pieces = pl.flow(model, tokens, until=5.0, progress=False)
    np.testing.assert_array_equal(whole["tokens"], pieces["tokens"])
    np.testing.assert_array_equal(whole["dissipation_residual"], pieces["dissipation_residual"])
    assert whole.certificates == pieces.certificates


def test_bits_do_not_depend_on_the_threads(monkeypatch):
    runs = []
    for threads in (1, 2, 5):
        monkeypatch.setattr("pathlines.integrate.native_path.threads_for", lambda n, threads=threads: threads)
        for model in (pl.SelfAttention(4.0), pl.SelfAttention(4.0, weights=pl.weights.FixedWeights(V))):
            runs.append(pl.flow(model, start(300, 3), until=2.0, progress=False)["tokens"].values)
    for k in (2, 3, 4, 5):
        np.testing.assert_array_equal(runs[k], runs[k % 2])


def test_a_checkpoint_goes_on_bit_for_bit():
    model, tokens, kept = pl.SelfAttention(4.0), start(40, 3), []
    whole = pl.flow(model, tokens, until=5.0, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PathlinesWarning)
        stopped = pl.flow(model, tokens, until=5.0, progress=False, max_steps=40, checkpoint=kept.append)
    assert stopped.outcome.startswith("stalled") and len(stopped.time) < 101
    resumed = pl.flow(model, tokens, until=5.0, progress=False, resume=kept[-1])
    np.testing.assert_array_equal(whole["tokens"], resumed["tokens"])
    np.testing.assert_array_equal(whole["dissipation_residual"], resumed["dissipation_residual"])
    assert whole.certificates == resumed.certificates


def test_another_number_of_tokens_compiles_nothing():
    settings = {"until": 1.0, "record": ["energy", "cluster_count", "tokens"], "progress": False}
    pl.flow(pl.SelfAttention(4.0), start(32, 3), **settings)
    compiled = []
    listen = lambda name, *_, **__: compiled.append(name) if "backend_compile" in name else None  # noqa: E731
    tokens = start(37, 3)
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        pl.flow(pl.SelfAttention(4.0), tokens, **settings)
    finally:
        jax.monitoring.clear_event_listeners()
    assert not compiled


def test_a_model_with_methods_of_its_own_is_integrated_as_it_stands(monkeypatch):
    class Slower(pl.SelfAttention):
        def drift(self, state, t):
            return 0.5 * super().drift(state, t)

    tokens = start(10, 3)
    assert native_system(pl.SelfAttention(2.0), tokens.shape, tokens.dtype) is not None
    assert native_system(Slower(2.0), tokens.shape, tokens.dtype) is None
    half = pl.flow(Slower(2.0), tokens, times=[2.0], progress=False)["tokens"].values
    np.testing.assert_allclose(half, pl.flow(pl.SelfAttention(2.0), tokens, times=[1.0])["tokens"].values, atol=1e-8)
    drift = pl.SelfAttention.drift
    monkeypatch.setattr(pl.SelfAttention, "drift", lambda self, x, t: 0.5 * drift(self, x, t))
    assert native_system(pl.SelfAttention(2.0), tokens.shape, tokens.dtype) is None


def test_an_observable_whose_function_was_changed_is_evaluated_as_it_says():
    from dataclasses import replace

    changed = replace(pl.cluster_count, function=lambda snapshot, delta: jnp.asarray(-1))
    run = pl.flow(pl.SelfAttention(2.0), start(10, 3), times=[1.0], record=[changed], progress=False)
    assert run["cluster_count"].values.tolist() == [-1]


def test_derivatives_are_those_of_the_steps():
    tokens = start(8, 3)
    settings = {"times": [1.0], "record": "energy_fraction", "method": "rk4", "step": 0.1, "max_steps": 30}
    end = lambda beta: pl.flow(pl.SelfAttention(beta), tokens, **settings)["energy_fraction"]  # noqa: E731
    slope = jax.grad(lambda beta: end(beta)[-1])(2.0)
    difference = (end(2.0 + 1e-4)[-1] - end(2.0 - 1e-4)[-1]) / 2e-4
    assert float(slope) == pytest.approx(float(difference), rel=1e-5)


@pytest.mark.parametrize("reason", ["mask", "perceptron", "space", "accumulate", "geodesic-euler"])
def test_what_native_code_does_not_know_goes_the_other_way(reason, monkeypatch):
    monkeypatch.setattr(Journey, "_natively", lambda *_: pytest.fail("native"))
    settings = {"mask": {"mask": "causal"}, "space": {"space": "euclidean"}}.get(reason, {})
    if reason == "perceptron":
        settings = {"perceptron": pl.model.parts.Perceptron(np.eye(3), np.eye(3), np.zeros(3))}
    more = {"accumulate": "energy"} if reason == "accumulate" else {}
    more |= {"method": reason, "step": 0.1} if reason.startswith("geodesic") else {}
    pl.flow(pl.SelfAttention(2.0, **settings), start(6, 3), times=[0.2], progress=False, **more)


def test_cluster_counts_of_many_states():
    from scipy.sparse.csgraph import connected_components

    from pathlines.kernels.native import native_cluster_counts

    rng = np.random.default_rng(0)
    for d, n, dtype in ((2, 50, np.float64), (3, 7, np.float32), (17, 40, np.float64), (3, 1, np.float64)):
        states = rng.normal(size=(6, n, d)).astype(dtype)
        for delta in (0.0, 0.01, 0.1, 3.0 * d):
            u = 0.5 * np.sum((states[:, :, None] - states[:, None]) ** 2, axis=-1)
            wanted = [connected_components(m <= delta)[0] for m in u]
            assert native_cluster_counts(states, delta).tolist() == wanted
