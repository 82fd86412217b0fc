"""N prompts to N targets: shared tokens, Diracs, groups; what is refused, and in which words."""

import numpy as np
import pytest

import pathlines as pl
from pathlines.foundation.errors import ArgumentError
from pathlines.transport.sphere.grouping import grouping, residual
from pathlines.transport.sphere.match import NoWayError, match
from pathlines.transport.sphere.measure import Measure
from pathlines.transport.sphere.steer import corridor, one_gate


def unit(rng, n, d):
    x = rng.standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def sharing(rng, d, prompts, n, shared):
    common = unit(rng, shared, d)
    return [np.vstack([common, unit(rng, n - shared, d)]) for _ in range(prompts)]


@pytest.mark.parametrize("d", [3, 4, 8])
def test_prompts_that_share_tokens_arrive_and_return(d):
    rng = np.random.default_rng(d)
    inputs, targets = sharing(rng, d, 3, 4, 3), sharing(rng, d, 3, 4, 3)
    fitted = pl.MeasureInterpolator().fit(inputs, targets)
    assert max(fitted.report_["w2"]) < 1e-9
    ends = fitted.transform(inputs)
    for end, target in zip(ends, targets, strict=True):  # every atom of the target is reached
        gaps = np.linalg.norm(end.points[:, None] - target[None], axis=2)
        assert gaps.min(axis=0).max() < 1e-9
        assert gaps.min(axis=1).max() < 1e-9
    for back, start in zip(fitted.inverse_transform(ends), inputs, strict=True):
        np.testing.assert_allclose(back.points, start, atol=1e-9)
    assert fitted.timeline_[0].separation == 0
    assert fitted.timeline_[-1].pieces == fitted.schedule_.count == fitted.report_["pieces"]


def test_paper_method_takes_five_pieces_a_point():
    rng = np.random.default_rng(1)
    x, y = unit(rng, 6, 4), unit(rng, 6, 4)
    fitted = pl.MeasureInterpolator("paper").fit([x], [y])
    assert fitted.report_["w2"][0] < 1e-9
    assert fitted.report_["pieces"] == 30


def test_one_gate_moves_one_point_only():
    rng = np.random.default_rng(2)
    x, y, parked = unit(rng, 1, 8)[0], unit(rng, 1, 8)[0], unit(rng, 20, 8)
    piece = one_gate(x, y, parked)
    assert piece is not None
    assert (piece.opening(parked) == 0).all()
    schedule = pl.transport.sphere.SphereSchedule(8, [piece])
    np.testing.assert_allclose(schedule.push([x[None]])[0].points[0], y, atol=1e-12)


def test_corridor_is_refused_where_a_point_lies_on_it():
    x, y = np.eye(3)[0], np.eye(3)[1]
    on_the_way = (x + y)[None] / np.sqrt(2)
    assert corridor(x, y, on_the_way, np.random.default_rng(0)) is None
    assert one_gate(x, y, on_the_way) is None


def test_cycles_of_places_are_resolved():
    """Every target is taken by another point: someone must make room first."""
    places = unit(np.random.default_rng(3), 3, 3)
    found = match(places, places[[1, 2, 0]], np.random.default_rng(0))
    np.testing.assert_allclose(found.points, places[[1, 2, 0]], atol=1e-12)
    with pytest.raises(NoWayError):
        match(places, places[[1, 2, 0]], np.random.default_rng(0), waypoints=False)


def test_clouds_to_diracs_within_the_error():
    rng = np.random.default_rng(4)
    clouds = [c + 0.4 * rng.standard_normal((30, 3)) for c in unit(rng, 3, 3)]
    clouds = [c / np.linalg.norm(c, axis=1, keepdims=True) for c in clouds]
    fitted = pl.MeasureInterpolator(error=1e-4).fit(clouds, list(unit(rng, 3, 3)[:, None]))
    assert max(fitted.report_["w2"]) < 1e-4
    assert fitted.report_["pieces"] == 4  # one layer and a gate for each cluster


def test_groups_of_atoms_within_the_error():
    rng = np.random.default_rng(5)
    fitted = pl.MeasureInterpolator(error=1e-5).fit(sharing(rng, 4, 3, 6, 2), sharing(rng, 4, 3, 3, 1))
    assert max(fitted.report_["w2"]) < 1e-5


def test_best_groups_leave_the_least():
    """Five equal atoms to three: of the three ways to round, the one with the least W₂, found here by hand."""
    rng = np.random.default_rng(6)
    prompt, target = Measure(unit(rng, 5, 3), np.full(5, 0.2)), Measure(unit(rng, 3, 3), np.full(3, 1 / 3))
    by_hand = [residual(target.points, (np.ones(3) * 2 - np.eye(3)[k]) / 5, target.weights) for k in range(3)]
    assert np.isclose(grouping(prompt, target).residual, min(by_hand))


A, B = unit(np.random.default_rng(7), 3, 3), unit(np.random.default_rng(8), 3, 3)


@pytest.mark.parametrize(
    ("inputs", "targets", "words"),
    [
        ([np.eye(2)], [np.eye(2)], "d ≥ 3: on the circle"),
        ([A, B, A[::-1]], [B, A, A], "`inputs` 0 and 2 are equal"),
        ([np.vstack([A, B[:2]])], [B], "best groups leave W₂ = "),
        ([A], [A, B], "as many as inputs"),
        ([A], [np.eye(4)[:3]], "dimension 3"),
        ([np.full((2, 3), np.nan)], [A], "must be finite"),
        ([A], [2 * A], r"targets\[0\].*unit vectors"),
        ([], [], "at least one"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(inputs, targets, words):
    fresh = pl.MeasureInterpolator()
    with pytest.raises(ArgumentError, match=words) as caught:
        fresh.fit(inputs, targets)
    assert "\n" not in str(caught.value)
    assert not hasattr(fresh, "schedule_")


def test_options_are_checked_and_budgets_kept():
    for wrong in ({"method": "magic"}, {"error": 0.0}, {"pieces": 0}, {"seed": -1}, {"grouping": "none"}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            pl.MeasureInterpolator(**wrong)
    with pytest.raises(ArgumentError, match="at least 3"):
        pl.MeasureInterpolator(pieces=1).fit([A], [B])
    with pytest.raises(ArgumentError, match="not fitted"):
        pl.MeasureInterpolator().transform([A])


def test_a_gate_stays_open_along_the_whole_way():
    """Nine points of the arc were open by 1e-3 here and the gate all but closed between two of them: a duration of
    2e4, and rounding grew to 6e-9."""
    rng = np.random.default_rng([9, 1011, 1, 3])
    sides = [[np.vstack([c, unit(rng, 1, 3)]) for _ in range(3)] for c in (unit(rng, 3, 3), unit(rng, 3, 3))]
    report = pl.MeasureInterpolator(seed=1).fit(*sides).report_
    assert report["longest_duration"] < 1000
    assert max(report["w2"]) < 1e-11
