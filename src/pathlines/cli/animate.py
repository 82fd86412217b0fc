"""pathlines animate: write an animation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pathlines.cli.common import Force, Full, ready, waiting, writable
from pathlines.cli.complete import animations
from pathlines.cli.generated import Choice, from_record, names_on, with_choices

SECONDS = 10.0
"""What a film takes at its own setting, at least."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    with_choices(app, "animate", film, settings, "Settings of the animation")


def settings(command: Any, words: list[str]) -> list[Choice]:
    """The options of the animation that a line names."""
    ready()
    from pathlines.draw.animation import ANIMATIONS

    known = {name: from_record(ANIMATIONS[name].picture.quick) for name in ANIMATIONS}
    flags = {c.option for choices in known.values() for c in choices if c.flag}
    named = names_on(command, words, flags)[:1]
    return [c for name in named if ANIMATIONS[name] for c in known[name]]


def film(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="An animation, e.g. metastability/life-of-clusters.", autocompletion=animations
        ),
    ],
    animate: Annotated[
        Path | None,
        typer.Option(
            "--animate", metavar="FILE", help="A film: gif, mp4 (needs ffmpeg) or a folder (default: NAME.gif)."
        ),
    ] = None,
    full: Full = False,
    rate: Annotated[float, typer.Option("--rate", help="Frames a second.")] = 15.0,
    dpi: Annotated[int, typer.Option("--dpi", help="Pixels an inch; the picture is about 9 × 4 inches.")] = 100,
    force: Force = False,
    **chosen: Any,
) -> None:
    """Compute and write an animation in the house style.

    Settings of an animation are options too: `pathlines animate NAME --help` lists them. Films of your own runs:
    `pathlines run MODEL --animate FILE`.

    Examples: `pathlines animate metastability/life-of-clusters --animate clusters.gif`,
    `pathlines animate metastability/life-of-clusters --beta 25 --animate frames/`.
    """
    ready()
    from pathlines.draw.animation import ANIMATIONS, check_target, write_reel
    from pathlines.foundation.bounds import enlarged
    from pathlines.foundation.errors import finite_number, positive_integer

    found, size = ANIMATIONS[name], "full" if full else "quick"
    usual, wanted = found.picture.setting(size), found.picture.setting(size, chosen)
    enlarged(f"Animation `{name}`", SECONDS, usual, wanted, force=force)
    finite_number("rate", rate, 0.0, 100.0, open_low=True)
    positive_integer("dpi", dpi, 20)
    path = Path(f"{name.replace('/', '-')}.gif") if animate is None else animate
    check_target(path)
    if path.suffix:
        writable(path)
    with waiting(f"computing {name}"):
        reel = found.reel(size, chosen)
    write_reel(reel, path, rate, dpi)
    typer.echo(f"{name}: {path.resolve()} ({reel.frames} frames)")
