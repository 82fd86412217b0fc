"""The engine against the reference trajectories on the sphere, to the digits given.

Provenance: ``references.clustering`` (section 9 of the project's specification 03-clustering), numbers computed
independently of this package at two tolerances (1e-12, 2.3e-13). They are printed with eleven decimals; the tolerance
is a few units of the last one.
"""

import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.attention import UnnormalisedAttention
from pathlines.claim import CLAIMS, evaluate
from pathlines.domain import Sphere
from pathlines.integrate import flow
from pathlines.integrate.observe import positions
from pathlines.model import SelfAttention, Snapshot
from pathlines.observable.energy import energy
from pathlines.observable.pairs import mean_overlap, overlaps
from pathlines.weights import FixedWeights
from references import clustering as ref

DIGITS = 3e-11
RECORD = (positions, overlaps, energy, mean_overlap)


def model(name, beta):
    if name == "qkv":
        return SelfAttention(beta, weights=FixedWeights(ref.QKV_VALUE, ref.QKV_QUERY, ref.QKV_KEY))
    return SelfAttention(beta, attention=UnnormalisedAttention() if name == "usa" else None)


def runs():
    """The rows of the table, one group for each trajectory."""
    groups = {}
    for name, beta, *row in ref.SPHERE_RUNS:
        groups.setdefault((name, beta), []).append(row)
    return [pytest.param(*key, rows, id=f"{key[0]}-{key[1]:g}") for key, rows in groups.items()]


def test_start():
    x = Sphere(3).sines(8)
    np.testing.assert_allclose(x, ref.sphere_start(8, 3), rtol=0, atol=2e-16)
    np.testing.assert_allclose(x[0], ref.START_FIRST_TOKEN, rtol=0, atol=6e-9)
    assert float(x[0] @ x[1]) == pytest.approx(ref.START_G12, abs=6e-12)


@pytest.mark.parametrize(("name", "beta", "rows"), runs())
def test_trajectory(name, beta, rows):
    times = [row[0] for row in rows]
    start = Sphere(3).sines(8)
    run = flow(model(name, beta), start, times=times, record=RECORD, method="dop853", rtol=1e-13, form="tokens")
    for k, (_, first, between, height, mean) in enumerate(rows):
        np.testing.assert_allclose(run["tokens"].values[k, 0], first, rtol=0, atol=DIGITS)
        assert run["overlaps"].values[k, 0, 1] == pytest.approx(between, abs=DIGITS)
        if height is not None:
            assert run["energy"].values[k] == pytest.approx(height, abs=DIGITS)
        if mean is not None:
            assert run["mean_overlap"].values[k] == pytest.approx(mean, abs=DIGITS)


@pytest.mark.parametrize(("name", "beta", "rows"), runs())
def test_trajectory_at_the_default_method(name, beta, rows):
    """rk45 reaches the same numbers, less precisely."""
    run = flow(model(name, beta), Sphere(3).sines(8), times=[row[0] for row in rows], record=RECORD, rtol=1e-10)
    for k, row in enumerate(rows):
        np.testing.assert_allclose(run["tokens"].values[k, 0], row[1], rtol=0, atol=1e-7)


def test_least_energy_on_the_circle():
    """A regular polygon is as good as the uniform measure: 64 tokens integrate e^{β cos θ} to rounding."""
    angle = 2 * np.pi * np.arange(64) / 64
    x = jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)
    height = float(energy(Snapshot(SelfAttention(1.0), x, jnp.zeros(()), x)))
    assert height == pytest.approx(ref.ENERGY_MINIMA[2, 1.0], abs=1e-12)


def test_residual_of_generic_weights():
    """CL-04: the residual of the V = I energy identity along the QKV run, in absolute units."""
    outcome = evaluate(CLAIMS["clustering/CL-04"])
    assert outcome.checks[0].measured == pytest.approx(-1.1634657853, abs=6e-11)
    assert outcome.checks[0].expected == pytest.approx(-1.1634657853, abs=6e-11)


@pytest.mark.parametrize("beta", [1.0, 4.0, 9.0])
def test_equiangular_particles(beta):
    """32 tokens of SA against the table of γ_β."""
    start, times = Sphere(32).simplex(32), list(ref.EQUIANGULAR_TIMES)
    run = flow(model("sa", beta), start, times=times, record=mean_overlap, rtol=1e-11, form="tokens")
    np.testing.assert_allclose(run["mean_overlap"].values, ref.EQUIANGULAR["sa", 32, beta, 0.0], rtol=0, atol=1e-9)
