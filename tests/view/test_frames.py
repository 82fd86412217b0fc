"""Frames say what the run says: places to the last bit that is stored, clusters and curves exactly."""

import base64
import json

import jax
import numpy as np
import pytest
from made import meeting, run_of

import pathlines as pl
from pathlines.foundation.errors import ArgumentError
from pathlines.view.clusters import labels_of_frames
from pathlines.view.frames import as_text, frames
from pathlines.view.pace import chosen_frames


def decoded(data):
    """Places, read as ``static/frames.js`` reads them."""
    stored = np.frombuffer(base64.b64decode(data["positions"]), {"int16": "<i2", "float32": "<f4"}[data["dtype"]])
    places = stored.reshape(len(data["times"]), data["n"], data["components"]).astype(float)
    return places if data["dtype"] == "float32" else np.array(data["offset"]) + np.array(data["scale"]) * places


def labels(data):
    return np.frombuffer(base64.b64decode(data["clusters"]), "<u2").reshape(len(data["times"]), data["n"])


@pytest.mark.parametrize("d", [2, 3])
def test_places_are_within_half_a_step_of_the_grid(d):
    rng = np.random.default_rng(d)
    tokens = rng.normal(size=(5, 40, d)) * [3.0, 0.2, 7.0][:d]
    data = frames(run_of(tokens))
    assert data["space"] == {2: "plane", 3: "space"}[d]
    step = np.ptp(tokens, axis=(0, 1)) / 65534
    np.testing.assert_allclose(data["scale"], step, rtol=1e-12)
    assert (np.abs(decoded(data) - tokens) <= 0.5 * step * (1 + 1e-9)).all()
    assert np.abs(decoded(data) - tokens).max() > 0.4 * step.min()


def test_unit_tokens_are_on_one_grid_whatever_they_do():
    data = frames(run_of(meeting()))
    assert data["space"] == "sphere"
    assert data["scale"] == [2 / 65534] * 3
    assert np.abs(decoded(data) - meeting()).max() <= 1 / 65534 * (1 + 1e-9)


def test_a_cloud_that_blows_up_keeps_the_shape_of_its_first_frame():
    tokens = np.random.default_rng(0).normal(size=(1, 30, 2)) * np.exp(np.linspace(0, 12, 50))[:, None, None]
    data = frames(run_of(tokens))
    assert data["dtype"] == "float32"
    np.testing.assert_allclose(decoded(data), tokens, rtol=1e-7)


def test_more_dimensions_than_three_are_shown_along_those_that_matter():
    rng = np.random.default_rng(0)
    turn, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    flat = rng.normal(size=(4, 20, 3)) * [5, 2, 1]
    data = frames(run_of(flat @ turn[:3]))
    assert data["space"] == "space"
    assert "three principal directions of 6" in data["subtitle"]
    shown = decoded(data)
    np.testing.assert_allclose(shown @ shown.transpose(0, 2, 1), flat @ flat.transpose(0, 2, 1), atol=0.02)


@pytest.mark.parametrize("d", [2, 3, 4])
def test_clusters_of_all_frames_vs_the_observable_frame_by_frame(d):
    rng = np.random.default_rng(d)
    points = rng.normal(size=(9, 30, d)) * np.geomspace(1, 0.01, 9)[:, None, None]
    alone = []
    for frame in points:
        near = 0.5 * np.sum((frame[:, None] - frame[None]) ** 2, axis=-1) <= 1e-3
        for _ in range(len(frame)):
            near = near @ near
        alone.append([int(np.flatnonzero(row)[0]) for row in near])
    np.testing.assert_array_equal(labels_of_frames(points, 1e-3), alone)
    assert len({len(set(row)) for row in alone}) > 2


def test_clusters_and_curves_are_those_of_the_run():
    run = pl.flow(
        pl.SelfAttention(beta=4.0), pl.Sphere(2).uniform(jax.random.key(0), n=16), until=6.0,
        record=["tokens", "energy", "cluster_count"],
    )  # fmt: skip
    data = frames(run, count=40)
    at = [int(np.argmin(np.abs(run.time - t))) for t in data["times"]]
    np.testing.assert_array_equal(data["times"], run.time[at])
    count = [len(np.unique(row)) for row in labels(data)]
    np.testing.assert_array_equal(count, run["cluster_count"].values[at])
    energy, clusters = data["curves"]
    np.testing.assert_allclose(energy["values"], run["energy"].values, rtol=1e-7)
    np.testing.assert_array_equal(clusters["values"], run["cluster_count"].values)
    assert energy["theory"]["label"] == "one cluster"
    np.testing.assert_allclose(energy["theory"]["values"], np.exp(4.0) / 8, rtol=1e-7)
    assert data["space"] == "circle"
    assert data["alt"].startswith("16 tokens on the circle S¹ from t = 0 to 6.")


def test_theory_stands_beside_equiangular_tokens_and_only_there():
    model, n = pl.SelfAttention(beta=2.0), 3
    start = pl.Sphere(3).simplex(n)
    run = pl.flow(model, start, until=4.0, record=["tokens", "mean_overlap"])
    (curve,) = frames(run)["curves"]
    assert curve["theory"]["label"] == "theory"
    np.testing.assert_allclose(curve["theory"]["values"], curve["values"], atol=1e-5)
    other = pl.flow(model, pl.Sphere(3).uniform(jax.random.key(0), n=n), until=1.0, record=["tokens", "mean_overlap"])
    assert frames(other)["curves"][0]["theory"]["label"] == "in the end"


