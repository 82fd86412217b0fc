"""Reference values: claim M7 of the project's specification 04-metastability-and-modes, unless said."""

import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.metastability.caps import cap_certificate, caps, gathering, largest_overlap, rate_bounds
from pathlines.limit.metastability.merging import log_merging_time


def test_the_row_of_the_table():
    found = caps([0.0, 2.0], 0.01, 20.0, 6, rate=0.7)
    assert found.holds
    assert found.gamma == pytest.approx(0.504438, abs=5e-7)
    assert np.exp(found.log_gather) == pytest.approx(299.790, abs=5e-4)
    assert np.exp(found.log_exit) == pytest.approx(1.430698e6, rel=5e-7)


def test_overlap_of_caps_by_search():
    """α is the largest inner product between points of two caps of size 2ε on the circle."""
    reach = np.arccos(1 - 2 * 0.02)
    edge = np.linspace(-reach, reach, 401)
    pairs = np.cos((edge[:, None]) - (1.1 + edge[None, :]))
    assert largest_overlap([0.0, 1.1], 0.02) == pytest.approx(pairs.max(), abs=1e-12)
    assert largest_overlap([0.0, 0.3], 0.02) == 1.0
    assert largest_overlap([0.5], 0.02) == 0.0


@pytest.mark.parametrize("gap", [1.95, 2.0, 2.5, 3.1])
def test_gathering_before_the_exit_needs_the_corrected_sign(gap):
    """At λ up to the bounds, T₁ < T₂; the printed sign allows larger λ."""
    found = caps([0.0, gap], 0.01, 20.0, 6)
    assert found.log_gather < found.log_exit
    right, wrong = (rate_bounds(20.0, 6, 0.01, found.alpha, printed)[0] for printed in (False, True))
    assert wrong > right


def test_conditions():
    assert not caps([0.0, 1.0], 0.01, 20.0, 6).holds
    assert not caps([0.0, 2.0], 0.01, 20.0, 6, rate=0.74).holds
    assert caps([0.0, 2.0], 0.01, 60.0, 10**6, mean_field=True).holds
    assert not caps([0.0, 2.0], 0.01, 20.0, 10**6).holds
    with pytest.raises(ArgumentError, match="below 1/16"):
        caps([0.0, 2.0], 0.07, 20.0, 6)
    with pytest.raises(ArgumentError, match="`beta`"):
        caps([0.0, 2.0], 0.01, 1.0, 6)
    with pytest.raises(ArgumentError, match="length 1"):
        caps([[1.0, 1.0]], 0.01, 9.0, 6)


def test_certificate_finds_the_caps():
    angles = np.array([-0.1, 0.0, 0.1, 1.95, 2.0, 2.1])
    found = cap_certificate(angles, 60.0)
    assert found.labels.tolist() in ([0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0])
    tokens = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert np.all(np.sum(tokens * found.centres[found.labels], axis=1) >= 1 - found.epsilon)
    assert found.log_exit >= caps([0.0, 2.02], 0.006, 60.0, 6).log_exit - 2
    sphere = cap_certificate(np.vstack([np.eye(3), -np.eye(3)]), 50.0)
    assert len(sphere.centres) == 6


def test_certificate_of_nothing():
    """Evenly spread tokens are in no separated caps."""
    assert cap_certificate(np.linspace(0, 2 * np.pi, 24, endpoint=False), 30.0) is None
    lone = cap_certificate(np.linspace(0, 0.2, 4), 60.0)
    assert len(lone.centres) == 1


@pytest.mark.parametrize(("kind", "mass"), [("usa", 0.4), ("sa", 0.4), ("sa", 1.0)])
def test_two_tokens_gather_as_two_clusters_merge(kind, mass):
    """A pair of total mass M far from everything: the closed form of the merging time, over M under USA."""
    end = 1e-3
    time, place = gathering([-0.1, 0.3], 20.0, mass, kind, 4 * np.sin(end / 2) ** 2)
    expected = np.exp(log_merging_time(20.0, 0.4, end, kind)) / (mass if kind == "usa" else 1)
    assert time == pytest.approx(expected, rel=1e-9)
    assert place == pytest.approx(0.1, abs=1e-12)


def test_tokens_already_gathered():
    assert gathering([0.0, 0.01], 20.0, 0.5, "sa", 1.0) == (0.0, 0.005)
