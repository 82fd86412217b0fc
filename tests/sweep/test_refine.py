"""Refinement spends its runs where the answer changes, and asks the same points again when it is resumed."""

import numpy as np
import pytest

import pathlines as pl
from pathlines.foundation.errors import ArgumentError
from pathlines.limit.homogenized.collapse import collapse_map
from pathlines.sweep.half_collapse import half_collapse_times

pytest.importorskip("adaptive")
pytestmark = pytest.mark.filterwarnings("ignore")


def step(x: float, sharp: float = 60.0) -> float:
    return float(np.tanh(sharp * (x - 0.3)))


def inside(x: float, y: float, seed: int = 0) -> dict:
    return {"circle": float(np.hypot(x - 0.5, y - 0.5) < 0.3)}


def test_a_step_is_found_with_a_quarter_of_the_runs(tmp_path):
    data = pl.study(step, {"x": "0:1:2"}).refine(24, store=tmp_path)
    x, fine = np.sort(data.x.values), np.linspace(0, 1, 2001)
    mistake = lambda at: np.abs(np.interp(fine, at, [step(a) for a in at]) - [step(a) for a in fine]).max()  # noqa: E731
    assert len(x) == 24 and ((x > 0.2) & (x < 0.4)).sum() >= 10  # twice the share of even points
    assert mistake(x) < 0.1 < mistake(np.linspace(0, 1, 24)) and mistake(x) < mistake(np.linspace(0, 1, 90))


def test_a_boundary_in_the_plane_draws_the_runs(tmp_path):
    data = pl.study(inside, {"x": "0:1:2", "y": "0:1:2"}, repeat=2).refine(160, "circle", store=tmp_path)
    away = np.abs(np.hypot(data.x - 0.5, data.y - 0.5) - 0.3)
    assert data.sizes == {"point": 80, "repeat": 2}
    assert float((away < 0.08).mean()) > 0.4  # even points: .30


def test_a_refinement_is_resumed(tmp_path):
    made, seen = pl.study(step, {"x": "0:1:2"}), []
    first = made.refine(12, store=tmp_path, watch=seen.append)
    assert seen[-1].computed == 12
    again = made.refine(20, store=tmp_path, watch=seen.append)
    assert seen[-1].computed == 8 and set(first.x.values) <= set(again.x.values)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pl.study(step, x=0.5).refine(9), "has none"),
        (lambda: pl.study(step, {"x": [0.5]}).refine(9), "two ends each"),
        (lambda: pl.study(step, {"x": "0:1:2"}).refine(2), "`runs`"),
        (lambda: pl.study(inside, {"x": "0:1:2", "y": "0:1:2"}, repeat=3).refine(10), "four points of 3 repetitions"),
        (lambda: pl.study(step, {"x": "0:1:2"}).refine(9, "z"), "must be one of step, but is 'z'"),
    ],
)
def test_what_is_refused(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()


def test_the_collapse_map_is_a_study():
    ns, bs = np.array([8, 16, 64]), [0.0, 2.0, np.inf]
    found = half_collapse_times(ns, bs)
    np.testing.assert_allclose(found, collapse_map(ns, bs), rtol=1e-12)
    np.testing.assert_array_equal(half_collapse_times(ns[:2], bs[1:]), found[:2, 1:])
