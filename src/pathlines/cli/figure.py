"""pathlines figure: draw a figure of a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathlines.cli.common import console, parse_changes, ready, writable


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="figure")(figure)


def figure(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="Figures: an id, a family or a glob.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="pdf, svg or png; a folder for several. Default: NAME.pdf."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="The paper's size instead of the quick one.")] = False,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a setting of the figure.")
    ] = None,
) -> None:
    """Compute and draw figures of the papers in the house style.

    Examples: `pathlines figure clustering/polytopes`,
    `pathlines figure clustering/phase-diagram --full --out phase.pdf`,
    `pathlines figure "clustering/*" --out figures/`.
    """
    ready()
    from pathlines.draw import FIGURES, save_figure
    from pathlines.foundation.errors import ArgumentError

    chosen = sorted({n for p in names for n in FIGURES.match(p)})
    changes = parse_changes(set_)
    size = "full" if full else "quick"
    for name in chosen:
        FIGURES[name].setting(size, changes)
    many = len(chosen) > 1
    if many and out is not None and out.suffix:
        raise ArgumentError(f"Option --out must be a folder for {len(chosen)} figures, but is {out}.")
    for name in chosen:
        default = f"{name.replace('/', '-')}.pdf"
        is_folder = out is not None and (many or not out.suffix)
        path = Path(default) if out is None else out / default if is_folder else out
        if path.suffix not in (".pdf", ".svg", ".png"):
            raise ArgumentError(f"Option --out must end in .pdf, .svg or .png, but is {path}.")
        writable(path)
        with console(stderr=True).status(f"drawing {name}"):
            save_figure(FIGURES[name].draw(size, changes), path)
        typer.echo(f"{name}: {path.resolve()}")
