"""Schedules on the sphere: exchange file, inverse, canonical form, bounds, bad input."""

import json

import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.transport.schedule import schedule_from_json
from pathlines.transport.sphere.gate import Gate
from pathlines.transport.sphere.layer import layer
from pathlines.transport.sphere.schedule import SphereSchedule


def unit(rng, n, d):
    x = rng.standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.fixture
def mixed():
    rng = np.random.default_rng(0)
    V, B, W, U = rng.standard_normal((4, 4, 4)) / 2
    pieces = [
        layer(4, 0.7, V=np.eye(4)),
        Gate(unit(rng, 1, 4)[0], 0.3, unit(rng, 1, 4)[0], 1.1),
        layer(4, 0.4, V, B, W, U, rng.standard_normal(4)),
        layer(4, 0.5, W=W, U=U),
        layer(4, 0.8, V=np.outer(V[0], V[0])),
    ]
    return SphereSchedule(4, pieces)


def test_repr_round_trip(mixed):
    again = schedule_from_json(mixed.to_json())
    assert again.to_json() == mixed.to_json()
    for p, q in zip(mixed.pieces, again.pieces, strict=True):
        assert type(p) is type(q)
        assert all(np.array_equal(u, v) for u, v in zip(p, q, strict=True))


def test_inverse_retraces_attention_too(mixed):
    rng = np.random.default_rng(1)
    prompts = [(unit(rng, 5, 4), rng.dirichlet(np.ones(5))), unit(rng, 3, 4)]
    there = mixed.push(prompts)
    back = mixed.inverse().push([tuple(m) for m in there])
    for m, given in zip(back, (prompts[0][0], prompts[1]), strict=True):
        np.testing.assert_allclose(m.points, given, atol=1e-9)  # integrated layers at 1e-12, stretched on the way
    np.testing.assert_allclose(mixed.push(there, inverse=True)[0].points, prompts[0][0], atol=1e-9)


def test_canonical_form_is_the_same_map(mixed):
    x = unit(np.random.default_rng(2), 5, 4)
    same = mixed.canonical(2.0)
    np.testing.assert_allclose(same.push([x])[0].points, mixed.push([x])[0].points, atol=1e-9)
    assert np.allclose([p.duration for p in same.pieces], 0.4)
    assert np.isclose(np.linalg.norm(same.pieces[1].a), 1)


def test_lipschitz_bound_holds_between_near_probes(mixed):
    rng = np.random.default_rng(3)
    prompt, probes = unit(rng, 5, 4), unit(rng, 20, 4)
    near = probes + 1e-6 * rng.standard_normal(probes.shape)
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    one, two = (mixed.push_one(prompt, p).probes for p in (probes, near))
    stretch = np.linalg.norm(one - two, axis=1) / np.linalg.norm(probes - near, axis=1)
    assert np.abs(np.log(stretch)).max() <= mixed.log_lipschitz() + 1e-6


def test_prompts_move_apart_where_they_share_a_token():
    """The shared token feels another mean in each prompt: this is what one map of points cannot do."""
    shared, others = np.array([[1.0, 0, 0]]), np.eye(3)[1:]
    moved = SphereSchedule(3, [layer(3, 1.0, V=np.eye(3))]).push([np.vstack([shared, o[None]]) for o in others])
    assert np.linalg.norm(moved[0].points[0] - moved[1].points[0]) > 0.3


def test_compose_counts_and_switches(mixed):
    twice = mixed.compose(mixed)
    assert (twice.count, twice.switches) == (10, 9)
    half = SphereSchedule(3, [layer(3, 1.0, V=np.eye(3)), layer(3, 2.0, V=np.eye(3))])
    assert (half.count, half.switches, half.total_time) == (2, 0, 3.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"t": -1.0}, "`t` of piece 0 must be ≥ 0"),
        ({"V": [[1.0]]}, "`V` of piece 0"),
        ({"X": 1}, "has `X`"),
        ({"gate": {"a": [1, 0, 0], "tau": 0.0}}, "no `omega`"),
        ({"gate": {"a": [1, 0, 0], "tau": 0.0, "omega": [0, 0, 0]}}, "direction"),
        ({"gate": 3}, "gate of piece 0"),
    ],
)
def test_bad_pieces_are_named(change, words):
    record = {"t": 1.0, **change}
    document = {"kind": "transformer-sphere", "d": 3, "pieces": [record]}
    with pytest.raises(ArgumentError, match=words):
        schedule_from_json(json.dumps(document))


def test_bad_prompts_are_named(mixed):
    with pytest.raises(ArgumentError, match=r"measures\[1\].*row 0 has length 2"):
        mixed.push([np.eye(4), 2 * np.eye(4)])
    with pytest.raises(ArgumentError, match="d = 4"):
        mixed.push([np.eye(3)])
    with pytest.raises(ArgumentError, match="sum to 1"):
        mixed.push([(np.eye(4), np.ones(4))])
