"""ReLU pieces against reference values, an ODE solver, finite differences and each other."""

import json

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from pathlines.foundation.errors import ArgumentError
from pathlines.transport.euclid.schedule import EuclideanSchedule
from pathlines.transport.schedule import read_schedule, schedule_from_json

THREE = EuclideanSchedule(
    [[1, -0.5], [0, 1.5], [-0.6, -0.6]], [[0.8, 0.6], [1, 0], [0.6, 0.6]], [-0.1, 0.2, 0.3], [0.7, 0.4, 0.5]
)
"""The schedule of the reference values RV1 (its first piece) and RV2."""


def drawn(seed, pieces, d):
    rng = np.random.default_rng(seed)
    scale = 1 / np.sqrt(d * pieces)
    return EuclideanSchedule(
        rng.normal(size=(pieces, d)) * scale, rng.normal(size=(pieces, d)), rng.normal(size=pieces), rng.random(pieces)
    )


@pytest.mark.parametrize("fused", [True, False])
def test_reference_values(fused):
    one = EuclideanSchedule(THREE.w[:1], THREE.a[:1], THREE.b[:1], THREE.t[:1])
    moved, logs = one.forward([[0.5, 0.4], [-0.5, -0.4]], fused=fused)
    np.testing.assert_allclose(moved[0], [0.952592952481, 0.173703523760], atol=5e-13)
    np.testing.assert_array_equal(moved[1], [-0.5, -0.4])
    np.testing.assert_allclose(logs, [0.35, 0.0], atol=1e-15)
    moved, logs = THREE.forward([[0.5, 0.4], [-1, 0.3], [0.1, -2]], fused=fused)
    np.testing.assert_allclose(moved, [[0.602222148902, 0.514888491669], [-1, 0.3], [0.1, -1.82]], atol=5e-13)
    np.testing.assert_allclose(logs, [-0.01, 0, 0], atol=1e-15)
    back, _ = THREE.backward([[0.3, -0.2]], fused=fused)
    np.testing.assert_allclose(back, [[0.429998824368, -0.448000470253]], atol=5e-13)
    np.testing.assert_allclose(THREE.log_prob([[0.3, -0.2]]), [-1.670678771562], atol=5e-13)


def test_closed_form_vs_solver():
    one = drawn(1, 1, 3)
    start = np.random.default_rng(2).normal(size=(5, 3))
    w, a, b, t = one.w[0], one.a[0], one.b[0], one.t[0]
    for x, y in zip(start, one.forward(start)[0]):
        run = solve_ivp(lambda _, z: w * max(a @ z + b, 0), (0, t), x, rtol=1e-12, atol=1e-13, method="DOP853")
        np.testing.assert_allclose(run.y[:, -1], y, atol=1e-10)  # the solver's tolerance with room for accumulation


def test_log_determinant_vs_finite_differences():
    flow, x, step = drawn(3, 20, 3), np.array([0.3, -0.2, 0.5]), 1e-6
    corners = np.concatenate([x + step * np.eye(3), x - step * np.eye(3)])
    moved = flow.forward(corners)[0]
    jacobian = (moved[:3] - moved[3:]) / (2 * step)
    np.testing.assert_allclose(np.linalg.slogdet(jacobian)[1], flow.forward(x[None])[1][0], atol=1e-8)


