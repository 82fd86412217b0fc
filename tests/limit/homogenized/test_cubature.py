"""Cubature of the homogenized SDE against closed forms, its order and reference numbers."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.linalg import expm

import pathlines as pl
from pathlines.foundation.errors import ArgumentError
from pathlines.limit.homogenized.cubature import tree_average
from references import finite_heads as two


def observed(x):
    return np.stack(two.observed(x), axis=-1)


def law_sde(p=0.5, kind=pl.limit.homogenized.FiniteLawSDE, **changes):
    setting = {"beta": two.BETA, "step": 0.1, "probabilities": np.array([p, 1 - p])} | changes
    m = len(setting["probabilities"])
    return kind(values=two.VALUES[:m], scores=two.SCORES[:m], **setting)


@pytest.mark.parametrize(("p", "layers"), list(two.SDE))
def test_reference_values(p, layers):
    found = pl.limit.homogenized.sde_expectation(law_sde(p, step=two.UNTIL / layers), two.start(), two.UNTIL, observed)
    assert found.value == pytest.approx(two.SDE[p, layers], abs=3e-9)
    assert found.error.max() < 2e-7


@dataclass(frozen=True, eq=False, kw_only=True)
class Scaled(pl.limit.homogenized.FiniteLawSDE):
    """D and Σ with factors."""

    drift_factor: float = 1.0
    noise_factor: float = 1.0

    def _drift(self, heads):
        return self.drift_factor * super()._drift(heads)

    @property
    def noise_weights(self):
        return self.noise_factor * super().noise_weights


@pytest.mark.parametrize("step", [0.1, 0.2])
@pytest.mark.parametrize("name", ["drift", "noise"])
def test_sensitivities(step, name):
    """Central differences of the logarithm, half a unit of the printed digit; a wrong noise shows in the product."""
    ends = [
        pl.limit.homogenized.sde_expectation(
            law_sde(kind=Scaled, step=step, **{f"{name}_factor": np.exp(e)}), two.start(), 1.2, observed, (2, 4, 6)
        ).value
        for e in (-0.02, 0.02)
    ]
    assert (ends[1] - ends[0]) / 0.04 == pytest.approx(two.SENSITIVITY[name][step], abs=1.5e-4)


def turning(vectors, chances, mean):
    """One token in R³ whose heads are rotations about ``vectors``: B_a = (mean + vector_a) × x."""
    eye = np.eye(3)
    values = np.array([np.cross(mean + v, eye, axisa=-1, axisb=-1).T for v in vectors])
    zero = np.zeros_like(values)
    return pl.limit.homogenized.FiniteLawSDE(
        values=values, scores=zero, probabilities=np.array(chances), beta=0.0, step=0.3, corrector="none"
    )


def test_rotation_about_one_axis():
    """The angle is a Brownian motion with drift: E e^{iθ} = e^{iωT - σ²T/2}, σ² = η p(1-p)(v_1-v_2)²."""
    axis = np.array([0.0, 0.0, 1.0])
    sde = turning([0.8 * axis, -0.2 * axis], [0.2, 0.8], 0.5 * axis)
    found = pl.limit.homogenized.sde_expectation(sde, np.array([[1.0, 0.0, 0.0]]), 1.5, lambda x: x[:, 0, :2])
    angle, variance = 0.5 * 1.5, 0.3 * 0.2 * 0.8 * 1.0 * 1.5
    exact = np.exp(-variance / 2) * np.array([np.cos(angle), np.sin(angle)])
    assert np.all(np.abs(found.value - exact) < np.maximum(found.error, 1e-9))
    assert found.error.max() < 1e-6


TETRAHEDRON = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(3.0)


def test_rotations_that_do_not_commute():
    """Isotropic noise, Σ_r S_r² = -(2/3)ηI, so ∇_ΣΣ cancels: E x_T = e^{T(ω× - η/3)}x_0. Three noises: order ≥ 2."""
    mean, x = np.array([0.4, -0.7, 0.2]), np.array([[0.6, 0.8, 0.0]])
    sde = turning(TETRAHEDRON, [0.25] * 4, mean)
    turn = np.cross(mean, np.eye(3), axisa=-1, axisb=-1).T
    exact = expm(1.5 * (turn - 0.3 / 3 * np.eye(3))) @ x[0]
    errors = [np.abs(tree_average(sde, x, 1.5, lambda y: y[:, 0], k) - exact).max() for k in (1, 2)]
    assert errors[1] < 1.5e-3
    assert errors[0] / errors[1] > 3.5
    assert np.abs(expm(1.5 * turn) @ x[0] - exact).max() > 0.05


def test_order_two_in_the_steps():
    """Against the extrapolation; two atoms with attention."""
    exact = np.array(two.SDE[0.5, 12])
    gaps = [tree_average(law_sde(), two.start(), two.UNTIL, observed, k) - exact for k in (3, 6)]
    assert np.abs(gaps[0]) == pytest.approx(4 * np.abs(gaps[1]), rel=0.15)


def test_without_noise_it_is_the_flow():
    sde = law_sde(probabilities=np.ones(1))
    found = pl.limit.homogenized.sde_expectation(sde, two.start(), two.UNTIL, lambda x: x)
    assert found.value == pytest.approx(sde.flow(two.start(), two.UNTIL, 400), abs=2e-7)


def test_three_atoms_agree_with_a_split_one():
    """An atom cut in two is the same law: two noises instead of one, another tree, the same expectation."""
    twice = pl.limit.homogenized.FiniteLawSDE(
        values=two.VALUES[[0, 1, 1]], scores=two.SCORES[[0, 1, 1]], probabilities=np.array([0.5, 0.2, 0.3]),
        beta=two.BETA, step=0.1,
    )  # fmt: skip
    found = pl.limit.homogenized.sde_expectation(twice, two.start(), two.UNTIL, observed)
    assert found.value == pytest.approx(two.SDE[0.5, 12], abs=3e-6)


def test_refused():
    with pytest.raises(ArgumentError, match="`steps` must be three ascending"):
        pl.limit.homogenized.sde_expectation(law_sde(), two.start(), 1.0, observed, (6, 4, 9))
