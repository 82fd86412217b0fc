import numpy as np
import pytest
from scipy import stats

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.homogenized import mean_field as mf
from pathlines.limit.homogenized.low_temperature import bessel_ratio
from pathlines.limit.homogenized.two_tokens_random import random_covariance


@pytest.mark.parametrize("concentration", [0.0, 0.8, 5.0, 40.0])
def test_nodes_are_quantiles(concentration):
    angles = mf.von_mises_nodes(65, concentration)
    exact = (np.arange(65) + 0.5) / 65
    law = stats.vonmises(concentration) if concentration else stats.uniform(-np.pi, 2 * np.pi)
    np.testing.assert_allclose(law.cdf(angles), exact, atol=1e-14)
    np.testing.assert_allclose(angles, -angles[::-1], atol=1e-14)


def test_quantiles_integrate_faster_than_any_power():
    """Mean of cos θ is I_1/I_0(0.8): the error falls from 5e-3 to rounding between 8 and 64 nodes."""
    errors = [abs(np.cos(mf.von_mises_nodes(n, 0.8)).mean() - bessel_ratio(2, 0.8)) for n in (8, 16, 32, 64)]
    assert errors[0] > 1e-3
    assert errors[2] < 1e-7
    assert errors[3] < 1e-14


@pytest.mark.parametrize("b", [0.5, 2.0, 5.0])
def test_two_atoms_are_two_tokens(b):
    """s_11 and s_12 of a pair do not depend on d: the plane against the one-dimensional formulas."""
    for overlap in (-1.0, -0.5, 0.3, 0.95):
        atoms = [0.0, np.arccos(overlap)]
        own, cross = random_covariance(overlap, b)
        assert mf.own_covariance(atoms, b) == pytest.approx(own, abs=1e-13)
        series = mf.covariance_series(atoms, b)
        assert np.all(series >= 0)
        if abs(overlap) < 0.9:
            assert np.polynomial.polynomial.polyval(overlap, series) == pytest.approx(cross, abs=1e-9)


def test_series_sums_to_the_own_covariance():
    angles = mf.von_mises_nodes(32, 0.8)
    assert mf.covariance_series(angles, 0.8, degree=60).sum() == pytest.approx(
        mf.own_covariance(angles, 0.8), abs=1e-12
    )


def test_zero_scale_is_the_mean():
    angles = np.array([0.3, 1.0, 2.5])
    masses = np.array([1.0, 2.0, 1.0])
    mean = (masses @ np.exp(1j * angles)) / 4
    assert mf.own_covariance(angles, 0.0, masses) == pytest.approx(abs(mean) ** 2, abs=1e-14)
    series = mf.covariance_series(angles, 0.0, masses, degree=4)
    np.testing.assert_allclose(series, [abs(mean) ** 2, 0, 0, 0, 0], atol=1e-14)


@pytest.mark.parametrize("b", [0.5, 3.0, 10.0])
def test_uniform_law(b):
    """Two hundred equal masses on the circle against the Bessel ratio."""
    angles = 2 * np.pi * np.arange(200) / 200
    assert mf.own_covariance(angles, b) == pytest.approx(mf.uniform_own_covariance(2, b), abs=1e-12)


def test_uniform_law_in_other_dimensions():
    """Small b: (λ/d)² with E|g|² = d gives b²/d; and drawn g at d = 5, 5 standard errors."""
    for d in (2, 3, 50):
        assert mf.uniform_own_covariance(d, 1e-3) * d / 1e-6 == pytest.approx(1, rel=1e-5)
    rng = np.random.default_rng(0)
    drawn = bessel_ratio(5, 2.0 * np.linalg.norm(rng.standard_normal((100000, 5)), axis=1)) ** 2
    assert abs(drawn.mean() - mf.uniform_own_covariance(5, 2.0)) < 5 * drawn.std() / np.sqrt(drawn.size)


def test_generator_vs_one_small_layer():
    """E⟨μ', cos kθ⟩ - ⟨μ, cos kθ⟩ per unit of τ over drawn heads (V and -V averaged), within 5 standard errors."""
    rng = np.random.default_rng(21)
    angles, b, v, runs = mf.von_mises_nodes(12, 1.5), 1.3, 1e-4, 20000
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    logits = b * np.einsum("nd,red,ke->rnk", x, rng.standard_normal((runs, 2, 2)), x)
    weight = np.exp(logits - logits.max(axis=2, keepdims=True))
    attended = (weight / weight.sum(axis=2, keepdims=True)) @ x
    kick = np.sqrt(v / 2) * np.einsum("rde,rne->rnd", rng.standard_normal((runs, 2, 2)), attended)
    own = mf.own_covariance(angles, b)
    for k in (1, 2):
        turned = [np.cos(k * np.arctan2((x + s * kick)[..., 1], (x + s * kick)[..., 0])).mean(axis=1) for s in (1, -1)]
        rate = ((turned[0] + turned[1]) / 2 - np.cos(k * angles).mean()) / v
        expected = mf.generator_on_mode(k, own) * np.cos(k * angles).mean()
        assert abs(rate.mean() - expected) < 5 * rate.std() / np.sqrt(runs)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mf.von_mises_nodes(0, 1.0), "`n` must be an integer ≥ 1"),
        (lambda: mf.von_mises_nodes(5, -1.0), "`concentration` must be a finite number ≥ 0"),
        (lambda: mf.own_covariance([], 1.0), "`angles` must"),
        (lambda: mf.own_covariance([0.0, 1.0], 30.0), "`logit_scale` must be a finite number ≥ 0 and ≤ 20"),
        (lambda: mf.own_covariance([0.0, 1.0], 1.0, [1.0]), "`masses` must have shape"),
        (lambda: mf.own_covariance([0.0, 1.0], 1.0, [1.0, 0.0]), "`masses` must be > 0"),
        (lambda: mf.uniform_own_covariance(1, 1.0), "`d` must be an integer ≥ 2"),
        (lambda: mf.generator_on_mode(-1, 0.5), "`order` must be an integer ≥ 0"),
        (lambda: mf.generator_on_mode(1, 1.5), "`own` must be a finite number ≥ 0 and ≤ 1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
