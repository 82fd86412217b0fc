"""Named moving pictures, and how they are written: GIF, MP4 or a folder of frames."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import msgspec
from matplotlib.animation import FFMpegWriter, PillowWriter
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from pathlines.draw.gallery import Picture
from pathlines.draw.style import house_style
from pathlines.foundation.errors import ArgumentError, finite_number, positive_integer
from pathlines.foundation.files import whole_file, write_whole
from pathlines.foundation.papers import Paper
from pathlines.foundation.progress import Progress
from pathlines.foundation.registry import Registry
from pathlines.foundation.setting import S


class Reel(NamedTuple):
    """A figure and the function that turns it into frame k."""

    figure: Figure
    frames: int
    show: Callable[[int], None]


class Film(msgspec.Struct, frozen=True):
    """An animation that can be made again by anyone: its picture's ``make`` returns a ``Reel``."""

    picture: Picture[Any]

    def reel(self, size: str = "quick", changes: Mapping[str, Any] | None = None) -> Reel:
        """Compute everything that the frames show."""
        reel: Any = self.picture.draw(size, changes)
        return reel


ANIMATIONS: Registry[Film] = Registry("animation", "pathlines.draw.animations")


def animation(
    name: str, paper: Paper, caption: str, *, quick: S, full: S | None = None
) -> Callable[[Callable[[S], Reel]], Film]:
    """Register a function from a setting to a reel."""

    def wrap(make: Callable[[S], Any]) -> Film:
        return ANIMATIONS.register(
            name, Film(Picture(name, paper, caption, quick, quick if full is None else full, make))
        )

    return wrap


def check_target(path: Path, option: str = "--animate") -> None:
    """``ArgumentError`` unless an animation can be written there: .gif, .mp4 with ffmpeg at hand, or a folder."""
    if path.suffix not in (".gif", ".mp4", ""):
        raise ArgumentError(f"Option {option} must end in .gif or .mp4, or be a folder for frames, but is {path}.")
    if path.suffix == "" and path.exists() and not path.is_dir():
        raise ArgumentError(
            f"Option {option} must end in .gif or .mp4, or be a folder for frames, but {path} is a file."
        )
    if path.suffix == ".mp4" and not FFMpegWriter.isAvailable():
        raise ArgumentError(
            "Writing .mp4 needs the program ffmpeg, which was not found; write a .gif or frames instead."
        )


def write_reel(reel: Reel, path: Path, rate: float = 15.0, dpi: int = 100) -> None:
    """Write all frames, ``rate`` a second; a path without ending is a folder of frame-0000.png, …"""
    check_target(path)
    rate, dpi = finite_number("rate", rate, 0.0, 100.0, open_low=True), positive_integer("dpi", dpi, 20)
    FigureCanvasAgg(reel.figure)
    # Frames of a film have one size, so nothing is cut to its content.
    with (
        house_style(),
        mpl.rc_context({"savefig.bbox": None}),
        Progress("frames", reel.frames) as bar,
        _frames_into(path, reel.figure, rate, dpi) as grab,
    ):
        for k in range(reel.frames):
            reel.show(k)
            grab(k)
            bar.update(k + 1)


@contextmanager
def _frames_into(path: Path, figure: Figure, rate: float, dpi: int) -> Iterator[Callable[[int], Any]]:
    """What to do with frame k; the film is there when all frames are."""
    if path.suffix:
        writer = (PillowWriter if path.suffix == ".gif" else FFMpegWriter)(fps=rate)
        with whole_file(path) as unfinished:
            writer.setup(figure, str(unfinished), dpi)
            yield lambda k: writer.grab_frame()
            writer.finish()
    else:
        path.mkdir(parents=True, exist_ok=True)
        yield lambda k: write_whole(path / f"frame-{k:04d}.png", _frame(figure, dpi))


def _frame(figure: Figure, dpi: int) -> bytes:
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi)
    return drawn.getvalue()
