"""Building blocks B5 to B7 and the slices of A9: what they promise, and in which words they refuse."""

import warnings
from itertools import combinations

import numpy as np
import pytest

import pathlines as pl
from pathlines.foundation.errors import ArgumentError, PathlinesWarning
from pathlines.transport.sphere.collinear import ENOUGH, break_collinear, line_angle
from pathlines.transport.sphere.isolate import isolate, principal_axes, rounding_drift
from pathlines.transport.sphere.measure import Measure, measures
from pathlines.transport.sphere.orthant import emptiest, to_orthant
from pathlines.transport.sphere.schedule import SphereSchedule
from pathlines.transport.sphere.slices import sliced


def unit(rng, n, d):
    x = rng.standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def ring(angle, n):
    turn = 2 * np.pi * np.arange(n) / n
    return np.column_stack([np.full(n, np.cos(angle)), np.sin(angle) * np.cos(turn), np.sin(angle) * np.sin(turn)])


@pytest.mark.parametrize("d", [3, 5, 12])
def test_two_pieces_bring_all_tokens_into_the_open_orthant(d):
    prompts = measures("prompts", [unit(np.random.default_rng(k), 10, d) for k in range(3)])
    diagonal = np.ones(d) / np.sqrt(d)
    for hole in (None, diagonal, -diagonal):
        pieces = to_orthant(prompts, hole)
        ends = pl.verify_schedule(SphereSchedule(d, pieces), [tuple(p) for p in prompts]).ends
        assert len(pieces) == 2
        assert min(x.min() for x in ends) > 0


def test_the_hole_is_where_no_token_is():
    x = ring(0.3, 8)
    assert emptiest(x) @ x.mean(axis=0) < -0.9
    with pytest.raises(ArgumentError, match="`hole` must be away"):
        to_orthant(measures("x", [x]), x[0])
    with pytest.raises(ArgumentError, match="`hole` must be a unit vector"):
        to_orthant(measures("x", [x]), 2 * x[0])


@pytest.fixture
def orthant():
    rng = np.random.default_rng(0)
    return measures("prompts", [np.abs(unit(rng, 40, 4)) for _ in range(3)])


def test_one_prompt_collapses_and_the_others_return(orthant):
    """Reference: d = 4, N = 3, n = 40, T_k = 6, gate 10 leaves a radius below 2e-4."""
    found = isolate(orthant, 1)
    assert found.schedule.count == 2 * 3 + 1
    ends = found.schedule.push(orthant)
    assert np.abs(ends[1].points - ends[1].points.mean(axis=0)).max() < 2e-4
    for k in (0, 2):
        np.testing.assert_allclose(ends[k].points, orthant[k].points, atol=1e-10)
    flat = SphereSchedule(4, found.layers).push(orthant)
    np.testing.assert_allclose(flat[1].points, orthant[1].points, atol=1e-11)


