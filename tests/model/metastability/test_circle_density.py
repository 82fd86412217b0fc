"""Mean-field solvers on the circle. Reference values: section 9 of the specification 04-metastability-and-modes."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

from pathlines.domain.circle_law import (
    QuietMoments,
    check_density_moments,
    circle_quantiles,
    density_moments,
    effective_tokens,
    on_circle,
    quiet_start,
)
from pathlines.foundation.errors import ArgumentError
from pathlines.integrate import ensemble, flow
from pathlines.limit.metastability.growth import growth_rates
from pathlines.limit.metastability.linear_phase import moment_velocity
from pathlines.model.metastability.circle import CircleAttention
from pathlines.model.metastability.circle_density import CircleDensity
from pathlines.model.self_attention import SelfAttention
from pathlines.observable.patterns import fourier_moments, interaction_energy, potential_modes, recovered_density

SA5 = {
    2: (0.1837542204647, 0.039150825616, 0.001012860612),
    4: (0.1867571862632, 0.151923835099, 0.016824774330),
    5: (0.1954693178115, 0.292185099635, 0.063329187017),
    6: (0.2221672450817, 0.523463166218, 0.211137369729),
}
USA5 = {
    10: (0.1837113150248, 0.034993719028, 0.001273005841),
    20: (0.1856058570753, 0.121696519190, 0.017222396429),
    30: (0.2055219608526, 0.394168802322, 0.180720914822),
    40: (0.2828635447361, 0.819514832159, 0.731313852462),
}
LOOK = (interaction_energy, fourier_moments.at(modes=6))
TIGHT = {"method": "dop853", "rtol": 1e-13}


def table(run):
    moments = run["fourier_moments[modes=6]"].values
    return np.column_stack([run["interaction_energy"].values, moments[:, 2], moments[:, 5]])


@pytest.mark.parametrize(("kind", "rows"), [("sa", SA5), ("usa", USA5)])
def test_table_and_agreement_of_both_solvers(kind, rows):
    """Both solvers to the printed digits; the last row of USA is beyond 256 modes and read from points."""
    start, usa, times = density_moments({3: 0.01}, 24), kind == "usa", list(rows)
    run = flow(CircleDensity(5.0, 256, 600, usa, 5.0), start, times=times, record=LOOK, **TIGHT)
    points = flow(CircleAttention(5.0, None, usa, 5.0), on_circle(circle_quantiles(start, 600)),
                  times=times, record=LOOK, **TIGHT)  # fmt: skip
    np.testing.assert_allclose(table(run), np.array(list(rows.values())), atol=2e-12)
    np.testing.assert_allclose(table(points), np.array(list(rows.values())), atol=2e-12)
    np.testing.assert_allclose(table(run)[:3], table(points)[:3], atol=1e-12)
    assert [f.name for f in run.forms] == (["tokens", "CircleAttention"] if usa else ["tokens"])


def test_two_modes():
    """β = 9, SA, a_3 = a_4 = 0.01."""
    look = (interaction_energy, fourier_moments.at(modes=6))
    run = flow(CircleDensity(9.0, 128), density_moments({3: 0.01, 4: 0.01}, 8), times=[2.0, 4.0], record=look, **TIGHT)
    np.testing.assert_allclose(table(run), [[0.1353078114565, 0.032598702595, 0.000571030951],
                                            [0.1395800375414, 0.104427750533, 0.007484991273]], atol=2e-12)  # fmt: skip
    fourth = run["fourier_moments[modes=6]"].values[:, 3]
    np.testing.assert_allclose(fourth, [0.040862266581, 0.163650523214], atol=2e-12)


def test_drift_vs_the_moment_system():
    """USA: FFT against the double sum of the moment system, random moments."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((41, 2)) * np.exp(-0.8 * np.arange(41))[:, None] * 0.2
    rows[0] = 1, 0
    beta = 6.0
    drift = np.asarray(CircleDensity(beta, 80, unnormalised=True, shift=beta).drift(
        jnp.pad(jnp.asarray(rows), ((0, 40), (0, 0))), jnp.zeros(())))  # fmt: skip
    exact = moment_velocity(np.pad(rows[:, 0] + 1j * rows[:, 1], (0, 40)), beta)
    np.testing.assert_allclose(drift[:, 0] + 1j * drift[:, 1], exact, atol=1e-15)


