"""Distances of weighted and unequal clouds against assignments, linear programmes and limits."""

import sys

import numpy as np
import pytest
from scipy.optimize import linprog

from pathlines.foundation.errors import ArgumentError, PathlinesError
from pathlines.observable.distances import cloud_distance
from pathlines.observable.plans import sinkhorn_divergence

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(7, 2)), RNG.normal(size=(5, 2)) + 1
A, B = RNG.dirichlet(np.ones(7)), RNG.dirichlet(np.ones(5))


def programme(costs, a, b):
    rows = np.kron(np.eye(len(a)), np.ones(len(b)))
    columns = np.kron(np.ones(len(a)), np.eye(len(b)))
    return linprog(costs.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([a, b])).fun


@pytest.mark.parametrize("p", [1, 2])
def test_plan_vs_linear_programme(p):
    found = cloud_distance(X, Y, p, masses=A, other_masses=B)
    costs = np.linalg.norm(X[:, None] - Y, axis=2) ** p
    np.testing.assert_allclose(found.value**p, programme(costs, A, B), rtol=1e-9)
    assert found.exact and found.method == "plan"


def test_arcs_vs_linear_programme():
    x, y = (c / np.linalg.norm(c, axis=1, keepdims=True) for c in (X, Y))
    arcs = np.arccos(np.clip(x @ y.T, -1, 1))
    found = cloud_distance(x, y, masses=A, other_masses=B, metric="arc")
    np.testing.assert_allclose(found.value**2, programme(arcs**2, A, B), rtol=1e-6)  # arccos loses half the digits
    with pytest.raises(ArgumentError, match="unit vectors"):
        cloud_distance(X, Y, metric="arc")


def test_line_vs_linear_programme():
    found = cloud_distance(X[:, :1], Y[:, :1], masses=A, other_masses=B)
    np.testing.assert_allclose(found.value**2, programme((X[:, :1] - Y[:, 0]) ** 2, A, B), rtol=1e-9)


def test_repeated_points_vs_masses():
    counts = np.array([1, 2, 1, 3, 1])
    many, few = np.repeat(Y, counts, axis=0), cloud_distance(X, Y, other_masses=counts / 8).value
    np.testing.assert_allclose(few, cloud_distance(X, many).value, rtol=1e-9)


def test_divergence_vs_its_limits():
    near = sinkhorn_divergence(X, Y, 1e4, A, B)
    np.testing.assert_allclose(near, np.sum((A @ X - B @ Y) ** 2), rtol=1e-3)  # the next term is of order 1/ε
    small = sinkhorn_divergence(X, Y, 0.1, A, B)
    exact = cloud_distance(X, Y, masses=A, other_masses=B).value ** 2
    assert abs(small - exact) < 0.1 * np.log(7)  # ε times the entropy that a plan can have
    assert abs(sinkhorn_divergence(X, X, 1.0, A, A)) < 1e-9
    np.testing.assert_allclose(sinkhorn_divergence(X[:1], Y[:1], 0.3), np.sum((X[0] - Y[0]) ** 2), rtol=1e-9)


def test_without_the_library_one_line_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(PathlinesError, match=r"pip install 'pathlines\[transport\]'"):
        cloud_distance(X, Y)
    assert cloud_distance(X[:5], Y).method == "assignment"


def test_masses_that_are_no_law_are_refused():
    with pytest.raises(ArgumentError, match="`other_masses` must sum to 1"):
        cloud_distance(X, Y, other_masses=np.ones(5))
