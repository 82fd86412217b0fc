"""The engine against the reference values in R^d, to the digits given.

Provenance: ``references.clustering``, numbers computed independently of this package at two tolerances. Tolerances here
are a few units of the last digit given (the references' rounding, plus that of a run at rtol 1e-12).
"""

import numpy as np
import pytest

from pathlines.integrate import flow
from pathlines.integrate.observe import positions
from pathlines.model import SelfAttention
from pathlines.model.clustering.rescaled import RescaledAttention
from pathlines.observable.attention import leaders
from pathlines.observable.clusters import cluster_count, cluster_labels
from pathlines.observable.euclidean import cov_law
from pathlines.weights import FixedWeights
from references import clustering as ref

SHARP = {"method": "dop853", "rtol": 1e-12}


def rescaled(value, start, times, record=positions):
    return flow(RescaledAttention(np.asarray(value, float)), start, times=times, record=record, **SHARP)


@pytest.mark.parametrize("run", ref.EUCLIDEAN_RUNS, ids=["identity", "diagonal", "full"])
def test_early_tokens(run):
    value, first_at_1, first_at_2, fourth_at_2 = run
    at_1, at_2 = rescaled(value, ref.EUCLIDEAN_START, [1.0, 2.0])["tokens"].values
    np.testing.assert_allclose(at_1[0], first_at_1, rtol=0, atol=3e-10)
    np.testing.assert_allclose(at_2[0], first_at_2, rtol=0, atol=3e-10)
    np.testing.assert_allclose(at_2[3], fourth_at_2, rtol=0, atol=3e-10)


def test_identity_ends_in_four_clusters():
    record = (positions, leaders, cluster_count, cluster_labels)
    run = rescaled(np.eye(2), ref.EUCLIDEAN_START, [6.0, 12.0, 16.0], record)
    labels = np.asarray(ref.EUCLIDEAN_LABELS)
    assert run["cluster_count"].values[-1] == len(ref.EUCLIDEAN_CLUSTERS)
    found = run["cluster_labels"].values[-1].astype(int)
    assert [len(set(found[labels == k])) for k in range(4)] == [1, 1, 1, 1]
    leading = run["leaders"].values[-1].astype(bool)
    assert leading.sum() == 4
    places = {labels[i]: run["tokens"].values[-1, i] for i in np.nonzero(leading)[0]}
    for k, place in enumerate(ref.EUCLIDEAN_CLUSTERS):
        np.testing.assert_allclose(places[k], place, rtol=0, atol=1e-6)


def test_printed_late_state_of_a_follower():
    """The specification prints token 2 at t = 12 for the second cluster: e^{-12} away from its leader."""
    z = rescaled(np.eye(2), ref.EUCLIDEAN_START, [12.0])["tokens"].values[-1]
    np.testing.assert_allclose(z[1], (-0.846015, -1.798865), rtol=0, atol=1e-6)


def test_two_hyperplanes_of_the_diagonal_run():
    z = rescaled(np.diag([1.0, -0.5]), ref.EUCLIDEAN_START, [12.0])["tokens"].values[-1]
    nearest = np.abs(z[:, :1] - np.asarray(ref.EUCLIDEAN_HYPERPLANES)).min(axis=1)
    assert nearest.max() < 1e-4
    assert np.ptp(z[:, 1]) > 100  # the second coordinate diverges like e^{t/2}


def test_full_matrix_ends_on_two_hyperplanes():
    value = np.asarray(ref.EUCLIDEAN_RUNS[2][0])
    z = rescaled(value, ref.EUCLIDEAN_START, [12.0])["tokens"].values[-1]
    eigenvalues, vectors = np.linalg.eig(value)
    coordinate = z @ np.linalg.inv(vectors)[np.argmax(eigenvalues)]
    ends = np.array([coordinate.min(), coordinate.max()])
    assert np.abs(coordinate[:, None] - ends).min(axis=1).max() < 1e-3
    assert ends[0] < 0 < ends[1]


def test_negative_identity():
    times = sorted(ref.NEGATIVE_IDENTITY)
    model = SelfAttention(1.0, space="euclidean", weights=FixedWeights(-np.eye(2)))
    run = flow(model, ref.EUCLIDEAN_START, times=times, record=(positions, cov_law), **SHARP)
    for k, t in enumerate(times):
        first, eigenvalues = ref.NEGATIVE_IDENTITY[t]
        np.testing.assert_allclose(run["tokens"].values[k, 0], first, rtol=0, atol=3e-11)
        np.testing.assert_allclose(run["cov_law"].values[k], eigenvalues, rtol=0, atol=3e-8)


def test_line():
    run = rescaled([[1.0]], ref.LINE_START, [2.0, 12.0], (positions, leaders))
    np.testing.assert_allclose(run["tokens"].values[0, :4, 0], ref.LINE_STATE, rtol=0, atol=3e-8)
    late = run["tokens"].values[1, :, 0]
    assert np.abs(late[:, None] - np.asarray(ref.LINE_LIMITS)).min(axis=1).max() < 1e-4
    low, high = (np.asarray(ref.LINE_LEADERS) - 1).tolist()
    assert set(np.nonzero(run["leaders"].values[1])[0]) == {low, high}
    assert (np.argmin(ref.LINE_START), np.argmax(ref.LINE_START)) == (low, high)
