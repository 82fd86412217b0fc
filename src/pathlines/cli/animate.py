"""pathlines animate: write an animation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathlines.cli.common import parse_changes, ready, waiting, writable


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="animate")(animate)


def animate(
    name: Annotated[str, typer.Argument(metavar="NAME", help="An animation, e.g. metastability/life-of-clusters.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="x.gif, x.mp4 (needs ffmpeg) or a folder for frames. Default: NAME.gif."
        ),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="The long version instead of the quick one.")] = False,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a setting of the animation.")
    ] = None,
    rate: Annotated[float, typer.Option("--rate", help="Frames a second.")] = 15.0,
    dpi: Annotated[int, typer.Option("--dpi", help="Pixels an inch; the picture is about 9 × 4 inches.")] = 100,
) -> None:
    """Compute and write an animation in the house style.

    Examples: `pathlines animate metastability/life-of-clusters --out clusters.gif`,
    `pathlines animate metastability/life-of-clusters --set beta=25 --out frames/`.
    """
    ready()
    from pathlines.draw.animation import ANIMATIONS, check_target, write_reel
    from pathlines.foundation.errors import finite_number, positive_integer

    film, changes, size = ANIMATIONS[name], parse_changes(set_), "full" if full else "quick"
    film.setting(size, changes)
    finite_number("rate", rate, 0.0, 100.0, open_low=True)
    positive_integer("dpi", dpi, 20)
    path = Path(f"{name.replace('/', '-')}.gif") if out is None else out
    check_target(path)
    if path.suffix:
        writable(path)
    with waiting(f"computing {name}"):
        reel = film.reel(size, changes)
    write_reel(reel, path, rate, dpi)
    typer.echo(f"{name}: {path.resolve()} ({reel.frames} frames)")
