"""The formulas inside the figures of Homogenized Transformers hold."""

import numpy as np
import pytest
from scipy.special import expit, logit

from pathlines.draw import FIGURES
from pathlines.draw.figures.homogenized.architecture_curves import encoder, predicted
from pathlines.draw.figures.homogenized.logistic import typical_mass
from pathlines.draw.figures.homogenized.overlap_curves import logit_scale
from pathlines.foundation.errors import ArgumentError
from pathlines.limit.homogenized.overlap_curve import layer_map_curve


def test_logit_scale_of_both_conventions():
    assert logit_scale(0.5, 64, "scaled") == 0.5
    assert logit_scale(0.5, 64, "unit") == 4.0
    with pytest.raises(ArgumentError, match="sigma_a"):
        logit_scale(0.5, 64, "other")


def test_map_of_an_encoder_without_perceptron_vs_layer_map_curve():
    class Setting:
        d, heads, b, residual, width, activation, sigma_w, perceptron_residual = 16, 2, 1.0, 0.4, 0, "erf", 3.0, 0.8

    for placement in ("post", "pre"):
        got = predicted(encoder(placement, False, Setting), 8, 12, np.inf)
        wanted = layer_map_curve(12, 8, 1.0, 0.16, norm=placement).overlap
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_typical_mass_vs_direct_simulation():
    """β = 0 from orthogonal tokens: mean and spread of logit m within 4 standard errors, and 5 % in the spread."""
    n, d, v, layers, runs = 8, 48, 0.05, 40, 2000
    rng = np.random.default_rng(7)
    x = np.tile(np.eye(n, d), (runs, 1, 1))
    for _ in range(layers):
        mean = x.mean(axis=1, keepdims=True)
        x = x + np.sqrt(v / d) * np.linalg.norm(mean, axis=-1, keepdims=True) * rng.standard_normal((runs, 1, d))
        x /= np.linalg.norm(x, axis=-1, keepdims=True)
    found = logit(np.sum(x.mean(axis=1) ** 2, axis=-1))
    wanted = logit(typical_mass(layers, 1 / n, v, d)[-1])
    error = found.std() / np.sqrt(runs)
    assert abs(found.mean() - wanted) < 4 * error + 0.01  # 0.01: second order in 1/d, (τ/d)(1/d)·10
    assert found.std() == pytest.approx(2 * np.sqrt(v * layers / d), rel=0.06)
    assert typical_mass(3, 0.1, 0.2, 10**9)[-1] == pytest.approx(expit(logit(0.1) + 3 * np.log(1.2)))


@pytest.mark.parametrize("changes", [{"step": 2.0, "layers": 12}, {"step": 1e-5, "heads": 64}])
def test_the_star_of_the_phase_diagram_is_never_outside(changes):
    for axes in FIGURES["homogenized/regimes"].draw("quick", changes).axes:
        star = next(line for line in axes.lines if line.get_marker() == "*").get_xydata()[0]
        limits = zip(star, (axes.get_xlim(), axes.get_ylim()), strict=True)
        assert all(min(ends) < at < max(ends) for at, ends in limits)
