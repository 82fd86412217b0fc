from itertools import combinations

import numpy as np
import pytest
from scipy.linalg import expm

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.clustering import euclidean as eu
from references import clustering as ref

from .particles import integrate_field, softmax

HYPERPLANES = np.array([[0.64709742, 0.81911926], [0.61210449, 0.63263484]])
NEGATIVE_PAIR = np.array(
    [[0.2362413, 0.0599536, 0.40506019], [0.81321448, 0.49948705, 0.33754772], [0.2160645, 0.38505272, 0.14588075]]
)
CODIMENSION = np.array(
    [[0.92761287, 0.94333073, 0.3827744], [0.94333073, 0.59991396, 0.47825472], [0.3827744, 0.47825472, 0.46668605]]
)


@pytest.mark.parametrize(
    ("V", "M", "kind"),
    [
        (np.eye(3), None, "identity"),
        (np.eye(2), [[2.0, 0.5], [0.5, 1.0]], "identity"),
        (np.eye(2), -np.eye(2), "none"),
        (np.eye(2), [[1.0, 1.0], [0.0, 1.0]], "none"),
        ([[1.0]], None, "identity"),
        ([[2.5]], None, "good triple"),
        (HYPERPLANES, None, "good triple"),
        (NEGATIVE_PAIR, None, "good triple"),
        (CODIMENSION, None, "good triple"),
        (np.diag([1.0, 0.5]), np.diag([-1.0, 1.0]), "none"),
        (np.diag([1.0, -3.0]), None, "none"),
        (np.diag([1.0, 1.0, -0.5]), None, "paranormal"),
        (np.diag([1.0, 1.0, -0.5]), -np.eye(3), "none"),
        (3 * np.eye(2), None, "paranormal"),
        ([[1.0, 1.0], [0.0, 1.0]], None, "none"),
        (-np.eye(2), None, "negative identity"),
        (-np.eye(2), 2 * np.eye(2), "none"),
        (-2 * np.eye(2), None, "none"),
        ([[0.0, -1.0], [1.0, 0.0]], None, "complex leading pair"),
        ([[1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.5]], None, "complex leading pair"),
    ],
)
def test_kinds(V, M, kind):
    record = eu.classify_value(V, M)
    assert record.kind == kind in eu.KINDS
    assert record.statement.endswith(".")


def test_leading_eigenvalues_of_the_figures():
    assert eu.classify_value(HYPERPLANES).leading == pytest.approx(1.34799, abs=5e-6)
    assert eu.classify_value(CODIMENSION).leading == pytest.approx(1.96344524, abs=5e-9)


@pytest.mark.parametrize("V", [HYPERPLANES, NEGATIVE_PAIR, CODIMENSION, np.diag([0.3, 2.0, -1.0])])
def test_good_triple_vectors(V):
    record = eu.classify_value(V)
    np.testing.assert_allclose(V @ record.right, record.leading * record.right, atol=1e-13)
    np.testing.assert_allclose(record.left @ V, record.leading * record.left, atol=1e-13)
    assert record.left @ record.right == pytest.approx(1, abs=1e-14)
    assert np.linalg.norm(record.right) == pytest.approx(1, abs=1e-14)
    np.testing.assert_allclose(record.left @ record.G, 0, atol=1e-13)


def test_paranormal_splitting_of_an_oblique_matrix():
    rng = np.random.default_rng(0)
    S = rng.normal(size=(5, 5))
    block = np.zeros((5, 5))
    block[:2, :2] = 1.5 * np.eye(2)
    block[2:, 2:] = 0.3 * rng.normal(size=(3, 3))
    V = S @ block @ np.linalg.inv(S)
    record = eu.classify_value(V)
    assert record.kind == "paranormal"
    assert (record.F.shape, record.G.shape) == ((5, 2), (5, 3))
    np.testing.assert_allclose(V @ record.F, 1.5 * record.F, atol=1e-10)
    # G is invariant: V G lies in the span of G, and F + G is everything
    np.testing.assert_allclose(V @ record.G, record.G @ (record.G.T @ V @ record.G), atol=1e-10)
    assert abs(np.linalg.det(np.hstack([record.F, record.G]))) > 1e-3


def test_horizon_formula():
    V = np.diag([2.0, -7.0])
    assert eu.horizon(V, 3.0, 1e-16) == pytest.approx(np.log(1e-2 / (1e-16 * 9)) / 4)
    assert eu.horizon(-np.eye(2), 3.0) == np.inf
    assert eu.horizon(np.eye(2), 1e9) == 0.0


def test_horizon_is_where_scores_become_noise():
    """At t_max the score e^{2t}|z|² is rounded to about 1e-2, the accuracy a softmax weight then has."""
    t = eu.horizon(np.eye(2), 2.0)
    score = np.exp(2 * t) * 4
    assert np.spacing(score) < 2e-2 < 8 * np.spacing(score)


