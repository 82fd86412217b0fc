import math

import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.homogenized.parameters import HomogenizedParameters, beta_of, logit_scale_of


def test_derived_numbers_by_hand():
    """n=8, d=16, H=2, η=0.3, β=0.5, σ_A=1, p=d, σ_V²=1/d: every symbol written out."""
    p = HomogenizedParameters.gaussian(8, 16, 0.3, heads=2, beta=0.5, layers=40)
    assert p.variance_proxy == pytest.approx(15 / 16, rel=1e-15)
    assert p.alpha == pytest.approx(0.3 * (15 / 16) / 2, rel=1e-15)
    assert p.v == pytest.approx(0.045, rel=1e-15)
    assert p.logit_scale == pytest.approx(2.0, rel=1e-15)
    assert p.tau() == pytest.approx(1.8, rel=1e-15)
    assert p.tau(10) == pytest.approx(0.45, rel=1e-15)
    assert p.time() == pytest.approx(12.0, rel=1e-15)
    assert p.layers_for(1.8) == pytest.approx(40, rel=1e-15)
    # β_eff = β d σ_A² when p = d
    assert p.beta_eff == pytest.approx(0.5 * 16, rel=1e-15)


def test_clock_identities():
    """τ = α t dσ_V²/ς², which is ηt/H for σ_V² = 1/d; v = αη d/(d-1)."""
    p = HomogenizedParameters.gaussian(4, 10, 0.2, heads=3, logit_scale=1.0, sigma_V=0.7, layers=25)
    assert p.tau() == pytest.approx(p.alpha * p.time() * p.d * p.sigma_V**2 / p.variance_proxy, rel=1e-14)
    assert p.v == pytest.approx(p.alpha * p.step * p.d / (p.d - 1), rel=1e-14)
    q = HomogenizedParameters.gaussian(4, 10, 0.2, heads=3, logit_scale=1.0, layers=25)
    assert q.tau() == pytest.approx(q.step * q.time() / q.heads, rel=1e-14)


def test_logit_scale_is_the_standard_deviation_of_a_logit():
    """b against sampled logits β xᵀWW'ᵀy of two unit tokens, p ≠ d; 5 standard errors of a variance of products."""
    d, p, beta, sigma_A = 6, 9, 0.7, 1.3
    rng = np.random.default_rng(5)
    runs = 40000
    w, w2 = sigma_A * rng.standard_normal((2, runs, d, p))
    x, y = np.eye(d)[0], np.full(d, d**-0.5)
    logit = beta * np.einsum("rp,rp->r", np.einsum("i,rip->rp", x, w), np.einsum("i,rip->rp", y, w2))
    square = logit**2
    error = square.std() / np.sqrt(runs)
    assert abs(square.mean() - logit_scale_of(beta, sigma_A, p) ** 2) < 5 * error


def test_beta_eff_is_the_size_of_the_field():
    """β|Ax| concentrates at β_eff = b√d for large d and p, also when p ≠ d."""
    d, p = 400, 100
    rng = np.random.default_rng(6)
    par = HomogenizedParameters.gaussian(4, d, 0.1, beta=0.05, qk_dim=p)
    w, w2 = rng.standard_normal((2, 20, d, p))
    size = 0.05 * np.linalg.norm(np.einsum("rip,rp->ri", w, w2[:, 0]), axis=1)
    # relative spread of one |Ax| is about √(1/(2p)+1/(2d)) = 0.08
    assert abs(size.mean() / par.beta_eff - 1) < 5 * 0.08 / np.sqrt(20)


def test_beta_and_logit_scale_are_inverse():
    for beta, sigma_A, p in ((0.3, 1.0, 16), (2.0, 0.25, 64), (0.0, 1.0, 1)):
        assert beta_of(logit_scale_of(beta, sigma_A, p), sigma_A, p) == pytest.approx(beta, rel=1e-15)
    given = HomogenizedParameters.gaussian(4, 8, 0.1, logit_scale=2.0, qk_dim=4)
    again = HomogenizedParameters.gaussian(4, 8, 0.1, beta=given.beta, qk_dim=4)
    assert again.logit_scale == pytest.approx(2.0, rel=1e-15)


def test_infinite_key_dimension():
    p = HomogenizedParameters.gaussian(4, 8, 0.1, logit_scale=2.0, qk_dim=math.inf)
    assert p.logit_scale == 2.0
    assert p.beta == 0.0
    assert p.beta_eff == pytest.approx(2.0 * math.sqrt(8))


def test_display():
    p = HomogenizedParameters.gaussian(4, 8, 0.1, logit_scale=2.0, qk_dim=math.inf, layers=100)
    shown = "\n".join(p.lines())
    for piece in ("ς²", "α", "v", "b ", "τ", "p = ∞", "L = 100"):
        assert piece in shown
    numbers = p.as_dict()
    assert numbers["tau"] == p.tau()
    assert numbers["heads"] == 1
    assert "layers" not in HomogenizedParameters.gaussian(4, 8, 0.1, beta=1.0).as_dict()
    assert not any(line.startswith("τ") for line in HomogenizedParameters.gaussian(4, 8, 0.1, beta=1.0).lines())


def test_parameters_are_values():
    p = HomogenizedParameters.gaussian(4, 8, 0.1, beta=1.0)
    assert p == HomogenizedParameters.gaussian(4, 8, 0.1, beta=1.0)
    assert hash(p) == hash(HomogenizedParameters.gaussian(4, 8, 0.1, beta=1.0))
    with pytest.raises(AttributeError):
        p.step = 0.2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 0}, "`n` must be an integer ≥ 1"),
        ({"d": 1}, "`d` must be an integer ≥ 2"),
        ({"heads": 0}, "`heads` must be an integer ≥ 1"),
        ({"heads": 1.5}, "`heads` must be an integer ≥ 1"),
        ({"step": 0.0}, "`step` must be a finite number > 0"),
        ({"step": -0.1}, "`step` must be a finite number > 0"),
        ({"beta": -1.0}, "`beta` must be a finite number ≥ 0"),
        ({"beta": None}, "`beta` must be given, or else `logit_scale`"),
        ({"logit_scale": 1.0}, "`beta` must be given, or else `logit_scale`"),
        ({"sigma_V": 0.0}, "`sigma_V` must be a finite number > 0"),
        ({"sigma_A": 0.0}, "`sigma_A` must be a finite number > 0"),
        ({"sigma_A": math.inf}, "`sigma_A` must be a finite number"),
        ({"qk_dim": 0}, "`qk_dim` must be a whole number ≥ 1 or inf"),
        ({"qk_dim": 2.5}, "`qk_dim` must be a whole number ≥ 1 or inf"),
        ({"qk_dim": math.inf}, "`qk_dim` must be finite when `beta` is given"),
        ({"layers": -1}, "`layers` must be an integer ≥ 0"),
    ],
)
def test_bad_input(change, message):
    arguments = {"n": 4, "d": 8, "step": 0.1, "beta": 1.0} | change
    with pytest.raises(ArgumentError, match=message) as caught:
        HomogenizedParameters.gaussian(**arguments)
    assert "\n" not in str(caught.value)


def test_depth_must_be_known():
    with pytest.raises(ArgumentError, match="`layers` must be given"):
        HomogenizedParameters.gaussian(4, 8, 0.1, beta=1.0).tau()
