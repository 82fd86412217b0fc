"""Reference values: section 9 of the project's specification 04-metastability-and-modes, unless said."""

import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.integrate.cluster_flow import cluster_flow
from pathlines.integrate.cluster_pulls import energy_of
from pathlines.limit.metastability.merging import log_merging_time
from pathlines.limit.metastability.slow_laws import jump_time

FOUR, FIVE, THREE = (0, 0.5, 1.1, 2.4), (0, 0.9, 2, 3.3, 4.9), (0, 1, 2.3)
TABLE = [
    (FOUR, None, 20, "usa", (2.656336770, 4.512334229, 22.898862790), (0.375, 0.625, 1), 1.0),
    (FOUR, None, 20, "sa", (1.724198977, 3.335804425, 22.941100399), (0.375, 0.625, 1), 0.71079536),
    (FOUR, None, 100, "usa", (9.891223861, 30.276006298, 124.634823854), (0.375, 0.625, 1), 1.0),
    (FOUR, None, 100, "sa", (8.505327607, 29.072033434, 132.309865), (0.375, 0.625, 1), 0.657224),
    (FOUR, None, 1000, "usa", (117.680898064, 333.971084011, 1284.752940212), (0.375, 0.625, 1), 1.0),
    (FOUR, None, 1000, "sa", (116.294603703, 332.767111207, 1384.20623), (0.375, 0.625, 1), 0.630410),
    (FIVE, None, 30, "usa", (9.439695913, 19.590101794, 34.946913126, 56.861173411), (0.28, 0.36, 0.52, 1), None),
    (FIVE, None, 30, "sa", (7.831166114, 17.980664009, 33.519684309, 52.739948049), (0.28, 0.36, 0.52, 1), None),
    (THREE, (0.5, 0.3, 0.2), 40, "usa", (15.310248191, 50.295174289), (0.68, 1), 0.76),
    (THREE, (0.5, 0.3, 0.2), 40, "sa", (14.268796269, 52.017594747), (0.68, 1), 0.44033977),
]


@pytest.mark.parametrize(("angles", "masses", "beta", "kind", "times", "levels", "final"), TABLE)
def test_table_of_staircases(angles, masses, beta, kind, times, levels, final):
    found = cluster_flow(angles, beta, masses=masses, kind=kind)
    # the SA rows at β ≥ 100 have six to nine digits in the table
    np.testing.assert_allclose(found.log_times, times, rtol=2e-9 if kind == "usa" or beta < 100 else 6e-9, atol=2e-9)
    np.testing.assert_allclose(found.levels[1:], levels, rtol=1e-13)
    if final is not None:
        np.testing.assert_allclose(found.final, final, atol=6e-7)
    assert found.outcome == "one cluster"
    assert np.diff(found.energy).min() > -1e-13
    assert np.all(np.diff(found.levels) > 0)
    assert np.all(np.diff(found.log_time[1:]) >= 0)


def test_sum_of_angles_is_conserved_by_usa_only():
    masses = np.array([0.1, 0.4, 0.2, 0.3])
    usa = cluster_flow(FOUR, 50, masses=masses)
    np.testing.assert_allclose(usa.positions @ masses, np.dot(FOUR, masses), atol=1e-10)
    sa = cluster_flow(FOUR, 50, masses=masses, kind="sa")
    assert abs(sa.final @ masses - np.dot(FOUR, masses)) > 0.01


@pytest.mark.parametrize("kind", ["usa", "sa"])
def test_a_plane_of_three_dimensions_vs_the_circle(kind):
    """Clusters in a tilted plane of R³ stay in it and merge when those of the circle do."""
    basis, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 2)))
    plane = np.stack([np.cos(FOUR), np.sin(FOUR)], axis=1) @ basis.T
    flat, tilted = cluster_flow(FOUR, 100, kind=kind), cluster_flow(plane, 100, kind=kind)
    np.testing.assert_allclose(tilted.log_times, flat.log_times, rtol=1e-8)
    normal = np.cross(*basis.T)
    assert np.abs(tilted.positions @ normal).max() < 1e-10
    angle = flat.final[0]
    np.testing.assert_allclose(tilted.final[0], basis @ [np.cos(angle), np.sin(angle)], atol=1e-7)


@pytest.mark.parametrize(("kind", "masses"), [("usa", (0.3, 0.7)), ("sa", (0.5, 0.5)), ("sa", (0.1, 0.9))])
def test_two_clusters_vs_closed_form(kind, masses):
    found = cluster_flow([0.3, 1.5], 81, masses=masses, kind=kind)
    assert found.log_times[0] == pytest.approx(log_merging_time(81, 1.2, 0.01, kind, masses), abs=1e-8)


