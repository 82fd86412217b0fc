import io

import pytest

from pathlines.draw.figures.metastability import staircase  # noqa: F401
from pathlines.draw.gallery import FIGURES
from pathlines.draw.style import house_style

TINY = {
    "staircase": {"betas": [20.0, 1000.0]},
    "merging-times": {"angles": [0.0, 0.9, 2.0], "points": 3, "lines": 4, "beta_max": 40.0},
    "certificate": {"gaps": [1.8], "points": 4, "beta_max": 60.0},
}


@pytest.mark.parametrize("name", TINY)
def test_figures_draw_with_labels(name):
    figure = FIGURES[f"metastability/{name}"].draw(changes=TINY[name])
    assert all(axes.get_xlabel() and axes.get_ylabel() for axes in figure.axes)
    with house_style():
        figure.savefig(io.BytesIO(), format="svg")


def test_certificate_is_below_the_truth():
    figure = FIGURES["metastability/certificate"].draw(changes=TINY["certificate"])
    shares = [y for line in figure.axes[1].lines for y in line.get_ydata() if y == y]
    assert shares
    assert max(shares) < 1
