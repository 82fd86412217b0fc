"""Drifts to all digits of section 9 of the specification 04-metastability-and-modes, by pairs and by harmonics."""

import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.attention import AlibiMask, SoftmaxAttention, UnnormalisedAttention
from pathlines.domain import Sphere
from pathlines.kernels.spectral import spectral_attend
from pathlines.model import SelfAttention
from pathlines.model.base import Snapshot
from pathlines.observable.energy import energy_fraction

GOLDEN = 0.6180339887498949
BETA = 9.0
ROWS = [0, 1, 2, 63]
CIRCLE = {
    ("usa", False): [6.574721075620628e-03, -9.031472802715412e-04, 7.220407198925715e-04, -4.948392562080209e-03],
    ("sa", False): [4.925838445952356e-02, -7.388645857020326e-03, 5.697657489556065e-03, -3.830055923049763e-02],
    ("sa", True): [0.0, 7.645521758606148e-07, -2.298837423220038e-05, -3.830055923049763e-02],
}
SPHERE = {
    "usa": [9.966605129688630e-04, -9.114685295961624e-04, 7.892665324565895e-05],
    "sa": [1.381998921412357e-02, -1.263869199604335e-02, 1.094420298956857e-03],
}


def kind(name):
    return SoftmaxAttention() if name == "sa" else UnnormalisedAttention(shift=jnp.asarray(BETA))


def circle():
    j = np.arange(64)
    theta = 2 * np.pi * np.mod(GOLDEN * j, 1) + 0.3 * np.sin(j)
    return np.stack([np.cos(theta), np.sin(theta)], axis=1)


def sphere():
    i = np.arange(50)
    z, azimuth = 1 - 2 * (i + 0.5) / 50, 2 * np.pi * (i + 0.5) * GOLDEN
    r = np.sqrt(1 - z * z)
    x = np.stack([r * np.cos(azimuth), r * np.sin(azimuth), z], axis=1) + 0.2 * np.array([0.3, -0.5, 0.8])
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def by_harmonics(x, name, causal=False):
    masses = jnp.full(len(x), 1 / len(x))
    mask = AlibiMask(strict=False, reduce="sum") if causal else None
    out, _ = spectral_attend(kind(name), jnp.asarray(x), jnp.asarray(x), BETA, masses, 1e-14, mask)
    return np.asarray(Sphere(x.shape[1]).tangent(jnp.asarray(x), out))


def angular(x, drift):
    return drift[:, 1] * x[:, 0] - drift[:, 0] * x[:, 1]


@pytest.mark.parametrize(("name", "causal"), CIRCLE)
def test_circle_by_harmonics(name, causal):
    found = angular(circle(), by_harmonics(circle(), name, causal))
    # absolute: harmonics have a noise floor of ε(1 + √β), divided by Z ≥ 1/64 under SA
    np.testing.assert_allclose(found[ROWS], CIRCLE[name, causal], atol=1e-13)


@pytest.mark.parametrize("name", ["usa", "sa"])
def test_circle_by_pairs(name):
    x = jnp.asarray(circle())
    model = SelfAttention(BETA, attention=kind(name))
    found = angular(circle(), np.asarray(model.drift(x, jnp.zeros(()))))
    np.testing.assert_allclose(found[ROWS], CIRCLE[name, False], rtol=1e-13, atol=1e-16)
    if name == "usa":
        assert abs(found.sum()) < 1e-15
    energy = energy_fraction(Snapshot(model, x, jnp.zeros(()), x))
    assert float(energy) == pytest.approx(0.13654044724797704, rel=1e-14)


@pytest.mark.parametrize("name", ["usa", "sa"])
def test_sphere_by_pairs_and_by_harmonics(name):
    x = jnp.asarray(sphere())
    model = SelfAttention(BETA, attention=kind(name))
    np.testing.assert_allclose(np.asarray(model.drift(x, jnp.zeros(())))[0], SPHERE[name], atol=1e-16, rtol=1e-13)
    np.testing.assert_allclose(by_harmonics(sphere(), name)[0], SPHERE[name], atol=2e-13)
    energy = energy_fraction(Snapshot(model, x, jnp.zeros(()), x))
    assert float(energy) == pytest.approx(5.840111863416896e-02, rel=1e-14)
