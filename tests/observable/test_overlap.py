"""Observables of the Gram matrix against closed forms."""

import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.domain import Sphere
from pathlines.model import SelfAttention
from pathlines.model.base import Snapshot
from pathlines.observable.overlap import (
    antipodal_pairs,
    effective_rank,
    mean_square,
    overlap_deviation,
    smallest_overlap,
)
from pathlines.observable.pairs import variance


def of(observable, tokens, **settings):
    model = SelfAttention(1.0, **settings)
    x = jnp.asarray(tokens)
    return float(observable(Snapshot(model, x, jnp.zeros(()), x)))


@pytest.mark.parametrize("overlap", [0.0, 0.3, -0.1])
def test_simplex(overlap):
    """K = (1-γ)I + γ11ᵀ has the eigenvalues 1 + (n-1)γ and, n-1 times, 1 - γ."""
    n = 6
    tokens = Sphere(8).simplex(n, overlap)
    values = np.array([1 + (n - 1) * overlap, *[1 - overlap] * (n - 1)]) / n
    assert of(effective_rank, tokens) == pytest.approx(np.exp(-np.sum(values * np.log(values))), rel=1e-12)
    assert of(mean_square, tokens) == pytest.approx(overlap + (1 - overlap) / n)
    assert of(overlap_deviation, tokens) == pytest.approx(0, abs=1e-14)
    assert of(smallest_overlap, tokens) == pytest.approx(overlap, abs=1e-14)


def test_three_points():
    tokens = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    assert of(antipodal_pairs, tokens) == 1
    assert of(smallest_overlap, tokens) == -1
    assert of(overlap_deviation, tokens) == pytest.approx(1.0)
    assert of(effective_rank, tokens) == pytest.approx(2.0)
    assert of(effective_rank, tokens[[2, 2, 2]]) == pytest.approx(1.0)


def test_masses_enter_the_mean():
    tokens, masses = np.eye(3), np.array([1.0, 2.0, 5.0])
    found = of(mean_square, tokens, multiplicities=masses)
    assert found == pytest.approx(np.sum((masses / 8) ** 2))
    assert found + of(variance, tokens, multiplicities=masses) == pytest.approx(1)