def test_rescaled_time_vs_the_law_of_a_jump():
    """Two clusters of total mass one: u' = -ln(β) sin u."""
    found = cluster_flow([0.0, 1.0], 1e6, delta=0.005)
    assert found.rescaled_times[0] == pytest.approx(jump_time(1e6, 1.0, end=0.005), rel=1e-8)
    assert np.isnan(cluster_flow([0.0, 1.0], 0.8).rescaled_times[0])


def test_the_start_of_the_clock_and_the_merging_gap():
    late = cluster_flow(FOUR, 20, log_start=10.0)
    early = cluster_flow(FOUR, 20)
    np.testing.assert_allclose(late.log_times, np.logaddexp(10.0, early.log_times), rtol=1e-9)
    assert cluster_flow(FOUR, 100, delta="kernel").delta == pytest.approx(1 / np.sqrt(100 * np.log(100)))
    assert cluster_flow(FOUR, 100, delta="kernel").log_times[0] < cluster_flow(FOUR, 100).log_times[0]


def test_simultaneous_mergers_and_symmetry():
    """Two mirror pairs merge at one time and keep the mirror."""
    found = cluster_flow([-1.2, -0.8, 0.8, 1.2], 60)
    assert found.log_times[0] == pytest.approx(found.log_times[1], abs=1e-6)
    np.testing.assert_allclose(found.final, 0.0, atol=1e-8)


@pytest.mark.parametrize("positions", [[0.0, np.pi], 2 * np.pi * np.arange(3) / 3, [[1, 0, 0], [-1, 0, 0]]])
def test_balanced_configurations_are_said_to_be(positions):
    found = cluster_flow(positions, 30)
    assert found.outcome.startswith("stationary to rounding")
    assert found.mergers == ()


def test_dozen_clusters_end_as_one():
    angles = np.sort(np.random.default_rng(0).uniform(0, 2 * np.pi, 12))
    found = cluster_flow(angles, 400)
    assert [m.clusters for m in found.mergers] == list(range(11, 0, -1))
    assert sum(found.mergers[-1].masses) == pytest.approx(1)
    assert found.energy[-1] == pytest.approx(1, abs=1e-12)
    assert found.energy[0] == pytest.approx(energy_of(angles, np.full(12, 1 / 12), 400.0))


def test_dataset_json_and_interpolation():
    found = cluster_flow(FOUR, 100)
    data = found.dataset()
    assert data["positions"].dims == ("step", "cluster")
    assert data.sizes["merger"] == 3
    assert found.as_dict()["levels"] == pytest.approx([0.25, 0.375, 0.625, 1.0])
    assert found.energy_at([20.0, 80.0, 130.0]) == pytest.approx([0.375, 0.625, 1.0], abs=1e-3)
    np.testing.assert_allclose(found.log10_times, found.log_times / np.log(10))
    still = cluster_flow([0.0, np.pi], 9.0)
    np.testing.assert_allclose(still.energy_at([1.0, 50.0]), 0.5 * (1 + np.exp(-18.0)), rtol=1e-12)
    one = cluster_flow([0.4], 5.0)
    np.testing.assert_allclose(one.energy_at(3.0), 1.0)
    assert one.mergers == ()
    assert one.outcome == "one cluster"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"positions": [0.0, 0.0, 1.0]}, "clusters 0 and 1 are at an angle of 0"),
        ({"positions": [0.0, 2 * np.pi]}, "farther apart than delta"),
        ({"masses": [0.5, 0.5, -0.1, 0.1]}, "`masses` must be positive"),
        ({"masses": [1.0]}, "one entry for each of the 4 clusters"),
        ({"beta": 0.0}, "`beta` must be a finite number > 0"),
        ({"kind": "softmax"}, "`kind`"),
        ({"delta": 0.0}, "`delta`"),
        ({"positions": [[1.0, 1.0], [0.0, 1.0]]}, "rows of length 1"),
        ({"positions": []}, "angles \\(k,\\) or unit vectors"),
        ({"positions": [0.0, np.nan]}, "must be finite"),
        ({"delta": "kernel", "beta": 1.2}, "exceed 1.6"),
    ],
)
def test_refusals(arguments, says):
    with pytest.raises(ArgumentError, match=says):
        cluster_flow(**{"positions": FOUR, "beta": 20.0, **arguments})
