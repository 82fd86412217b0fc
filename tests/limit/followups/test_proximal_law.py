"""Closed forms of proximal sampling: reference values, the recursion they are at rest in, linear stability by force."""

import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.followups import proximal as law


def of(s2, beta, pull, m):
    return law.quadratic([[1 / s2]], m, pull, beta)


@pytest.mark.parametrize(
    ("case", "known"), [((1, 1, 0.2, 1), 0.96), ((2, 3, 0.5, 1), 0.625), ((2, 3, 0.5, 2), 0.5), ((1, 1, 1.5, 1), 0.0)]
)
def test_limit_variances(case, known):
    assert law.limit_covariance(of(*case))[0, 0] == pytest.approx(known, abs=1e-14)


def test_first_steps():
    known = [0.352917159763, 0.406237684289, 0.458590990478, 0.508896941875, 0.556384392881]
    np.testing.assert_allclose(law.covariances(of(1, 1, 0.2, 1), [[0.3]], 0.1, 5)[:, 0, 0], known, atol=6e-13)


def random_quadratic(d=3, seed=0):
    rng = np.random.default_rng(seed)
    p, m = (np.eye(d) + 0.3 * x @ x.T for x in rng.normal(size=(2, d, d)))
    q = law.quadratic(p, m, 1.0, 1.7)
    return q._replace(regularisation=0.6 / law.shrinkages(q)[-1])


def test_limit_is_at_rest_and_its_proximal_is_the_target():
    q = random_quadratic()
    rest = law.limit_covariance(q)
    np.testing.assert_allclose(law.proximal_law(q, rest), np.linalg.inv(q.precision) / q.beta, atol=1e-14)
    np.testing.assert_allclose(law.covariances(q, rest, 0.1, 3)[-1], rest, atol=1e-14)
    np.testing.assert_allclose(law.covariances(q, 0.3 * rest, 0.1, 4000)[-1], rest, atol=1e-12)


def test_preconditioner_that_fits_shrinks_all_directions_alike():
    precision = np.array([[40.0, 3.0], [3.0, 0.5]])
    q = law.quadratic(precision, np.linalg.inv(precision), 0.3)
    np.testing.assert_allclose(law.limit_covariance(q), (1 - 0.3**2) * np.linalg.inv(precision), rtol=1e-12)


def moved(x, w, s2, pull, eta):
    """One step of weighted particles on the line, M = β = 1, written out."""
    scores = -((x[:, None] - x) ** 2) / (4 * pull) + x**2 / (4 * (s2 + pull)) + np.log(w)
    a = np.exp(scores - scores.max(axis=1, keepdims=True))
    return x - eta / 2 * x / s2 + eta / (2 * pull) * (x - a @ x / a.sum(axis=1))


@pytest.mark.parametrize("pull", [0.1, 0.2, 0.5])
def test_stable_step_vs_shaken_particles(pull):
    """Below the stable step a small deviation of a law of many nodes dies out, above it grows."""
    q = of(1, 1, pull, 1)
    nodes = np.linspace(-6.5, 6.5, 101)
    w, x = np.exp(-(nodes**2) / 2), nodes * np.sqrt(1 - pull**2)
    for share, grows in ((0.9, False), (1.15, True)):
        y = x + 1e-6 * np.sin(1.3 * x + 0.4)
        for _ in range(200):
            y = moved(y, w, 1.0, pull, share * law.stable_step(q))
            assert np.isfinite(y).all()
        assert (np.sqrt(np.average((y - x) ** 2, weights=w)) > 3e-6) == grows


def by_force(tau, degrees=14):
    """The largest rate over all degrees below ``degrees``."""
    k = np.stack(np.meshgrid(*[np.arange(degrees)] * len(tau), indexing="ij"), axis=-1)
    return float(np.max(k @ (tau / (1 - tau**2)) * np.prod((1 - tau) ** k, axis=-1)))


@pytest.mark.parametrize("tau", [(0.5, 0.25), (0.2,), (0.95, 0.3), (0.3, 0.25, 0.2), (0.6, 0.55, 0.12)])
def test_stable_step_is_that_of_the_worst_mixed_mode(tau):
    """(½, ¼): 5.714, of the covariance itself; one direction alone would allow 5.93."""
    known = 2 / by_force(np.array(tau))
    assert known * (1 - 2e-6) < law.stable_step(law.quadratic(np.diag(tau), 1.0, 1.0)) <= known


