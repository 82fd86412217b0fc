"""The half-order term of skew laws: a closed form on the circle, and symmetry."""

import numpy as np
import pytest

import pathlines as pl
from pathlines.limit.homogenized.skewness import skewness_coefficient
from references import finite_heads as two

TURN = np.array([[0.0, -1.0], [1.0, 0.0]])


@pytest.mark.parametrize("p", [0.1, 0.3, 0.7])
def test_token_on_the_circle(p):
    """A layer turns by arctan(s), s = ζz√η, and d³/ds³ e^{i arctan s} = -3i: C = -(i/2) E[z³] ζ³ T e^{iθ - ζ²T/2}."""
    eta, size, until = 0.01, 0.4, 1.5
    z = np.array([np.sqrt((1 - p) / p), -np.sqrt(p / (1 - p))])
    values = size / np.sqrt(eta) * z[:, None, None] * TURN
    sde = pl.limit.homogenized.FiniteLawSDE(
        values=values, scores=0 * values, probabilities=np.array([p, 1 - p]), beta=0.0, step=eta, update="tangent"
    )
    angle = 0.7
    found = skewness_coefficient(sde, np.array([[np.cos(angle), np.sin(angle)]]), until, lambda x: x[:, 0])
    third = (1 - 2 * p) / np.sqrt(p * (1 - p))
    exact = -0.5j * third * size**3 * until * np.exp(1j * angle - size**2 * until / 2)
    assert found.value == pytest.approx([exact.real, exact.imag], rel=1e-3)
    layer = p * np.exp(1j * np.arctan(size * z[0] * np.sqrt(eta)))
    layer += (1 - p) * np.exp(1j * np.arctan(size * z[1] * np.sqrt(eta)))
    chain = np.exp(1j * angle) * layer ** (until / eta)
    gap = chain - np.exp(1j * angle - size**2 * until / 2)
    turned = gap * np.exp(-1j * angle)
    assert turned.imag / np.sqrt(eta) == pytest.approx((exact * np.exp(-1j * angle)).imag, rel=0.05)


def test_symmetric_laws_have_none():
    sde = pl.limit.homogenized.FiniteLawSDE(
        values=two.VALUES[:2], scores=two.SCORES[:2], probabilities=np.full(2, 0.5), beta=two.BETA, step=0.1
    )
    found = skewness_coefficient(sde, two.start(), 0.5, lambda x: np.stack(two.observed(x), axis=-1))
    assert np.abs(found.value).max() < 1e-8
