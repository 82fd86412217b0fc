"""Closed forms of Gaussian clouds against reference values, SciPy integration and sampling."""

import numpy as np
import pytest
from mpmath import mp
from scipy.integrate import quad

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.gaussian.context import (
    closure_horizon,
    critical_time,
    entropy_deficit,
    error_prefactor,
    field_covariance,
    rate_exponent,
    scalar_critical_time,
    score_strength,
)
from pathlines.limit.gaussian.dirac import linear_token, unnormalised_blow_up
from pathlines.limit.gaussian.l2 import l2_trace_bound as l2_bound
from pathlines.limit.gaussian.l2 import matrix_l2, scalar_l2, singular_key_blow_up, singular_key_covariance
from pathlines.limit.gaussian.matrices import checked_covariance, factor, square
from pathlines.limit.gaussian.moments import (
    affine_field,
    head,
    moments,
    scaled_blow_up,
    scaled_end,
    softmax_covariances,
)
from pathlines.limit.gaussian.opposed import KINDS, opposed_covariance
from pathlines.limit.gaussian.orthogonal import no_blow_up_ginibre, no_blow_up_query_key, rank_counts
from pathlines.limit.gaussian.sinkhorn import (
    canonical_correlations,
    field_power,
    matrix_sinkhorn,
    scalar_sinkhorn,
    sinkhorn_energy,
    sinkhorn_trace_bound,
)
from pathlines.limit.gaussian.softmax import (
    blow_up_bound,
    commuting_eigenvalues,
    identity_value_blow_up,
    identity_value_covariance,
    identity_value_limit,
    isotropic_angles,
    profile_error,
    rank_one,
    rank_one_profiles,
    scalar_mean,
    scaled_eigenvalues,
)

A = np.array([[0.5, 0.2], [-0.3, 0.4]])
V = np.array([[0.3, -0.5], [0.4, 0.2]])
A2 = np.array([[-0.4, 0.1], [0.2, 0.3]])
V2 = np.array([[0.2, 0.1], [0.0, -0.3]])
Q = np.array([[0.4, 0.3], [0.1, -0.6]])
K = np.array([[0.6, 0.1], [-0.2, 0.5]])
MEAN = np.array([0.3, -0.2])
COV = np.array([[1.0, 0.3], [0.3, 0.7]])
GRADIENT = np.array([[0.5, -0.05], [-0.05, 0.4]])
HALF = np.eye(2) / 2

REFERENCES = {
    "softmax": ("softmax", [(V, A, None)], {}, [0.582614717614, -0.007947034215],
                [1.296989908323, 0.551074153577, 1.335633610966]),
    "two heads": ("softmax", [(V, A, None), (V2, A2, None)], {}, [0.597018859686, 0.041470112708],
                  [1.157630572622, 0.539983572954, 1.088285055652]),
    "l2": ("l2", [(V, Q, K)], {}, [0.415341120239, -0.103115141968],
           [1.120695501399, 0.606064615607, 0.931060372475]),
    "sinkhorn c=1": ("sinkhorn", [(V, A, None)], {"eps": 0.7}, [0.490640452426, -0.070377468716],
                     [1.347236616581, 0.495495834755, 1.261582214631]),
    "sinkhorn c=1/eps": ("sinkhorn", [(V, A, None)], {"eps": 0.7, "prefactor": 1 / 0.7},
                         [0.564570197171, 0.017805425169], [1.568765563319, 0.573677759952, 1.661025957788]),
    "linear": ("linear", [(V, A, None)], {}, [0.398955060448, -0.183344968901],
               [1.419746288702, 0.635178263044, 1.415151658070]),
}  # fmt: skip


@pytest.mark.parametrize("name", REFERENCES)
def test_moments_vs_reference_values(name):
    kind, heads, options, mean, cov = REFERENCES[name]
    heads = [head(v, query=q, key=np.eye(2) if k is None else k) for v, q, k in heads]
    found = moments(kind, heads, MEAN, COV, [1.0], **options)
    np.testing.assert_allclose(found.mean[-1], mean, atol=2e-12)
    np.testing.assert_allclose(found.covariance[-1][[0, 0, 1], [0, 1, 1]], cov, atol=2e-12)


