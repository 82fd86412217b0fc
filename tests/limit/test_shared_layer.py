"""A layer applied again and again: growth of powers of random matrices, and iterates of a matrix model."""

import numpy as np
import pytest
from scipy.special import comb, eval_legendre

from pathlines.architecture import Architecture, Deviations
from pathlines.foundation.errors import ArgumentError
from pathlines.limit.architecture.shared import iterated, linear_power, log_coherent_growth


def encoder(**changes):
    fields = {
        "width": 256, "heads": 8, "layers": 12, "mlp_width": 512, "placement": "post", "mask": "full", "shared": True,
        "deviations": Deviations.equal(0.02),
    }  # fmt: skip
    return Architecture(**{**fields, **changes})


def test_growth_vs_legendre():
    """Σ C(ℓ,k)² v^k = (1-v)^ℓ P_ℓ((1+v)/(1-v)), and the plain sum."""
    for layers, v in ((1, 0.3), (7, 0.05), (40, 0.01)):
        want = (1 - v) ** layers * eval_legendre(layers, (1 + v) / (1 - v))
        assert np.exp(log_coherent_growth(layers, v)) == pytest.approx(want, rel=1e-12)
        plain = sum(comb(layers, k) ** 2 * v**k for k in range(layers + 1))
        assert want == pytest.approx(plain, rel=1e-12)
    assert log_coherent_growth(0, 0.5) == log_coherent_growth(9, 0.0) == 0
    assert log_coherent_growth(4000, 0.01) == pytest.approx(2 * 4000 * np.log1p(0.1), rel=1e-2)


def test_growth_vs_powers_of_matrices():
    """|(I + M)^ℓ x|²/|x|² for a product of Gaussian matrices, 24 draws at d = 200: to 5 standard errors and 1/d."""
    rng, d, v, layers = np.random.default_rng(0), 200, 0.02, 12
    found = []
    for _ in range(24):
        m = np.sqrt(v) / d * rng.normal(size=(d, d)) @ rng.normal(size=(d, d))
        x = rng.normal(size=d)
        y = x
        for _ in range(layers):
            y = y + m @ y
        found.append(y @ y / (x @ x))
    want = np.exp(log_coherent_growth(layers, v))
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert abs(np.mean(found) - want) < 5 * error + want * layers**2 * v / d
    assert want > 1.5 * (1 + v) ** layers  # fresh layers are far below


def test_linear_power_by_hand():
    """gelu has E φ(σz)z = σ/2, whatever σ: a_L = a_m σ_w²/4; erf: σ_w² ↦ 4σ_w²/(π(1+2σ_w²))."""
    power, s = 512 * 0.02**2, 256 * 0.02**2
    assert linear_power(encoder()) == pytest.approx(power * s / 4, rel=1e-4)
    assert linear_power(encoder(activation="erf")) == pytest.approx(power * 4 * s / np.pi / (1 + 2 * s), rel=1e-4)
    assert linear_power(encoder(mlp_width=0)) == 0


def test_iterated_gram():
    gram = np.full((4, 4), 0.3) + 0.7 * np.eye(4)
    assert np.allclose(iterated(encoder(), gram, 0).cosines, gram)
    found = [iterated(encoder(), gram, layers).cosines[0, 1] for layers in (1, 12, 60)]
    assert 0.3 < found[0] < found[1] < found[2] < 1
    with pytest.raises(ArgumentError, match="post"):
        iterated(encoder(placement="pre"), gram, 3)