@pytest.mark.parametrize("kind", ["any", "dilations", "shears", "oblique", "line"])
def test_fused_vs_one_by_one(kind):
    rng, pieces = np.random.default_rng(4), 300
    d = 1 if kind == "line" else 3
    free = drawn(5, pieces, d)
    v, u = np.linalg.qr(rng.normal(size=(d, d)))[0][:2] if d > 1 else (np.ones(1), np.ones(1))
    u = {"dilations": v, "oblique": (u + v) / np.sqrt(2)}.get(kind, u)
    along = rng.normal(size=(pieces, 1)) * rng.choice([0, 1, 1, 1], size=(pieces, 1))
    w = rng.normal(size=(pieces, 1)) / np.sqrt(pieces) * u
    flow = free if kind == "any" else EuclideanSchedule(w, along * v, free.b, free.t)
    assert flow.runs == 1 or kind == "any"
    x = rng.normal(size=(500, d)) * 2
    fast, slow = flow.forward(x), flow.forward(x, fused=False)
    for one, other in zip(fast, slow):
        np.testing.assert_allclose(one, other, atol=1e-9)
    np.testing.assert_allclose(flow.backward(fast[0])[0], x, atol=1e-9)
    np.testing.assert_allclose(flow.backward(fast[0])[1], -fast[1], atol=1e-9)
    np.testing.assert_allclose(flow.inverse().forward(fast[0])[0], x, atol=1e-9)


def test_algebra_of_schedules():
    flow, x = drawn(6, 12, 2), np.random.default_rng(7).normal(size=(50, 2))
    both = flow.compose(flow.inverse())
    np.testing.assert_allclose(both.forward(x)[0], x, atol=1e-12)
    canonical = flow.canonical(2.0)
    np.testing.assert_allclose(canonical.forward(x)[0], flow.forward(x)[0], atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(canonical.a, axis=1), 1)
    np.testing.assert_allclose(canonical.t, 2 / 12)
    assert both.count == 24 and flow.switches == 11
    doubled = EuclideanSchedule(*(np.repeat(getattr(flow, n), 2, axis=0) for n in "wabt"))
    assert doubled.count == 24 and doubled.switches == 11
    moved = flow.forward(x)[0]
    ratio = np.linalg.norm(moved[1:] - moved[:-1], axis=1) / np.linalg.norm(x[1:] - x[:-1], axis=1)
    assert np.abs(np.log(ratio)).max() <= flow.log_lipschitz()
    with pytest.raises(ValueError):
        flow.w[0] = 0


def test_exchange_file_is_read_back_bit_for_bit(tmp_path):
    flow = drawn(8, 30, 3)
    assert schedule_from_json(flow.to_json()) == flow == read_schedule(flow.save(tmp_path / "flow.json"))
    assert json.loads(flow.to_json())["pieces"][3]["b"] == flow.b[3]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "relu"}, "`kind` of a schedule must be relu-euclid or transformer-sphere"),
        ({"d": 0}, "`d` of a schedule must be an integer"),
        ({"pieces": 3}, "`pieces` of a schedule must be a list"),
        ({"pieces": [{"w": [1, 2], "a": [1, 0], "b": 1}]}, "Piece 0 of the schedule has no `t`"),
        ({"pieces": [{"w": [1], "a": [1, 0], "b": 1, "t": 1}]}, "`w` of piece 0 must be finite numbers of shape (2,)"),
        ({"pieces": [{"w": [1, "x"], "a": [1, 0], "b": 1, "t": 1}]}, "`w` of piece 0"),
        ({"pieces": [{"w": [1, 2], "a": [1, 0], "b": 1, "t": -1}]}, "`t` must be at least 0"),
        ({"pieces": [{"w": [900, 2], "a": [1, 0], "b": 1, "t": 1}]}, "Piece 0 dilates by e^900"),
    ],
)
def test_bad_files_get_one_line(change, words):
    good = {"kind": "relu-euclid", "d": 2, "pieces": []}
    with pytest.raises(ArgumentError) as caught:
        schedule_from_json(json.dumps(good | change))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ['{"kind": "relu-euclid", "d": 2', '{"d": NaN}', '{"d": 1e999}', "[]", "{}"])
def test_what_is_no_schedule_gets_one_line(text):
    with pytest.raises(ArgumentError):
        schedule_from_json(text)


def test_ten_million_pieces_are_refused(monkeypatch):
    from pathlines.transport import schedule

    monkeypatch.setattr(schedule, "MOST_PIECES", 3)
    with pytest.raises(ArgumentError, match="at most 3 pieces"):
        drawn(9, 4, 2)