def test_identity_value_vs_references_and_moments():
    time, direction = identity_value_blow_up(A, COV)
    assert time == pytest.approx(0.967210227575, rel=1e-11)
    at_half = identity_value_covariance(0.5, A, COV)
    np.testing.assert_allclose(
        at_half[[0, 0, 1], [0, 1, 1]], [2.040623523855, 0.727444496930, 1.066198798839], atol=1e-11
    )
    np.testing.assert_allclose(
        at_half, moments("softmax", [head(np.eye(2), A)], [0, 0], COV, [0.5]).covariance[-1], atol=1e-10
    )
    late = identity_value_covariance(time * (1 - 1e-9), A, COV)
    assert abs(direction @ np.linalg.eigh(late)[1][:, -1]) == pytest.approx(1, abs=1e-9)
    with pytest.raises(ArgumentError, match=r"blow-up time 0\.967"):
        identity_value_covariance(1.0, A, COV)
    assert identity_value_blow_up(-A, COV) == (np.inf, None)
    assert identity_value_blow_up(
        [[1.740720621989e-01, 4.845207445191e-01], [2.802176621916e-01, 1.306821412647]], HALF
    )[0] == pytest.approx(0.702340493746, rel=1e-10)


def test_limit_of_a_line_vs_reference_and_long_time():
    q = np.array([[0.40632364668, 0.91372922365]])
    limit = identity_value_limit(-q.T @ q, HALF)
    np.testing.assert_allclose(limit[[0, 0, 1], [0, 1, 1]], [0.417450547, -0.185634895, 0.082549453], atol=1e-9)
    far = identity_value_covariance(1e7, -q.T @ q, HALF)
    np.testing.assert_allclose(far, limit, atol=1e-6)
    assert np.all(identity_value_limit(-np.eye(2), HALF) == 0)
    with pytest.raises(ArgumentError, match="A \\+ Aᵀ ≤ 0"):
        identity_value_limit(A, HALF)