def test_a_given_reduction_is_drawn_over_what_it_predicts():
    class Half:
        observable, label = "mean_overlap", "half"

        def curve(self, data):
            return 0.5 * np.asarray(data["mean_overlap"])

    run = run_of(meeting(), mean_overlap=np.linspace(0, 1, 41), energy=np.ones(41))
    overlap, energy = frames(run, theory=Half())["curves"]
    np.testing.assert_allclose(overlap["theory"]["values"], np.linspace(0, 0.5, 41), rtol=1e-7)
    assert "theory" not in energy


def test_frames_spread_over_what_moves():
    times = np.linspace(0, 100, 2001)
    place = np.clip((times - 50) / 2, 0, 1)[:, None, None] * np.ones((1, 4, 2))
    kept = chosen_frames(times, place, 100, "motion")
    assert 95 <= len(kept) <= 100
    assert kept[0] == 0 and kept[-1] == 2000
    moving = (times[kept] >= 50) & (times[kept] <= 52)
    assert 0.3 <= moving.mean() <= 0.8  # 2 % of the time, and three quarters of the frames where records allow
    even = chosen_frames(times, place, 100, "time")
    np.testing.assert_allclose(np.diff(times[even]), 100 / 99, atol=0.06)
    ratio = np.diff(np.log(times[chosen_frames(times, place, 30, "log")][5:]))
    assert ratio.max() < 3 * ratio.min()


def test_few_records_are_all_frames():
    np.testing.assert_array_equal(chosen_frames(np.arange(7.0), np.zeros((7, 2, 2)), 240), np.arange(7))


def test_a_run_that_diverged_shows_what_it_has_and_says_why():
    tokens = np.random.default_rng(0).normal(size=(10, 5, 3))
    tokens[7:] = np.nan
    run = run_of(tokens, outcome="stopped at t = 3: not finite", size=np.arange(10.0))
    data = frames(run)
    assert data["times"] == run.time[:7].tolist()
    assert data["outcome"] == "stopped at t = 3: not finite"
    assert len(data["curves"][0]["values"]) == 7


def test_ensembles_show_one_run_and_the_mean_of_all():
    run = pl.flow(
        pl.SelfAttention(beta=1.0), pl.Sphere(3).uniform(jax.random.key(0), n=4), until=1.0, record=["tokens"]
    )
    several = run.data.expand_dims(run=3).assign(level=(("run", "time"), np.arange(303.0).reshape(3, 101)))
    data = frames(pl.Run(several, (), (), "completed", run.setting, 0.0), path=2)
    (curve,) = data["curves"]
    np.testing.assert_allclose(curve["values"], 101 + np.arange(101.0))
    assert curve["lower"][0] < curve["values"][0] < curve["upper"][0]


def test_gaussian_clouds_are_ellipses():
    model = pl.gaussian_closure("softmax", np.eye(2), np.eye(2), np.eye(2))
    start = np.random.default_rng(0).normal(size=(6, 2))
    run = pl.flow(model, start, until=0.5, record=["cloud_mean", "covariance"])
    data = frames(run)
    assert data["space"] == "ellipses"
    assert "clusters" not in data
    sigma = run["covariance"].values
    np.testing.assert_allclose(decoded(data)[:, 0, 2:], sigma[:, [0, 0, 1], [0, 1, 1]], atol=2e-5 * np.ptp(sigma))


def test_the_same_run_is_the_same_text():
    assert as_text(frames(run_of(meeting()))) == as_text(frames(run_of(meeting())))


def test_text_of_frames_has_no_markup_and_no_number_that_json_lacks():
    run = run_of(meeting(), level=np.where(np.arange(41) == 3, np.nan, 1.0))
    text = as_text(frames(run, title="</script><b>&"))
    assert not set(text) & set("<>&")
    assert json.loads(text)["title"] == "</script><b>&"
    assert json.loads(text)["curves"][0]["values"][3] is None


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"count": 0}, "`count` must be an integer ≥ 1"),
        ({"clock": "sun"}, "`clock` must be one of motion, time, log"),
        ({"delta": -1.0}, "`delta` must be"),
        ({"observables": ["nothing"]}, "no record `nothing`"),
        ({"observables": ["tokens"]}, "not one number at a time"),
        ({"masses": [1.0]}, "must be 24 numbers ≥ 0"),
        ({"overlays": [{"kind": "house"}]}, "polytope, hyperplane, centre, points"),
    ],
)
def test_bad_arguments_are_named(how, said):
    with pytest.raises(ArgumentError, match=said.replace("(", r"\(")):
        frames(run_of(meeting()), **how)


def test_a_run_without_tokens_says_what_to_record():
    run = pl.flow(
        pl.SelfAttention(beta=1.0), pl.Sphere(3).uniform(jax.random.key(0), n=4), until=1.0, record=["energy"]
    )
    with pytest.raises(ArgumentError, match=r'record=\["tokens"\]'):
        frames(run)


def test_bands_are_plain_standard_errors_of_what_is_known():
    from pathlines.view.observed import mean_and_spread

    rows = np.array([[1.0, 2.0, np.nan], [3.0, np.nan, np.nan], [2.0, 4.0, np.nan], [2.0, 6.0, 1.0]])
    mean, error = mean_and_spread(rows)
    np.testing.assert_allclose(mean, [2.0, 4.0, 1.0])
    np.testing.assert_allclose(error[:2], [np.std(rows[:, 0], ddof=1) / 2, 2 / np.sqrt(3)])
    assert np.isnan(error[2]) and mean_and_spread(rows[:2])[1] is None