def test_principal_axes_stop_rounding_from_growing_from_layer_to_layer(orthant):
    """The predicted drift against that of tilted axes, to first order, and a warning where it shows."""
    prompt, rng = orthant[0], np.random.default_rng(1)
    m = prompt.weights @ prompt.points
    axes = principal_axes(prompt)
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(axes @ m, 0, atol=1e-15)
    any_axes = np.linalg.qr(np.column_stack([m, rng.standard_normal((4, 3))]))[0][:, 1:].T
    assert rounding_drift(prompt, any_axes, 20.0) > 1e6 * rounding_drift(prompt, axes, 20.0)
    tilted = axes + 1e-9 * m / (m @ m)
    moved = SphereSchedule(4, isolate([prompt, orthant[1]], 0, axes=tilted).layers).push([prompt])[0]
    drift = np.linalg.norm(moved.points - prompt.points, axis=1).max()
    assert 0.3 < drift / rounding_drift(prompt, tilted, 6.0, 1e-9) < 3  # boosts along three axes add up
    with pytest.warns(PathlinesWarning, match="unstable equilibrium"):
        isolate(orthant, 0, time=20.0, axes=any_axes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        isolate(orthant, 0, time=20.0)


def test_prompts_that_cannot_be_isolated_are_named(orthant):
    first = orthant[0]
    twin = Measure(np.vstack([first.points, first.points]), np.full(80, 1 / 80))
    with pytest.raises(ArgumentError, match="Prompts 0 and 1 have collinear barycentres"):
        isolate([first, twin], 0)
    with pytest.raises(ArgumentError, match="barycentre at the origin"):
        isolate(measures("x", [np.vstack([np.eye(3), -np.eye(3)]), np.eye(3)]), 0)
    with pytest.raises(ArgumentError, match="`time` must be longer"):
        isolate(orthant, 0, time=0.1)
    with pytest.raises(ArgumentError, match="`chosen` must be below 3"):
        isolate(orthant, 3)


def test_concentric_rings_get_barycentres_of_their_own():
    rings = measures("rings", [ring(0.4, 20), ring(0.7, 20), ring(1.0, 15)])
    assert max(line_angle(p, q) for p, q in combinations(rings, 2)) < ENOUGH
    pieces, moved = break_collinear(rings)
    assert min(line_angle(p, q) for p, q in combinations(moved, 2)) >= ENOUGH
    assert len(pieces) <= 3
    ends = SphereSchedule(3, pieces).push(rings)
    np.testing.assert_allclose(ends[0].points, moved[0].points, atol=1e-12)


def test_equal_prompts_stay_together_whatever_the_ball():
    with pytest.raises(ArgumentError, match="Prompts 0 and 1"):
        break_collinear(measures("rings", [ring(0.4, 6), ring(0.4, 6)]))


@pytest.mark.parametrize("counts", [(60,), (20, 20, 20), (10, 50), (12, 12, 12, 12, 12)])
def test_slices_have_their_tokens_and_leave_them_behind(counts):
    rng = np.random.default_rng(2)
    z = np.eye(4)[0] + 0.05 * rng.standard_normal((60, 4))
    cloud = measures("cloud", [z / np.linalg.norm(z, axis=1, keepdims=True)])[0]
    middle = cloud.points.mean(axis=0)
    found = sliced(cloud, middle / np.linalg.norm(middle), np.array(counts), 1e-7, rng)
    assert tuple(np.bincount(found.to)) == counts
    assert len(found.pieces) == len(counts)
    ends = SphereSchedule(4, found.pieces).push([cloud])[0].points
    np.testing.assert_allclose(ends, found.points[found.to], atol=2e-7)


def test_clouds_reach_targets_of_few_atoms_with_a_piece_an_atom():
    """A9: targets share an atom, so that attention runs backwards at the end."""
    rng = np.random.default_rng(3)
    clouds = [c + 0.4 * rng.standard_normal((60, 3)) for c in unit(rng, 3, 3)]
    clouds = [c / np.linalg.norm(c, axis=1, keepdims=True) for c in clouds]
    shared = unit(rng, 1, 3)
    targets = [np.vstack([shared, unit(rng, 2, 3)]) for _ in range(3)]
    fitted = pl.MeasureInterpolator(error=1e-4).fit(clouds, targets)
    assert fitted.report_["algorithm"].startswith("A9")
    assert max(fitted.report_["w2"]) < 1e-4
    assert max(pl.verify_schedule(fitted.schedule_, clouds, targets).w2) < 1.1e-4
    assert fitted.report_["pieces"] < 60
    assert [stage.pieces for stage in fitted.timeline_] == sorted(stage.pieces for stage in fitted.timeline_)


def test_concentric_clouds_reach_dirac_masses():
    """A8 with B7: both would collapse to one point."""
    rng = np.random.default_rng(4)
    fitted = pl.MeasureInterpolator(error=1e-4).fit([ring(0.4, 20), ring(0.8, 20)], list(unit(rng, 2, 3)[:, None]))
    assert "gates break collinear barycentres" in [stage.name for stage in fitted.timeline_]
    assert max(fitted.report_["w2"]) < 1e-4


def test_a_shared_token_that_symmetry_holds_is_set_free():
    """A7 with B7: the shared token is the axis of both prompts, so that attention leaves it in both."""
    pole = np.eye(3)[:1]
    inputs = [np.vstack([pole, ring(angle, 3)]) for angle in (0.5, 0.9)]
    targets = [unit(np.random.default_rng(k), 4, 3) for k in (5, 6)]
    fitted = pl.MeasureInterpolator().fit(inputs, targets)
    assert max(pl.verify_schedule(fitted.schedule_, inputs, targets).w2) < 1e-9


def test_prompts_balanced_about_the_origin_are_collapsed_all_the_same():
    """Their mean is zero, so that attention alone would not move them: the first piece of B5 comes before it."""
    octahedron = np.vstack([np.eye(3), -np.eye(3)])
    cloud = unit(np.random.default_rng(7), 20, 3)
    for prompt, target in ((octahedron, np.eye(3)[:1]), (np.vstack([cloud, -cloud]), np.eye(3)[:2])):
        fitted = pl.MeasureInterpolator(error=1e-4).fit([prompt], [target])
        assert fitted.timeline_[1].name == "all go to a hemisphere"
        assert pl.verify_schedule(fitted.schedule_, [prompt], [target]).w2[0] < 1e-4