def test_a_covariance_grows_beyond_the_stable_step():
    q = law.quadratic(np.diag([0.5, 0.25]), 1.0, 1.0)
    start = law.limit_covariance(q) + 1e-6 * np.array([[0.0, 1.0], [1.0, 0.0]])
    for share, grows in ((0.99, False), (1.01, True)):
        last = law.covariances(q, start, share * law.stable_step(q), 100)[-1]
        assert (abs(last[0, 1]) > 1e-6) == grows


def test_stable_step_of_small_and_of_many_shrinkages():
    """2eT in the limit; in many directions at most what real degrees would allow."""
    for tau in (1e-4, 1e-5, 1e-11):
        assert law.stable_step(law.quadratic([[1.0]], 1.0, tau)) == pytest.approx(2 * np.e * tau, rel=1.1 * tau + 2e-6)
    tau = np.linspace(0.03, 0.3, 30)
    real = (tau / (1 - tau**2) / -np.log1p(-tau)).max() / np.e
    assert real * (1 - 1e-3) < law.largest_rate(tau) <= real * (1 + 2e-6)


def test_stable_step_where_particles_gathered():
    """One particle of a target too narrow, 1.5 of T: it moves by 1 - ητ/2T."""
    q = of(1, 1, 1.5, 1)
    for share, grows in ((0.99, False), (1.01, True)):
        x = np.array([1e-3])
        for _ in range(50):
            x = moved(x, np.ones(1), 1.0, 1.5, share * law.stable_step(q))
        assert (abs(x[0]) > 1e-3) == grows


def test_unrest_is_the_share_that_is_left():
    q = random_quadratic()
    rest = law.limit_covariance(q)
    assert law.unrest(q, rest) < 1e-12
    assert 1e-3 <= law.unrest(q, 1.001 * rest) < 0.1


def test_errors_grow_beyond_the_stable_step_and_from_wide_starts():
    q = of(1, 1, 0.2, 1)
    for start, step, count, grows in (
        (0.3, 0.1, 60, False),
        (2.0, 0.1, 5, False),
        (0.3, 1.45, 60, True),
        (5, 0.1, 5, True),
    ):
        path = law.covariances(q, [[start]], step, count)[:, 0, 0]
        assert (law.growth(q, start, path, step, 81) > 100) == grows


def test_followed_particles_rest_on_a_ring():
    start = 0.5 * law.ring(4, True, 0.2) + 0.1 * np.random.default_rng(0).standard_normal((5, 2))
    last = law.followed(start, 0.2, 0.2, 1500)
    away = np.sort(np.linalg.norm(last, axis=1))
    np.testing.assert_allclose(away, [0, *[law.ring_radius(4, True, 0.2)] * 4], atol=1e-6)
    assert np.isinf(law.followed(start, 0.2, 50.0, 100)).all()


def test_rings_are_at_rest():
    for count, centre in ((3, False), (4, True), (5, False), (6, True)):
        x = law.ring(count, centre, 0.2)
        scores = -np.sum((x[:, None] - x) ** 2, axis=-1) / 0.8 + np.sum(x**2, axis=1) / 4.8
        a = np.exp(scores)
        np.testing.assert_allclose(0.8 * x, a @ x / a.sum(axis=1, keepdims=True), atol=1e-12)


def test_divergence_of_one_gaussian():
    """One particle at y: prox is N(y/(1+T), 2T/(1+T) I)."""
    t, y = 0.3, np.array([[0.7, -0.2]])
    v, mean = 2 * t / (1 + t), y[0] / (1 + t)
    assert law.divergence_from_normal(y, t) == pytest.approx(v - 1 - np.log(v) + mean @ mean / 2, rel=1e-10)


def test_what_cannot_be_is_refused():
    with pytest.raises(ArgumentError, match="`preconditioner` must have eigenvalues > 0"):
        law.quadratic(np.eye(2), np.diag([1.0, -1.0]))
    with pytest.raises(ArgumentError, match="`precision` must be symmetric"):
        law.quadratic([[1.0, 0.5], [0.0, 1.0]])
