import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.attention import UnnormalisedAttention
from pathlines.domain import Sphere
from pathlines.foundation.errors import ArgumentError
from pathlines.integrate.cluster_flow import cluster_flow
from pathlines.integrate.coarsen import coarsen, grouped
from pathlines.model import SelfAttention
from pathlines.weights import IdentityWeights


def test_formation_then_coarsening_of_random_tokens_on_the_circle():
    tokens = Sphere(2).uniform(jax.random.key(3), 24)
    found = coarsen(SelfAttention(30.0), tokens)
    assert found.outcome == "one cluster"
    slow = found.staircase
    assert slow is not None
    assert len(slow.mergers) == found.labels.max() >= 1
    check = found.certificate("energy_continuity")
    assert check.passed
    assert check.value <= 30 * found.certificate("cluster_diameter").value ** 2 + 1e-12
    log_t, energy = found.profile
    assert np.all(np.diff(log_t) >= 0)
    assert np.diff(energy).min() > -1e-9
    assert energy[-1] == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(slow.masses, np.bincount(found.labels) / 24)
    assert slow.log_time[0] == pytest.approx(found.log_handover)


def test_clusters_of_coincident_tokens_vs_the_cluster_flow_alone():
    """Tokens already at points in R³: the hand-over is at once, and the mergers are those of the points."""
    centres = Sphere(3).normalise([[1.0, 0.1, 0.0], [0.2, 1.0, 0.3], [-0.4, 0.1, 1.0]])
    sizes = np.array([4, 3, 1])
    tokens = np.repeat(np.asarray(centres), sizes, axis=0)
    model = SelfAttention(40.0, attention=UnnormalisedAttention(shift=jnp.asarray(40.0)))
    found = coarsen(model, tokens)
    alone = cluster_flow(np.asarray(centres), 40.0, masses=sizes / sizes.sum())
    assert found.certificate("cluster_speed").value < 1e-10
    np.testing.assert_allclose(found.staircase.log_times, alone.log_times, rtol=1e-7)
    np.testing.assert_allclose(found.staircase.levels, alone.levels)


def test_one_cluster_needs_no_coarsening_and_short_runs_say_so():
    tokens = np.asarray(Sphere(2).clusters(jax.random.key(0), [[1.0, 0.0]], [24], 0.05))
    found = coarsen(SelfAttention(30.0), tokens)
    assert found.outcome == "one cluster"
    assert found.staircase.mergers == ()
    short = coarsen(SelfAttention(30.0), tokens, until=0.5)
    assert short.staircase is None
    assert short.outcome == "no tight clusters by t = 0.5"
    assert len(short.profile[0]) == 32


def test_grouping():
    x = np.array([[1, 0], [1, 0], [0, 1], [0, 1.0]])
    x[1] = [np.cos(1e-5), np.sin(1e-5)]
    found = grouped(x, np.array([0.1, 0.2, 0.3, 0.4]), 1e-3, 0.1)
    assert found.labels.tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(found.masses, [0.3, 0.7])
    np.testing.assert_allclose(found.centres[0, 1], 2e-5 / 3, rtol=1e-9)
    assert grouped(x, np.full(4, 0.25), 1e-6, 0.1) is None


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (SelfAttention(9.0, attention=UnnormalisedAttention()), "scaled kernel"),
        (SelfAttention(9.0, weights=IdentityWeights(-1.0)), "Q = K = V = I"),
        (SelfAttention(9.0, space="euclidean"), "on the sphere"),
    ],
)
def test_refusals(model, says):
    with pytest.raises(ArgumentError, match=says):
        coarsen(model, np.eye(2))