@pytest.mark.parametrize("usa", [False, True])
def test_printed_clock(usa):
    """t_printed = e^{-β} t_scaled for USA, one clock for SA."""
    m = jnp.pad(density_moments({2: 0.1}, 4), ((0, 28), (0, 0)))
    slow = CircleDensity(3.0, 32, unnormalised=usa, shift=3.0).drift(m, jnp.zeros(()))
    fast = CircleDensity(3.0, 32, unnormalised=usa).drift(m, jnp.zeros(()))
    np.testing.assert_allclose(fast, slow * (np.exp(3.0) if usa else 1.0), rtol=1e-12, atol=1e-15)


def test_quantiles_by_quadrature():
    start = density_moments({1: 0.2 + 0.1j, 5: -0.12, 9: 0.02j}, 12)
    theta = np.asarray(circle_quantiles(start, 37))
    m = np.asarray(start) @ [1, 1j]

    def density(x):
        return (1 + 2 * np.real(m[1:] @ np.exp(1j * np.arange(1, 13) * x))) / (2 * np.pi)

    for j in (0, 11, 36):
        assert quad(density, 0, theta[j], epsabs=1e-14, limit=200)[0] == pytest.approx((j + 0.5) / 37, abs=1e-14)
    assert np.all(np.diff(theta) > 0)


def test_density_recovered_from_points():
    start = density_moments({3: 0.1, 4: 0.05j}, 8)
    theta = np.asarray(circle_quantiles(start, 256))
    m = np.asarray(start) @ [1, 1j]
    exact = (1 + 2 * np.real(np.exp(1j * np.outer(theta, np.arange(1, 9))) @ m[1:])) / (2 * np.pi)
    np.testing.assert_allclose(recovered_density(theta), exact, rtol=1e-11)
    model = CircleDensity(5.0, 16)
    grid = 2 * np.pi * np.arange(64) / 64
    whole = (1 + 2 * np.real(np.exp(1j * np.outer(grid, np.arange(1, 9))) @ m[1:])) / (2 * np.pi)
    np.testing.assert_allclose(model.density(model.initial(start)), whole, atol=1e-15)
    steep = np.concatenate([1 + 1e-9 * np.arange(32), 4 + 1e-9 * np.arange(32)])
    assert np.all(recovered_density(steep) > 0)


def test_quiet_starts_have_the_moments_of_that_many_tokens():
    """Mean of N|m_k|² over 200 draws and 24 modes: one within 5 standard errors 1/√4800; the same start as points."""
    law = QuietMoments(1e6, modes=64)
    draws = np.asarray(jax.vmap(law)(jax.random.split(jax.random.key(1), 200)))
    squares = 1e6 * (draws[:, 1:25] ** 2).sum(axis=-1)
    assert squares.mean() == pytest.approx(1, abs=5 / np.sqrt(4800))
    assert not draws[:, 25:].any()
    key = jax.random.key(2)
    tokens = np.asarray(quiet_start(1e6, 500, key))
    moments = np.exp(-1j * np.outer(np.arange(25), np.arctan2(tokens[:, 1], tokens[:, 0]))).mean(axis=1)
    np.testing.assert_allclose(moments, np.asarray(law(key))[:25] @ [1, 1j], atol=1e-13)


def test_white_noise_is_a_number_of_tokens():
    """The authors' s = 0.01 on 10⁴ points is 2.5·10⁶ tokens; and by drawing such noise, 5 standard errors."""
    assert effective_tokens(0.01, 10_000) == pytest.approx(2.533e6, rel=1e-3)
    noise = 1 / (2 * np.pi) + 0.01 * np.random.default_rng(0).standard_normal((40, 10_000))
    moments = np.fft.rfft(noise, axis=-1)[:, 1:51] * 2 * np.pi / 10_000
    assert (np.abs(moments) ** 2).mean() * effective_tokens(0.01, 10_000) == pytest.approx(1, abs=5 / np.sqrt(2000))


def test_a_full_spectrum_goes_on_as_points():
    start = density_moments({3: 0.01}, 8)
    model = CircleDensity(5.0, 48, nodes=400)
    run = flow(model, start, times=[4.0, 6.0, 12.0], record=(*LOOK, potential_modes), rtol=1e-9)
    assert run.outcome == "completed"
    assert [f.name for f in run.forms] == ["tokens", "CircleAttention"]
    assert "degree = 48 is full" in run.forms[1].reason
    np.testing.assert_allclose(table(run)[:2], np.array([SA5[4], SA5[6]]), atol=1e-7)
    assert run["potential_modes"].values[-1] == 3
    assert run["interaction_energy"].values[-1] == pytest.approx(1 / 3, abs=1e-2)


