"""Measures about an axis. Reference values: section 9 of the specification 04-metastability-and-modes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import eval_gegenbauer, eval_legendre

from pathlines.domain.circle_law import density_moments
from pathlines.foundation.errors import ArgumentError, FormError
from pathlines.integrate import ensemble, flow
from pathlines.limit.metastability.growth import growth_rates
from pathlines.model.metastability.circle_density import CircleDensity
from pathlines.model.metastability.zonal import ZonalMeasure
from pathlines.model.metastability.zonal_start import (
    QuietZonal,
    zonal_polynomials,
    zonal_quiet_start,
    zonal_rule,
    zonal_start,
)
from pathlines.observable.patterns import fourier_moments, interaction_energy, zonal_moments


@pytest.mark.parametrize("d", [2, 3, 7])
def test_polynomials(d):
    s = np.linspace(-1, 1, 9)
    found = np.asarray(zonal_polynomials(jnp.asarray(s), 8, d))
    for k in range(9):
        exact = np.cos(k * np.arccos(s)) if d == 2 else eval_legendre(k, s) if d == 3 else (
            eval_gegenbauer(k, d / 2 - 1, s) / eval_gegenbauer(k, d / 2 - 1, 1.0))  # fmt: skip
        np.testing.assert_allclose(found[k], exact, atol=1e-14)


@pytest.mark.parametrize("d", [2, 3, 64, 2000])
def test_rule(d):
    """E s² = 1/d, E s⁴ = 3/(d(d+2))."""
    s, w = zonal_rule(40, d)
    assert w @ s**2 == pytest.approx(1 / d, rel=1e-11)
    assert w @ s**4 == pytest.approx(3 / (d * (d + 2)), rel=1e-11)


def test_reference_energy():
    """d = 3, β = 9, SA, density 1 + 0.1 P_4: E(4) = 0.06119702545."""
    run = flow(ZonalMeasure(3, 9.0, 100), zonal_start({4: 0.1 / 9}, 100, 3), times=[4.0], record=interaction_energy,
               rtol=1e-11)  # fmt: skip
    assert run["interaction_energy"].values[0] == pytest.approx(0.06119702545, abs=2e-11)
    assert run.certificate("energy_identity").passed


@pytest.mark.parametrize("usa", [False, True])
def test_two_dimensions_are_even_densities_on_the_circle(usa):
    """Rings against Fourier modes."""
    look = {"times": [3.0], "rtol": 1e-11}
    rings = flow(
        ZonalMeasure(2, 5.0, 160, usa, 4.0), zonal_start({3: 0.02}, 160, 2), record=zonal_moments.at(modes=6), **look
    )
    modes = flow(
        CircleDensity(5.0, 96, 300, usa, 4.0), density_moments({3: 0.02}, 8), record=fourier_moments.at(modes=6), **look
    )
    found = rings["zonal_moments[modes=6]"].values[0]
    np.testing.assert_allclose(np.abs(found), modes["fourier_moments[modes=6]"].values[0], atol=1e-10)


def test_high_dimension_grows_at_the_linear_rate():
    """d = 64, β = 49, k = 2 (SA): the rate of the drift itself."""
    model = ZonalMeasure(64, 49.0, 60)
    state = model.initial(zonal_start({2: 1e-9}, 60, 64))
    moment, growth = jax.jvp(lambda s: model.moments(s, 2)[2], (state,), (model.drift(state, jnp.zeros(())),))
    assert growth / moment == pytest.approx(growth_rates(49.0, 64, 2)[-1], rel=1e-6)


def test_steep_maps_go_on_as_particles():
    start = zonal_start({2: 0.05}, 64, 3)
    run = flow(
        ZonalMeasure(3, 4.0, 64), start, times=[2.0, 14.0], record=(zonal_moments, interaction_energy), rtol=1e-7
    )
    assert run.outcome == "completed"
    assert [f.name for f in run.forms] == ["tokens", "ZonalMeasure"]
    assert "64 nodes no longer resolve" in run.forms[1].reason
    assert 0 < run["interaction_energy"].values[-1] <= 1


def test_quiet_starts():
    """N N(d,k) m_k² has mean one (200 draws, 12 degrees, 5 standard errors), masses sum to one."""
    law = QuietZonal(1e9, 64, 3)
    rows = jax.vmap(law)(jax.random.split(jax.random.key(0), 200))
    np.testing.assert_allclose(np.asarray(rows[..., 1]).sum(axis=-1), 1, atol=1e-13)
    moments = jax.vmap(lambda r: zonal_polynomials(r[:, 0], 12, 3) @ r[:, 1])(rows)[:, 1:]
    squares = np.asarray(moments) ** 2 * 1e9 * (2 * np.arange(1, 13) + 1)
    assert squares.mean() == pytest.approx(1, abs=5 * np.sqrt(2 / 2400))
    run = ensemble(ZonalMeasure(3, 9.0, 64), law, runs=3, key=jax.random.key(1), times=[0.0, 1.0],
                   record=zonal_moments.at(modes=4), rtol=1e-9)  # fmt: skip
    sizes = run["zonal_moments[modes=4]"].values[..., 3]
    np.testing.assert_allclose(np.log(sizes[:, 1] / sizes[:, 0]), growth_rates(9.0, 3, 4)[-1], atol=5e-3)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ZonalMeasure(1), "`d`"),
        (lambda: ZonalMeasure(3, 0.0), "`beta`"),
        (lambda: ZonalMeasure(1000, 700.0), "`beta` must be smaller for d = 1000"),
        (lambda: zonal_start({4: 0.5}, 40, 3), "≥ 0"),
        (lambda: zonal_start({40: 0.01}, 40, 3), "`n`"),
        (lambda: ZonalMeasure(3, nodes=40).check(np.ones((50, 3))), "SelfAttention"),
        (lambda: ZonalMeasure(3, nodes=40).check(zonal_start({2: 0.1}, 40, 5)), "Gauss nodes of d = 3"),
        (lambda: ZonalMeasure(3, nodes=40).check(zonal_start({2: 0.1}, 40, 3) * np.array([[1.0, 2.0]])), "density"),
        (lambda: zonal_quiet_start(100.0, 40, 3, jax.random.key(0)), "`tokens`"),
    ],
)
def test_refusals(make, says):
    with pytest.raises(ArgumentError, match=says):
        make()


def test_rings_are_no_tokens():
    with pytest.raises(FormError, match="rings"):
        flow(ZonalMeasure(3, nodes=40), zonal_start({2: 0.1}, 40, 3), until=1.0)
