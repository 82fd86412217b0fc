"""pathlines figure: draw a figure of a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathlines.cli.common import check_outputs, loaded_files, parse_changes, ready, waiting


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
    fresh: Annotated[bool, typer.Option("--fresh", help="Draw again even what is stored.")] = False,
) -> None:
    """Compute and draw figures of the papers in the house style.

    Figures are stored under their setting: the same command returns at once, or goes on where it was killed.

    Examples: `pathlines figure clustering/polytopes`,
    `pathlines figure clustering/phase-diagram --full --out phase.pdf`,
    `pathlines figure "clustering/*" --out figures/`.
    """
    ready()
    from pathlines.draw import FIGURES
    from pathlines.draw.kept import drawn
    from pathlines.foundation.errors import ArgumentError
    from pathlines.foundation.files import write_whole

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
        check_outputs(figures=(path,))
        with waiting(f"drawing {name}"):
            content, stored = drawn(FIGURES[name], size, changes, path.suffix, files=loaded_files(), fresh=fresh)
            write_whole(path, content)
        typer.echo(f"{name}: {path.resolve()}" + (" (stored; --fresh draws it again)" if stored else ""))
