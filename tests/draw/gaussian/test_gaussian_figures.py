"""The drawings of Gaussian clouds show what they say."""

import numpy as np
import pytest

from pathlines.draw.animation import ANIMATIONS
from pathlines.draw.figures.gaussian.cloud_drawing import ellipse, on_disc
from pathlines.model.gaussian.examples import disc_of_covariances


def test_disc_and_ellipse():
    starts = disc_of_covariances(5, 0.9)
    x, y = on_disc(starts)
    assert np.all(x**2 + y**2 < 1) and np.allclose(np.trace(starts, axis1=1, axis2=2), 1)
    u = np.array([0.6, 0.8])
    x, y = on_disc(np.outer(u, u))
    assert x**2 + y**2 == pytest.approx(1)
    shape = ellipse(np.diag([4.0, 1.0]))
    assert (shape.width, shape.height, shape.angle % 180) == (4.0, 2.0, pytest.approx(0))


def test_ellipses_move():
    reel = ANIMATIONS["gaussian/ellipses"].reel(changes={"examples": ["both"], "frames": 3})
    (patch, _) = reel.figure.axes[0].patches
    widths = []
    for k in range(reel.frames):
        reel.show(k)
        widths.append(min(patch.width, patch.height))
    assert widths[0] == pytest.approx(2 * np.sqrt(0.5)) and widths[-1] < widths[0]
    assert "sizes" in reel.figure.axes[0].texts[0].get_text()
