"""Pictures and films of runs: tokens where they live, labels inside the figure."""

import numpy as np
import pytest
import xarray as xr

from pathlines.draw import plot
from pathlines.draw.animation import write_reel
from pathlines.draw.film import run_reel
from pathlines.draw.style import figure_bytes
from pathlines.foundation.errors import ArgumentError
from pathlines.integrate.run import Run


def run_of(d, unit, runs=0):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 5, d))
    x = x / np.linalg.norm(x, axis=-1, keepdims=True) if unit else 3 * x
    dims = ("time", "token", "component")
    data = {
        "energy_fraction": ("time", [0.1, 0.2, 0.3], {"long_name": "energy over its maximum", "symbol": "E_β/E_max"})
    }
    data["tokens"] = (("run", *dims), x[None]) if runs else (dims, x)
    setting = {"model": {"name": "SelfAttention", "beta": 9.0}, "papers": []}
    return Run(xr.Dataset(data, coords={"time": [0.0, 1.0, 2.0]}), (), (), "completed", setting, 0.1)


@pytest.mark.parametrize(("d", "unit"), [(2, True), (3, True), (2, False), (3, False)])
def test_tokens_are_drawn_first_and_filmed(d, unit, tmp_path):
    run = run_of(d, unit)
    figure = plot(run)
    figure_bytes(figure, ".png")
    assert "tokens" in figure.axes[0].get_title(loc="left")
    write_reel(run_reel(run), tmp_path / "frames", dpi=30)
    frames = sorted(tmp_path.glob("frames/*.png"))
    assert len(frames) == 3
    assert len({f.read_bytes() for f in frames}) == 3


def test_labels_do_not_reach_the_title():
    """The label beside the panel was longer than the panel, and covered the title of the figure."""
    figure = plot(run_of(3, True))
    figure_bytes(figure, ".png")
    title = figure._suptitle.get_window_extent()
    for axes in figure.axes:
        assert not title.overlaps(axes.yaxis.label.get_window_extent())


@pytest.mark.parametrize("run", [run_of(4, True), run_of(3, True, runs=1)])
def test_what_cannot_be_filmed_is_refused(run):
    with pytest.raises(ArgumentError, match="one run in two or three dimensions"):
        run_reel(run)


def test_a_run_without_tokens_says_how_to_record_them():
    run = run_of(2, True)
    bare = Run(run.data.drop_vars("tokens"), (), (), "completed", run.setting, 0.1)
    with pytest.raises(ArgumentError, match="record them"):
        run_reel(bare)