@pytest.mark.parametrize("degree", [2, 7, 40])
def test_every_pattern_is_seen_to_fill(degree):
    """Equal peaks, k of them, at every k: only multiples of k are there, and one of them is always looked at."""
    model, order = CircleDensity(50.0, degree), np.arange(degree + 1)
    for k in range(1, degree + 1):
        state = np.stack([np.where(order % k == 0, 0.9**order, 0.0), 0.0 * order], -1)
        assert model.fullness(jnp.asarray(state)) >= 0.9**degree * (1 - 1e-14)  # powers round differently in NumPy
    assert not model.admissible(jnp.asarray(state * 2))


def test_handover_of_a_pattern_whose_double_ends_below_three_quarters():
    """k = 14, K = 40: 2k = 28 < 30 and 3k > K. Hand-over in time gives the m_k of a run with K = 128."""
    look = fourier_moments.at(modes=14)
    run = flow(CircleDensity(50.0, 40), density_moments({14: 0.01}, 14), times=[10.0], record=look, rtol=1e-10)
    assert [f.name for f in run.forms] == ["tokens", "CircleAttention"]
    assert run[look.name].values[0, -1] == pytest.approx(0.93254537, abs=2e-8)


def test_without_a_handover_it_stops():
    start = density_moments({3: 0.01}, 8)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        run = flow(CircleDensity(5.0, 48), start, times=[4.0, 12.0], record=LOOK, rtol=1e-9, form="tokens")
    assert "degree = 48 no longer resolves the density (take 96 or more)" in run.outcome
    assert len(run.time) == 1


def test_an_ensemble_of_quiet_starts_grows_at_the_linear_rate():
    law = QuietMoments(1e14, noisy=6, modes=24)
    run = ensemble(CircleDensity(5.0, 24), law, runs=5, key=jax.random.key(0), times=[0.0, 1.0],
                   record=fourier_moments.at(modes=6), rtol=1e-10, atol=1e-20)  # fmt: skip
    sizes = run["fourier_moments[modes=6]"].values
    rates = np.log(sizes[:, 1] / sizes[:, 0])
    np.testing.assert_allclose(rates, np.broadcast_to(growth_rates(5.0, 2, 6), rates.shape), atol=1e-4)


def test_tokens_as_a_start():
    """The first 24 moments of 3000 tokens; their quantile points are close to SelfAttention on the tokens at first."""
    angles = np.random.default_rng(4).uniform(0, 2 * np.pi, 3000)
    tokens = np.column_stack([np.cos(angles), np.sin(angles)])
    state = np.asarray(CircleDensity(9.0, 64).initial(jnp.asarray(tokens)))
    exact = np.exp(-1j * np.outer(np.arange(25), angles)).mean(axis=1)
    np.testing.assert_allclose(state[:25] @ [1, 1j], exact, atol=1e-13)
    assert not state[25:].any()
    CircleDensity(9.0, 64).check(tokens)


def test_points_are_ordinary_tokens():
    """Quantile points flow under SelfAttention too, in the form it chooses."""
    tokens = on_circle(circle_quantiles(density_moments({3: 0.01}, 8), 300))
    run = flow(SelfAttention(5.0), tokens, times=[4.0], record=fourier_moments.at(modes=6), rtol=1e-10)
    assert run["fourier_moments[modes=6]"].values[0, 2] == pytest.approx(SA5[4][1], abs=1e-8)
    assert run.forms[0].name == "circle-fourier"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: CircleDensity(0.0), "`beta`"),
        (lambda: CircleDensity(-1.0), "`beta`"),
        (lambda: CircleDensity(900.0, unnormalised=True), "`shift`"),
        (lambda: check_density_moments(density_moments({1: 0.2}, 3) * 2), "integrates to one"),
        (lambda: density_moments({2: 0.6}, 3), "≥ 0"),
        (lambda: density_moments({5: 0.1}, 3), "modes 1 to 3"),
        (lambda: CircleDensity(5.0).check(np.eye(3)), "needs d = 2"),
        (lambda: CircleDensity(5.0, 8).check(density_moments({9: 0.1}, 12)), "`degree`"),
        (lambda: CircleDensity(300.0, 40).check(density_moments({24: 0.01}, 24)), "exceed 48"),
        (lambda: CircleDensity(5.0).check(on_circle(jnp.linspace(0, 1, 9))), "≥ 0"),
        (lambda: QuietMoments(100.0, 24), "`tokens`"),
        (lambda: quiet_start(1e6, 1, jax.random.key(0)), "`n`"),
    ],
)
def test_refusals(make, says):
    with pytest.raises(ArgumentError, match=says):
        make()
