"""The verifier against the exact flows of the constructions, which it shares no code with; what it refuses."""

import json

import numpy as np
import pytest

import pathlines as pl
from pathlines.foundation.errors import ArgumentError
from pathlines.transport.sphere.layer import layer


def unit(rng, n, d):
    x = rng.standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    shared = unit(rng, 2, 4)
    inputs = [np.vstack([shared, unit(rng, 2, 4)]) for _ in range(2)]
    targets = [np.vstack([shared[::-1], unit(rng, 2, 4)]) for _ in range(2)]
    return inputs, targets, pl.MeasureInterpolator().fit(inputs, targets)


def test_a_fitted_schedule_is_confirmed(problem, tmp_path):
    inputs, targets, fitted = problem
    found = pl.verify_schedule(fitted.schedule_.save(tmp_path / "s.json"), inputs, targets)
    assert max(found.w2) < 1e-9
    assert found.pieces == fitted.schedule_.count
    assert found.round_trip < 1e-8
    assert found.off_sphere < 1e-8
    for end, exact in zip(found.ends, fitted.transform(inputs), strict=True):
        np.testing.assert_allclose(end, exact.points, atol=1e-9)


def test_a_wrong_weight_is_noticed(problem):
    inputs, targets, fitted = problem
    records = fitted.schedule_.records()
    records[1]["t"] *= 1.01
    document = {"kind": "transformer-sphere", "d": 4, "pieces": records}
    assert max(pl.verify_schedule(document, inputs, targets).w2) > 1e-4


def test_general_layers_with_weights_vs_the_exact_schedule():
    rng = np.random.default_rng(1)
    V, B, W, U = rng.standard_normal((4, 3, 3))
    schedule = pl.transport.sphere.SphereSchedule(3, [layer(3, 0.6, V, B, W, U, rng.standard_normal(3))])
    prompt = (unit(rng, 5, 3), rng.dirichlet(np.ones(5)))
    end = pl.verify_schedule(schedule, [prompt]).ends[0]
    np.testing.assert_allclose(end, schedule.push([prompt])[0].points, atol=1e-9)


def test_error_of_the_integration_is_known_where_layers_amplify_it():
    # this draw has W₂ = 6e-14 by the closed forms of its pieces, and 1.2e-8 integrated at 1e-12
    rng = np.random.default_rng([9, 0, 6, 3])
    sides = [[np.vstack([common, unit(rng, 1, 3)]) for _ in range(3)] for common in (unit(rng, 3, 3), unit(rng, 3, 3))]
    fitted = pl.MeasureInterpolator(seed=6).fit(*sides)
    found = pl.verify_schedule(fitted.schedule_, *sides, rtol=1e-12)
    assert max(fitted.report_["w2"]) < 1e-12
    assert max(found.w2) > 1e-9
    assert all(w2 < error for w2, error in zip(found.w2, found.w2_error, strict=True))


def test_both_kinds_are_read():
    rng = np.random.default_rng(2)
    w, a = rng.standard_normal((2, 6, 2))
    flow = pl.EuclideanSchedule(w, a, rng.standard_normal(6), np.full(6, 0.3))
    x = rng.standard_normal((50, 2))
    found = pl.verify_schedule(flow, x, flow.forward(x)[0])
    assert found.w2[0] < 1e-12
    assert found.spot_error < 1e-8
    assert found.round_trip < 1e-10


GOOD = {
    "kind": "transformer-sphere",
    "d": 3,
    "pieces": [{"t": 1.0, "gate": {"a": [1, 0, 0], "tau": 0, "omega": [0, 1, 0]}}],
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "magic"}, "relu-euclid or transformer-sphere"),
        ({"d": 0}, "integer ≥ 1"),
        ({"pieces": [{"gate": GOOD["pieces"][0]["gate"]}]}, "no `t`"),
        ({"pieces": [{"t": 1.0, "gate": {"a": [1, 0, 0], "tau": 0}}]}, "no `omega`"),
        ({"pieces": [{"t": 1.0, "V": [[1, 2], [3]]}]}, "3 × 3 finite numbers"),
        ({"pieces": [{"t": float("inf")}]}, "finite number"),
        ({"pieces": [{"t": 1.0, "Q": 1}]}, "unknown field `Q`"),
        ({"pieces": [{"t": 1.0}] * (10**6 + 1)}, "at most 1000000"),
    ],
)
def test_broken_schedules_are_refused_in_one_line(change, words):
    with pytest.raises(ArgumentError, match=words) as caught:
        pl.verify_schedule({**GOOD, **change}, [np.eye(3)])
    assert "\n" not in str(caught.value)


def test_files_without_finite_json_are_refused(tmp_path):
    (tmp_path / "bad.json").write_text(json.dumps(GOOD)[:-5] + "NaN")
    with pytest.raises(ArgumentError, match="JSON"):
        pl.verify_schedule(tmp_path / "bad.json", [np.eye(3)])
