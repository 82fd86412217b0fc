"""The drawings of Gaussian clouds show what they say."""

import numpy as np
import pytest

from pathlines.draw.animation import ANIMATIONS
from pathlines.draw.figures.gaussian.cloud_drawing import ellipse, on_disc
from pathlines.integrate.gaussian_fate import fates
from pathlines.model.gaussian.examples import EXAMPLES, disc_of_covariances


def test_disc_and_ellipse():
    starts = disc_of_covariances(5, 0.9)
    x, y = on_disc(starts)
    assert np.all(x**2 + y**2 < 1) and np.allclose(np.trace(starts, axis1=1, axis2=2), 1)
    u = np.array([0.6, 0.8])
    x, y = on_disc(np.outer(u, u))
    assert x**2 + y**2 == pytest.approx(1)
    shape = ellipse(np.diag([4.0, 1.0]))
    assert (shape.width, shape.height, shape.angle % 180) == (4.0, 2.0, pytest.approx(0))


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_heads_by_rows_add_up(name):
    """Σ C_h = V and Σ A_h = A; the numbers of the whole example are those of its parts."""
    example, model = EXAMPLES[name], EXAMPLES[name].by_rows()
    np.testing.assert_allclose(np.sum(model.value, axis=0), example.value)
    np.testing.assert_allclose(np.einsum("hpi,hpj->ij", model.key, model.query), example.score, atol=1e-15)


def test_two_heads_one_of_them_empty_leave_a_plane():
    """C = e₁e₁ᵀ and the other head zero: Σ₂₂ never changes, and the limit has rank two."""
    (fate,) = fates(EXAMPLES["line"].by_rows(), np.sqrt(0.5) * np.eye(2))
    assert fate.kind == "converged" and fate.rank == 2
    assert fate.covariance[1][1] == pytest.approx(0.5, abs=1e-8) and fate.covariance[0][0] < 0.45


def test_ellipses_move():
    reel = ANIMATIONS["gaussian/ellipses"].reel(changes={"examples": ["both"], "frames": 3})
    (patch, _) = reel.figure.axes[0].patches
    widths = []
    for k in range(reel.frames):
        reel.show(k)
        widths.append(min(patch.width, patch.height))
    assert widths[0] == pytest.approx(2 * np.sqrt(0.5)) and widths[-1] < widths[0]
    assert "sizes" in reel.figure.axes[0].texts[0].get_text()
