"""The figures of Gaussian clouds draw at a tiny setting."""

import io
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from pathlines.draw.animation import ANIMATIONS
from pathlines.draw.figures.gaussian.cloud_drawing import ellipse, on_disc
from pathlines.draw.gallery import FIGURES
from pathlines.draw.style import house_style
from pathlines.model.gaussian_examples import disc_of_covariances

FAMILY = "gaussian/"
TINY: dict[str, dict[str, Any]] = {
    "anisotropy": {"kinds": ["softmax"], "frames": 9, "ellipses": 3, "until": 2.0},
    "blow-up-times": {"side": 5},
    "class-map": {"points": 3},
    "disc-of-starts": {"examples": ["line", "both"], "side": 3},
    "fate": {"frames": 12, "ellipses": 3},
    "rank-histograms": {"dimensions": [3], "draws": 8},
    "validity-window": {"starts": [0.2]},
}
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
