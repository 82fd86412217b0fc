"""The fields of a finite law against reference numbers, complex differences and the engine."""

import jax.numpy as jnp
import numpy as np
import pytest

import pathlines as pl
from pathlines.foundation.errors import ArgumentError
from pathlines.limit.homogenized.finite_law import HeadFields, tangent
from references import finite_heads as two


def law_sde(p=(0.5, 0.5), **changes):
    m = len(p)
    setting = {"beta": two.BETA, "step": 0.1, **changes}
    return pl.limit.homogenized.FiniteLawSDE(
        values=two.VALUES[:m], scores=two.SCORES[:m], probabilities=np.array(p), **setting
    )


@pytest.mark.parametrize(
    ("p", "drift", "squares"),
    [
        (0.5, (-0.055662159, 0.020003021, -0.017225836), (0.086821863, 0.056955880)),
        (0.2, (-0.187219616, 0.189207020, 0.102740634), (0.300055232, 0.036451763)),
    ],
)
def test_drift_and_noise_at_the_start(p, drift, squares):
    sde = law_sde((p, 1 - p))
    found, noise = sde.drift(two.start()), sde.noise(two.start())
    assert found[0] == pytest.approx(drift, abs=2e-9)
    assert (np.sum(found**2), np.sum(noise**2)) == pytest.approx(squares, abs=2e-9)
    if p == 0.5:
        assert np.abs(noise[0, 0]) == pytest.approx((0.070570585, 0.091795934, 0.065711377), abs=2e-9)


@pytest.mark.parametrize("corrector", ["none", "paper", "full"])
@pytest.mark.parametrize("update", ["ambient", "tangent"])
def test_drift_is_that_of_the_engine(corrector, update):
    """The engine differentiates automatically and averages over atoms in another way."""
    law = pl.weights.MixtureHeads(two.VALUES, two.SCORES, [0.3, 0.3, 0.4])
    setting = {"step": 0.2, "heads": 2, "corrector": corrector, "update": update}
    ode = pl.model.homogenized.HomogenizedODE(law, two.BETA, **setting)
    x = two.start(5)
    assert law_sde((0.3, 0.3, 0.4), **setting).drift(x) == pytest.approx(
        np.asarray(ode.drift(jnp.asarray(x), 0.0)), abs=1e-14
    )


def test_noises_carry_the_covariance_of_the_heads():
    """Σ_r Σ_r Σ_rᵀ = (η/H) E[Pξ (Pξ)ᵀ] for all pairs of tokens, with p_a(δ_ab - p_b) written out."""
    sde, x = law_sde((0.3, 0.3, 0.4), heads=3), two.start(5)
    noise = sde.noise(x).reshape(2, -1)
    fields = tangent(x, HeadFields(sde, x).fields).reshape(3, -1)
    p = sde.probabilities
    assert noise.T @ noise == pytest.approx(0.1 / 3 * fields.T @ (np.diag(p) - np.outer(p, p)) @ fields, abs=1e-16)


def test_change_is_the_derivative():
    sde, x = law_sde((0.3, 0.3, 0.4)), two.start(5)
    u, h = np.random.default_rng(1).normal(size=x.shape), 1e-5
    slope = (HeadFields(sde, x + h * u).fields - HeadFields(sde, x - h * u).fields) / (2 * h)
    assert HeadFields(sde, x).change(u) == pytest.approx(slope, abs=1e-8)


def test_stratonovich_drift_from_the_field_alone():
    """D - ½ Σ_r P DΣ_r[Σ_r] with Σ_r differentiated along the sphere."""
    sde, x, h = law_sde((0.3, 0.3, 0.4)), two.start(5), 1e-5
    connection = np.zeros_like(x)
    for r, direction in enumerate(sde.noise(x)):
        ends = [(y / np.linalg.norm(y, axis=1, keepdims=True)) for y in (x + h * direction, x - h * direction)]
        connection += tangent(x, (sde.noise(ends[0])[r] - sde.noise(ends[1])[r]) / (2 * h))
    assert sde.stratonovich(x) == pytest.approx(sde.drift(x) - connection / 2, abs=1e-10)


def test_leaves_are_configurations():
    sde = law_sde((0.3, 0.3, 0.4))
    x = np.stack([two.start(5), two.start(5)[::-1], -two.start(5)], axis=-1)
    for field in (sde.drift, sde.noise, sde.stratonovich):
        apart = np.stack([field(x[..., k]) for k in range(3)], axis=-1)
        assert field(x) == pytest.approx(apart, abs=1e-15)


def test_noiseless_leaves_out_the_last_term_only():
    """At many heads the last term is gone."""
    full, less = law_sde(heads=10**9), law_sde(heads=10**9, corrector="noiseless")
    assert full.drift(two.start()) == pytest.approx(less.drift(two.start()), abs=1e-9)
    gap = np.abs(law_sde().drift(two.start()) - law_sde(corrector="noiseless").drift(two.start())).max()
    assert gap > 1e-3


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"corrector": "half"}, "`corrector` must be one of"),
        ({"update": "radial"}, "`update` must be one of"),
        ({"step": 0.0}, "`step` must be"),
        ({"heads": 0}, "`heads` must be"),
    ],
)
def test_refused(changes, says):
    with pytest.raises(ArgumentError, match=says):
        law_sde(**changes)
    with pytest.raises(ArgumentError, match="sum to 1"):
        law_sde((0.5, 0.6))