def brute_force_plane(points):
    """S in the plane from edges of the hull, by elementary geometry: vertices, feet of perpendiculars, the origin."""
    found = [p for p in points if np.all(points @ p <= p @ p + 1e-12)]
    for a, b in combinations(points, 2):
        s = -(a @ (b - a)) / ((b - a) @ (b - a))
        foot = a + s * (b - a)
        if 0 < s < 1 and np.all(points @ foot <= foot @ foot + 1e-12) and foot @ foot > 1e-20:
            found.append(foot)
    angles = np.sort(np.arctan2(points[:, 1], points[:, 0]))
    if np.diff(np.append(angles, angles[0] + 2 * np.pi)).max() <= np.pi + 1e-12:
        found.append(np.zeros(2))
    return np.unique(np.round(found, 9), axis=0)


def test_fixed_set_in_the_plane_vs_elementary_geometry():
    rng = np.random.default_rng(4)
    for shift in (0.0, 0.0, 1.0, 3.0):
        points = rng.normal(size=(7, 2)) + np.array([shift, 0])
        np.testing.assert_allclose(eu.polytope_fixed_set(points), brute_force_plane(points), atol=2e-9)


def test_fixed_set_of_the_cube_and_its_definition():
    cube = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    fixed = eu.polytope_fixed_set(cube)
    assert len(fixed) == 27
    A = np.array([[1.5, 0.4], [0.4, 0.8]])
    vertices = np.random.default_rng(8).normal(size=(6, 2))
    for x in eu.polytope_fixed_set(vertices, A):
        assert x @ A @ A @ x == pytest.approx((vertices @ A @ A @ x).max(), abs=1e-12)


def test_late_tokens_are_in_the_fixed_set():
    def field(t, z):
        return softmax(np.exp(2 * t) * z @ z.T) @ z - z

    late = integrate_field(field, ref.EUCLIDEAN_START, [9.0], rtol=1e-10)[0]
    fixed = eu.polytope_fixed_set(np.array(ref.EUCLIDEAN_CLUSTERS))
    assert np.linalg.norm(late[:, None] - fixed[None], axis=2).min(axis=1).max() < 10 * np.exp(-9)


def test_hyperplane_values_of_a_run():
    V = np.array([[1.0, 0.5], [0.2, 0.3]])
    record = eu.classify_value(V)

    def field(t, z):
        grown = z @ expm(t * V).T
        return (softmax(grown @ grown.T) @ z - z) @ V.T

    states = integrate_field(field, ref.EUCLIDEAN_START, [0.0, 7.0], rtol=1e-9)
    first, late = (eu.hyperplane_values(s, record.left) for s in states)
    assert first[0] <= late[0] < late[1] == 0.0 < late[2] <= first[2]
    assert np.abs((states[1] @ record.left)[:, None] - np.array(late)).min(axis=1).max() < 5e-3


def test_negative_identity_covariance_vs_run():
    t = np.array(sorted(ref.NEGATIVE_IDENTITY))
    law = eu.negative_identity_covariance(t)
    for time, value in zip(t, law, strict=True):
        eigenvalues = np.array(ref.NEGATIVE_IDENTITY[time][1]) / (2 * time)
        assert np.abs(eigenvalues / value - 1).max() < 0.4 / time**0.75


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: eu.classify_value(np.ones((2, 3))), "`V` must have shape"),
        (lambda: eu.classify_value(np.eye(2), np.eye(3)), "`M` must have shape"),
        (lambda: eu.classify_value([[np.nan]]), "`V` must be finite"),
        (lambda: eu.horizon(np.eye(2), 0.0), "`z_max` must"),
        (lambda: eu.polytope_fixed_set(np.ones(3)), "`vertices` must have shape"),
        (lambda: eu.polytope_fixed_set(np.ones((200, 5))), "`vertices` must have at most"),
        (lambda: eu.hyperplane_values(np.ones((3, 2)), np.ones(3)), "`dual` must have shape"),
        (lambda: eu.negative_identity_covariance(0.0), "`t` must be > 0"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def _jordan(size):
    return np.eye(size) + np.diag(np.ones(size - 1), 1)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (np.diag([1.0, 1 - 1e-7]), "good triple"),
        (np.diag([1.0, 1 - 1e-12, 0.5]), "paranormal"),
        (_jordan(2), "none"),
        (_jordan(3), "none"),
        (_jordan(5), "none"),
        (np.array([[2.0, 0, 0], [0, 1, 1], [0, 0, 1]]), "good triple"),
    ],
    ids=["close", "equal to rounding", "jordan 2", "jordan 3", "jordan 5", "jordan below"],
)
def test_close_and_defective_eigenvalues_are_told_apart(value, kind):
    """The same answer after a rotation, which perturbs the eigenvalues of a block of size m by ε^{1/m}."""
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=value.shape))[0]
    assert eu.classify_value(value).kind == kind
    assert eu.classify_value(rotation @ value @ rotation.T).kind == kind
