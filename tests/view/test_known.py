"""What is drawn dashed: exact laws lie on the run, limits where they should, nothing where nothing is known."""

import jax
import numpy as np
import pytest

import pathlines as pl
from pathlines.view.frames import frames
from pathlines.view.known import known_line, said_of

jax.config.update("jax_enable_x64", True)
TIMES = np.linspace(0.0, 3.0, 13)
RECORD = ["tokens", "energy_fraction", "cluster_count", "mean_overlap"]


def flowed(model, start, times=TIMES, record=RECORD):
    return pl.flow(model, start, times=times, record=record, rtol=1e-10)


def groups():
    """Three tokens at one place, two at another."""
    a, b = np.array([1.0, 0, 0]), np.array([-0.6, 0.8, 0])
    return np.stack([a, b, a, b, a])


@pytest.mark.parametrize("value", [1.0, 0.5])
@pytest.mark.parametrize("start", ["groups", "pair"])
def test_exact_laws_lie_on_the_run(start, value):
    tokens = groups() if start == "groups" else groups()[:2]
    model = pl.MODELS["sa"].build(beta=3.0, value=value, d=3)
    run = flowed(model, tokens)
    for name in ("mean_overlap", "energy_fraction"):
        found = known_line(run, name)
        assert found.label == "theory"
        np.testing.assert_allclose(found.values, run[name], atol=1e-7)


@pytest.mark.parametrize("kind", ["softmax", "l2", "linear", "affine", "sinkhorn"])
def test_clouds_follow_their_moment_equations(kind):
    record = ["covariance", "cloud_mean", "covariance_trace", "anisotropy"]
    start = np.random.default_rng(0).normal(size=(20, 2)) * [1.0, 0.5]
    run = flowed(pl.MODELS[f"gaussian-{kind}"].build(d=2), start, np.linspace(0, 1, 5), record)
    for name in record[2:]:
        found = known_line(run, name)
        assert found.label == "moment equations"
        np.testing.assert_allclose(found.values, run[name], rtol=1e-6)


def test_repelled_tokens_spread_as_the_linear_law_says_and_never_meet():
    start = pl.Sphere(3).uniform(jax.random.key(0), n=60)
    run = flowed(pl.MODELS["sa"].build(beta=1.0, value=-1.0, d=3), start, np.linspace(0, 8, 9))
    found = known_line(run, "energy_fraction")
    assert found.label == "linear decay"
    assert found.values[-1] == pytest.approx(float(run["energy_fraction"][-1]), rel=1e-3)
    assert known_line(run, "cluster_count") is None
    assert frames(run)["theory"] == "Dashed: theory. No limit is known here for clusters."


def test_uniform_tokens_grow_linearly_and_end_in_one_cluster():
    start = pl.Sphere(3).uniform(jax.random.key(1), n=100)
    run = flowed(pl.SelfAttention(beta=2.0), start)
    growing = known_line(run, "mean_overlap")
    assert growing.label == "linear growth" and np.isfinite(growing.values[:3]).all()
    assert growing.values[1] == pytest.approx(float(run["mean_overlap"][1]), abs=0.004)
    assert (known_line(run, "cluster_count").values == 1).all()
    circle = flowed(pl.SelfAttention(beta=9.0), pl.Sphere(2).uniform(jax.random.key(1), n=100), np.linspace(0, 9, 5))
    assert known_line(circle, "cluster_count").label.endswith("form")


@pytest.mark.parametrize("change", [{"mask": "causal"}, {"query": [[2.0, 0, 0], [0, 1, 0], [0, 0, 1]]}])
def test_nothing_is_dashed_where_nothing_is_known(change):
    run = flowed(pl.MODELS["sa"].build(beta=2.0, d=3, **change), groups())
    assert all(known_line(run, name) is None for name in RECORD[1:])
    assert frames(run)["theory"] == "No limit is known for this model and start, so no line is dashed."


def test_the_sentence_names_what_has_no_theory():
    curves = [{"label": "a"}, {"label": "b"}, {"label": "c", "theory": {}}]
    assert said_of(curves) == "Dashed: theory. No limit is known here for a and b."
    assert said_of(curves[2:]) == said_of([]) == ""
