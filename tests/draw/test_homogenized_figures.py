"""The figures of Homogenized Transformers draw at a tiny setting, and their own formulas hold."""

import io
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from scipy.special import expit, logit

from pathlines.draw.figures.homogenized.architecture_curves import encoder, predicted
from pathlines.draw.figures.homogenized.logistic import typical_mass
from pathlines.draw.figures.homogenized.overlap_curves import logit_scale
from pathlines.draw.gallery import FIGURES
from pathlines.draw.style import house_style
from pathlines.foundation.errors import ArgumentError
from pathlines.limit.homogenized.overlap_curve import layer_map_curve

FAMILY = "homogenized/"
TINY: dict[str, dict[str, Any]] = {
    "architecture-curves": {"n": 4, "d": 8, "heads": 2, "width": 6, "depth": 4, "every": 2, "reach": 4, "runs": 2},
    "collapse-map": {"n_min": 8, "n_max": 64, "ns": 2, "b_max": 1.0, "bs": 2, "marked_n": [16], "marked_b": [1.0],
                     "lines": [0.0, 1.0]},
    "corrected-drift": {"steps": [0.1, 0.05], "until": 0.2},
    "layer-map": {"n": 4, "d": 8, "steps": [1.4], "runs": [3], "points": 3, "until": 2.0},
    "logistic": {"cases": [[6, 8, 0.05, "linear"]], "step": 0.8, "until": 2.0, "runs": 2},
    "logistic-sde": {"until": 0.2, "frames": 5, "paths": 2, "times": 3, "d": 4, "step": 0.8, "chain_until": 0.5,
                     "runs": 4},
    "overlap-curves": {"n": 4, "curves": [1.0, 2.0], "betas": 2, "rows": 5, "frames": 9},
    "participation": {"n": 4, "scales": [1.0], "narrow": [1.0], "points": 3, "frames": 9, "width": 64},
    "regimes": {"layers": 24, "step": 0.3, "heads": 8, "d": 64},
}  # fmt: skip
NAMES = [name for name in FIGURES if name.startswith(FAMILY)]


def labelled(axes: Axes) -> bool:
    """Both axes have a label, or one of them on a colour bar."""
    bar = getattr(axes, "_colorbar", None) is not None
    return (any if bar else all)([axes.get_xlabel(), axes.get_ylabel()])


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_draws_with_labels_and_without_warnings(name):
    figure = FIGURES[name].draw(changes=TINY[name.removeprefix(FAMILY)])
    assert figure.axes
    assert all(labelled(axes) for axes in figure.axes)
    with house_style():
        figure.savefig(io.BytesIO(), format="svg")


def test_every_figure_has_a_caption_and_a_tiny_setting():
    assert {FAMILY + key for key in TINY} == set(NAMES)
    for name in NAMES:
        entry = FIGURES[name]
        assert len(entry.caption) > 80
        assert entry.caption.endswith(".")
        assert set(entry.full) <= set(entry.quick)


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