def test_eigenvalues_at_a_scale_free_time():
    """The time at which |V||A|∫tr Σ dt, by quadrature, is s; late, what vanishes is |V||A|/(2sq²) of the rest."""
    rng = np.random.default_rng(0)
    for d, t in ((2, 0.3), (3, 3.0), (5, 40.0)):
        q, g = rng.standard_normal((d // 2, d)), rng.standard_normal((d, d))
        pace = np.sqrt(d) * np.linalg.norm(q.T @ q)

        def trace(t, score=-q.T @ q, start=g @ g.T):
            return np.trace(identity_value_covariance(t, score, start))

        s = pace * quad(trace, 0.0, t, epsabs=0, epsrel=1e-11, limit=200)[0]
        expected = np.linalg.eigvalsh(identity_value_covariance(t, -q.T @ q, g @ g.T))[::-1]
        np.testing.assert_allclose(scaled_eigenvalues(s, q[None], g[None])[0], expected, rtol=1e-7)
    q = np.diag([3.0, 0.1])[:, [0, 0, 1]] * [1.0, 0.0, 1.0]
    late = scaled_eigenvalues(1e9, q[None], np.eye(3)[None])[0]
    left = np.sqrt(3) * np.linalg.norm(q.T @ q) / 2e9
    np.testing.assert_allclose(late[1:] / late[0], [left / 0.01, left / 9.0], rtol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_opposed_queries_vs_integration_and_limit(kind):
    """K = -Q with fewer queries than axes, at early and late times; the limit is that of V = I."""
    rng = np.random.default_rng(3)
    q, g = rng.standard_normal((2, 4)), rng.standard_normal((4, 4))
    start, times = g @ g.T / 4 + 0.2 * np.eye(4), [0.2, 1.0, 6.0]
    one = head(np.eye(4), query=q, key=-q)
    found = moments(kind, [one], np.zeros(4), start, times, eps=0.7, prefactor=1 / 0.7).covariance
    for t, expected in zip(times, found, strict=True):
        np.testing.assert_allclose(opposed_covariance(kind, t, q, start, 0.7), expected, atol=1e-9)
    limit = opposed_covariance(kind, np.inf, q, start, 0.7)
    np.testing.assert_allclose(limit, identity_value_limit(-q.T @ q, start), atol=1e-12)
    assert np.abs(opposed_covariance(kind, 1e6, q, start, 0.7) - limit).max() < 1e-5


def test_scalar_forms_vs_references():
    assert commuting_eigenvalues(0.6, 0.7, 0.5, 1.3) == pytest.approx(2.863436123348, rel=1e-12)
    assert np.isnan(commuting_eigenvalues(3.0, 0.7, 0.5, 1.3))
    assert scalar_mean(0.6, 0.7, 0.5, 1.3, 0.4) == pytest.approx(0.903515791101, rel=1e-12)
    sigma, alpha = scalar_l2(2.0, 0.7, 0.6, 0.9, 1.3, 0.4)
    assert (sigma, alpha) == (pytest.approx(5.814527256984, rel=1e-12), pytest.approx(1.115397075307, rel=1e-12))
    (sigma,), _ = scalar_sinkhorn(2.5, 0.7, -0.5, 0.4, 1.3)
    assert sigma == pytest.approx(0.245582568605, rel=1e-11)
    assert abs(scalar_sinkhorn(0.0, 0.7, -0.5, 0.4, 1.3)[1][0]) == pytest.approx(0.738574654518, rel=1e-11)
    assert scalar_sinkhorn(1.0, 0.7, 0.0, 0.4, 1.3)[0][0] == 1.3
    assert unnormalised_blow_up(1.0, 0.5, 0.7) == pytest.approx(0.530028025925, rel=1e-11)
    assert linear_token(0.3, 1.0, 0.5, 0.7) == pytest.approx((0.7**-2 - 0.3) ** -0.5)
    assert np.isnan(linear_token(10.0, 1.0, 0.5, 0.7))


def test_scalar_l2_far_out_vs_mpmath_and_with_a_constant_variance():
    """Where e^{y_0} overflows a double: ln y + y = ln y_0 + y_0 - 2vQt/K solved with 40 digits."""
    mp.dps = 40
    sigma, _ = scalar_l2(1.0, 0.7, 0.6, 0.9, 1e-4)
    y0 = 1 / (2 * mp.mpf("0.81") * mp.mpf("1e-4"))
    right = mp.log(y0) + y0 - 2 * mp.mpf("0.7") * mp.mpf("0.6") / mp.mpf("0.9")
    y = mp.findroot(lambda x: mp.log(x) + x - right, y0)
    assert float(sigma) == pytest.approx(float(1 / (2 * mp.mpf("0.81") * y)), rel=1e-13)
    sigma, alpha = scalar_l2(1.5, 0.7, 0.0, 0.9, 1.3, 0.4)
    found = moments("l2", [head([[0.7]], query=[[0.0]], key=[[0.9]])], [0.4], [[1.3]], [1.5])
    assert (sigma, alpha) == (pytest.approx(found.covariance[-1, 0, 0]), pytest.approx(found.mean[-1, 0], rel=1e-11))


def test_rank_one_vs_references_and_closure():
    v, a, w = np.array([[0.2, -1], [0.8, 0.1]]), np.array([[1, 0.3], [0.2, -0.8]]), np.array([0.9, 0.3])
    found = rank_one(3.0, v, a, w)
    assert found.tau == pytest.approx(0.780682919265, abs=1e-11)
    np.testing.assert_allclose(found.vector, [0.569604551669, 0.828409581246], atol=1e-11)
    last = rank_one(np.inf, v, a, w)
    assert last.tau == pytest.approx(0.787486775486, abs=1e-11)
    np.testing.assert_allclose(last.vector, [0.564727521208, 0.832061610186], atol=1e-11)
    assert last.vector @ a @ last.vector == pytest.approx(0, abs=1e-13)
    cov = moments("softmax", [head(v, a)], [0, 0], np.outer(w, w), [3.0]).covariance[-1]
    np.testing.assert_allclose(np.outer(found.vector, found.vector), cov, atol=1e-10)


def test_nothing_is_said_past_a_blow_up():
    """τ = -½ ln(1 - 2t) of rank one and 1/(1 - t/3) of the singular key, up to their ends."""
    assert rank_one(0.49, [[1.0]], [[1.0]], [1.0]).tau == pytest.approx(-0.5 * np.log(0.02), rel=1e-10)
    with pytest.raises(ArgumentError, match=r"below the blow-up time 0\.5"):
        rank_one(1.0, [[1.0]], [[1.0]], [1.0])
    for t in (3.0, 4.0):
        with pytest.raises(ArgumentError, match="below the blow-up time 3"):
            singular_key_covariance(t, 1.0, 1.0, 1.0, [[1.0, 0.5], [0.5, 1.0]])


def test_singular_starts():
    """A token at the origin stays; the limits of singular covariances against late times."""
    assert linear_token(1.0, 1.0, 1.0, 0.0) == 0.0
    w = np.array([0.6, 0.8])
    for score, start in (
        (-np.diag([1.0, 0.0]), np.diag([1.0, 0.0])),
        (-np.diag([1.0, 0.0]), np.diag([0.0, 2.0])),
        (-np.diag([1.0, 0.0]), np.outer(w, w)),
        (np.array([[0.0, 1.0], [-1.0, 0.0]]), COV),
        (-np.diag([1.0, 0.0]), COV),
        (-np.diag([1.0, 0.0]), np.zeros((2, 2))),
    ):
        late = identity_value_covariance(1e9, score, start)
        np.testing.assert_allclose(identity_value_limit(score, start), late, atol=1e-8)


def test_matrix_forms_vs_moments():
    zero = [0.0, 0.0]
    exact = moments("l2", [head(0.7 * np.eye(2), query=0.5 * K, key=K)], zero, COV, [1.0]).covariance[-1]
    np.testing.assert_allclose(matrix_l2(1.0, 0.7, 0.5, K, COV), exact, atol=1e-11)
    exact = moments("sinkhorn", [head(0.7 * np.eye(2), -GRADIENT)], zero, COV, [1.0], eps=0.4, prefactor=2.5)
    np.testing.assert_allclose(matrix_sinkhorn(1.0, 0.7, -GRADIENT, 0.4, COV, 2.5), exact.covariance[-1], atol=1e-11)
    start = np.array([[1.0, 0.5], [0.5, 1.0]])
    assert singular_key_blow_up(1.0, 1.0, 1.0, start) == 3.0
    near = singular_key_covariance(2.97, 1.0, 1.0, 1.0, start)
    np.testing.assert_allclose(near, [[1, 50], [50, 1e4]], rtol=1e-9)
    exact = moments("l2", [head(np.diag([0, 1.0]), query=[[0, 1.0]], key=[[1.0, 0]])], zero, start, [2.0]).covariance[
        -1
    ]
    np.testing.assert_allclose(singular_key_covariance(2.0, 1.0, 1.0, 1.0, start), exact, atol=1e-9)
    assert singular_key_blow_up(1.0, -1.0, 1.0, start) == np.inf


def test_bounds_hold():
    times = np.linspace(0.1, 2.0, 5)
    l2 = moments("l2", [head(V, query=Q, key=K)], [0, 0], COV, times).covariance
    assert np.all(np.trace(l2, axis1=1, axis2=2) <= l2_bound(times, V, Q, K, COV))
    plan = moments("sinkhorn", [head(V, A)], [0, 0], COV, times, eps=0.5, prefactor=2.0).covariance
    assert np.all(np.trace(plan, axis1=1, axis2=2) <= sinkhorn_trace_bound(times, V, COV, 2.0))
    v, a = np.diag([1.0, 0.5]), np.array([[0.6, 0.1], [-0.1, 0.3]])
    assert scaled_blow_up([head(v, a)], COV)[0] <= blow_up_bound(v, a, COV) < np.inf
    assert blow_up_bound(V, A, COV) == np.inf


def test_general_blow_up_vs_reference_and_profile_rule():
    v, a = [[1, 0.3], [0.2, -0.5]], [[0.8, -0.2], [0.1, 0.4]]
    time, direction = scaled_blow_up([head(v, a)], COV)
    assert time == pytest.approx(0.5781514753, rel=1e-9)
    ((rate, u),) = rank_one_profiles(v, a)
    assert rate == pytest.approx(1.038987, abs=1e-6)
    np.testing.assert_allclose(np.abs(u), [0.991661, 0.128872], atol=1e-6)
    np.testing.assert_allclose(direction, u * np.sign(u[0]), atol=1e-5)
    assert scaled_blow_up([head(np.eye(2), A)], COV)[0] == pytest.approx(identity_value_blow_up(A, COV)[0], rel=1e-9)
    assert np.isnan(scaled_blow_up([head(np.eye(2), -np.eye(2))], COV)[0])
    assert rank_one_profiles([[0.0, -1.0], [1.0, 0.0]], a) == []


def test_isotropic_directions():
    a = np.array([[-0.16128076862386, -0.90782936427961], [-0.40135891460423, -0.75123076575794]])
    np.testing.assert_allclose(isotropic_angles(a), [121.8560, 172.4014], atol=1e-4)
    for degrees in isotropic_angles(a):
        u = np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])
        assert u @ a @ u == pytest.approx(0, abs=1e-14)
    assert len(isotropic_angles(np.eye(2))) == 0


def test_sinkhorn_plan_vs_references_and_energy_identity():
    np.testing.assert_allclose(canonical_correlations(GRADIENT, 0.7, COV), [0.530592213987, 0.302468889469], atol=1e-12)
    assert sinkhorn_energy(GRADIENT, 0.7, [0, 0], COV) == pytest.approx(0.279255494854, abs=1e-12)
    h = 1e-4
    path = moments("sinkhorn", [head(GRADIENT, GRADIENT)], MEAN, COV, [h, 2 * h, 3 * h], eps=0.7, prefactor=1 / 0.7)
    F = [sinkhorn_energy(GRADIENT, 0.7, m, c) for m, c in zip(path.mean, path.covariance, strict=True)]
    power = field_power(GRADIENT, GRADIENT, 0.7, path.mean[1], path.covariance[1], 1 / 0.7)
    assert (F[2] - F[0]) / (2 * h) == pytest.approx(2 * power, rel=1e-6)


def test_context_laws_vs_references_and_sampling():
    assert error_prefactor(0.8 * A, V, COV) == pytest.approx(0.6873085845, rel=1e-9)
    assert score_strength(0.8 * A, COV) ** 2 == pytest.approx(0.2041153309, rel=1e-9)
    assert error_prefactor(4 * A, V, COV) == np.inf
    assert entropy_deficit(A, MEAN, COV) == pytest.approx(0.209455, abs=1e-6)
    np.testing.assert_allclose(rate_exponent([0.3, 2**-0.5, 1.0, 2.0]), [1, 1, 0.6180339887, 0.2071067812], atol=1e-9)
    assert scalar_critical_time(1.0, 0.5, 1.0) == pytest.approx(1 - np.sqrt(2) * 0.5)
    rng = np.random.default_rng(0)
    x, n, runs = np.array([0.5, -0.4]), 400, 1500
    tokens = rng.standard_normal((runs, n, 2)) @ np.linalg.cholesky(COV).T
    scores = tokens @ (A @ x)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    fields = np.einsum("rn,rnd->rd", weights / weights.sum(axis=1, keepdims=True), tokens) @ V.T
    exact = field_covariance(x, A, V, COV)
    found = n * np.cov(fields.T)
    assert np.abs(found - exact).max() < 5 * np.sqrt(2 / runs) * np.trace(exact)  # 5 standard errors of a variance
    np.testing.assert_allclose(
        fields.mean(axis=0), V @ COV @ A @ x, atol=5 * np.sqrt(np.trace(exact) / (n * runs)) + 2 / n
    )


def test_trust_says_yes_no_and_why():
    good = closure_horizon(0.8 * A, V, COV, 10**6)
    assert (good.verdict, good.exponent) == ("yes", 1.0) and good.tokens_needed < 10**6
    assert closure_horizon(0.8 * A, V, COV, int(good.tokens_needed / 4)).verdict == "roughly"
    assert closure_horizon(0.8 * A, V, COV, 2).verdict == "no"
    bad = closure_horizon(4 * A, V, COV, 10**9)
    assert bad.verdict == "no" and "1/√2" in bad.reason and bad.exponent < 1


def test_probabilities_vs_closed_forms_and_sampling():
    assert no_blow_up_ginibre(2) == pytest.approx((2 - np.sqrt(2)) / 4, rel=1e-10)
    assert no_blow_up_ginibre(3) == pytest.approx((np.pi - 2 * np.sqrt(2)) / (4 * np.pi), rel=1e-9)
    assert no_blow_up_query_key(2) == pytest.approx(0.5 - np.pi / 8, rel=1e-12)
    rng = np.random.default_rng(1)
    q, k = rng.standard_normal((2, 20000, 3, 3))
    score = np.swapaxes(k, 1, 2) @ q
    seen = np.mean(np.linalg.eigvalsh(score + np.swapaxes(score, 1, 2))[:, -1] <= 0)
    exact = no_blow_up_query_key(3)
    assert abs(seen - exact) < 5 * np.sqrt(exact / 20000)
    for d in (3, 4, 5):
        m = -(-d // 2)
        g = rng.standard_normal((4000, m, m))
        counts = np.sum(np.linalg.eigvalsh(g @ np.swapaxes(g, 1, 2)) > 0.1, axis=1)
        probabilities = rank_counts(d, 0.1)
        assert probabilities.sum() == pytest.approx(1)
        seen = np.bincount(counts, minlength=m + 1) / 4000
        assert np.all(np.abs(seen - probabilities) < 5 * np.sqrt(0.25 / 4000))


def test_matrices_are_checked():
    with pytest.raises(ArgumentError, match="square matrix, but has shape \\(2, 3\\)"):
        square("V", np.ones((2, 3)))
    with pytest.raises(ArgumentError, match="must be 3 × 3, but is 2 × 2"):
        square("V", np.eye(2), 3)
    with pytest.raises(ArgumentError, match="has the eigenvalue -1"):
        checked_covariance("Σ", np.diag([1.0, -1.0]))
    with pytest.raises(ArgumentError, match="symmetric"):
        checked_covariance("Σ", [[1.0, 0.5], [0.0, 1.0]])
    with pytest.raises(ArgumentError, match="positive eigenvalue"):
        factor("Σ", np.zeros((2, 2)))
    assert factor("Σ", np.outer([1.0, 2], [1.0, 2])).shape == (2, 1)
    with pytest.raises(ArgumentError, match="one of"):
        affine_field("sigmoid", [head(V, A)], MEAN, COV)
    with pytest.raises(ArgumentError, match="eps"):
        moments("sinkhorn", [head(V, A)], MEAN, COV, [1.0], eps=0.0)
    with pytest.raises(ArgumentError, match="p × 2"):
        head(V, query=np.ones((2, 3)), key=np.ones((2, 3)))


def test_factors_and_covariances_are_one_path():
    heads = [head(V, A), head(V2, A2)]
    found = softmax_covariances(heads, COV, [0.3, 1.0])
    np.testing.assert_allclose(found, moments("softmax", heads, [0.0, 0.0], COV, [0.3, 1.0]).covariance, atol=1e-9)
    late = softmax_covariances([head(np.eye(2), A)], COV, [0.96])[0]
    np.testing.assert_allclose(late, identity_value_covariance(0.96, A, COV), rtol=1e-8)


def test_scale_free_end():
    """Blow-up along the eigenvector of C07; convergence to rank one; collapse for V = I, A = -I."""
    value, score = [[1.0, 0.3], [0.2, -0.5]], [[0.8, -0.2], [0.1, 0.4]]
    growth, direction = scaled_end([head(value, score)], COV)
    assert growth > 24.9
    np.testing.assert_allclose(np.abs(direction), [0.991661, 0.128872], atol=1e-6)
    growth, direction = scaled_end([head(np.eye(2), [[-1.0, 0.0], [0.0, 0.0]])], HALF)
    np.testing.assert_allclose([growth, abs(direction[1])], [np.log(0.5), 1.0], atol=1e-4)
    assert scaled_end([head(np.eye(2), -np.eye(2))], HALF)[0] < -10


def test_what_is_left_of_the_next_eigenvector():
    """w = e^{τV}w_0 with |w|² = e^growth."""
    value, growth = np.diag([0.8, 0.7]), 12.0
    tau = growth / (2 * 0.8)
    w = np.exp(tau * np.diag(value))
    assert profile_error(value, 0.8, growth) == pytest.approx(w[1] / w[0], rel=1e-12)


def test_when_trust_ends():
    """On a line t_c = T*(1 - √2 θ_0); at once, and never."""
    found = critical_time([[0.25]], [[1.0]], [[1.0]], 2.0)
    assert found == pytest.approx(scalar_critical_time(1.0, 0.25, 1.0), rel=1e-8)
    assert critical_time([[1.0]], [[1.0]], [[1.0]], 2.0) == 0.0
    assert critical_time([[0.25]], [[-1.0]], [[1.0]], 50.0) == np.inf
    with pytest.raises(ArgumentError, match="of width 2"):
        moments("softmax", [head(np.eye(3), np.eye(3))], [0.0, 0.0], COV, [1.0])
