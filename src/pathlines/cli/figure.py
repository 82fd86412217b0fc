"""pathlines figure: draw a figure of a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pathlines.cli.common import Figure, Force, Fresh, Full, check_outputs, loaded_files, ready, waiting
from pathlines.cli.complete import figures
from pathlines.cli.generated import Choice, from_record, names_on, with_choices


def register(app: typer.Typer) -> None:
    """Add the verb."""
    with_choices(app, "figure", figure, settings, "Settings of the figure")


def settings(command: Any, words: list[str]) -> list[Choice]:
    """The options of the figures that a line names."""
    ready()
    from pathlines.draw import FIGURES

    known = {name: from_record(FIGURES[name].quick) for name in FIGURES}
    flags = {c.option for choices in known.values() for c in choices if c.flag}
    chosen = {n for p in names_on(command, words, flags) for n in FIGURES.match(p)}
    return list({c.name: c for name in sorted(chosen, reverse=True) for c in known[name]}.values())


def figure(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME…", help="Figures: an id, a family or a glob.", autocompletion=figures),
    ],
    figure: Figure = None,
    full: Full = False,
    fresh: Fresh = False,
    force: Force = False,
    **chosen: Any,
) -> None:
    """Compute and draw figures of the papers in the house style.

    Figures are stored under their setting: the same command returns at once, or goes on where it was killed. They are
    written to NAME.pdf, or to --figure, a folder for several. Settings of a figure are options too:
    `pathlines figure NAME --help` lists them.

    Examples: `pathlines figure clustering/polytopes`,
    `pathlines figure clustering/phase-diagram --full --figure phase.pdf`,
    `pathlines figure "clustering/*" --figure figures/`.
    """
    ready()
    from pathlines.draw import FIGURES
    from pathlines.draw.kept import drawn
    from pathlines.foundation.bounds import enlarged
    from pathlines.foundation.errors import ArgumentError
    from pathlines.foundation.files import write_whole

    wanted = sorted({n for p in names for n in FIGURES.match(p)})
    size, out = "full" if full else "quick", figure
    for name in wanted:
        usual, changed = FIGURES[name].setting(size), FIGURES[name].setting(size, chosen)
        enlarged(f"Figure `{name}`", 1.0, usual, changed, force=force)
    many = len(wanted) > 1
    if many and out is not None and out.suffix:
        raise ArgumentError(f"Option --figure must be a folder for {len(wanted)} figures, but is {out}.")
    for name in wanted:
        default = f"{name.replace('/', '-')}.pdf"
        is_folder = out is not None and (many or not out.suffix)
        path = Path(default) if out is None else out / default if is_folder else out
        check_outputs(figures=(path,))
        with waiting(f"drawing {name}"):
            content, stored = drawn(FIGURES[name], size, chosen, path.suffix, files=loaded_files(), fresh=fresh)
            write_whole(path, content)
        typer.echo(f"{name}: {path.resolve()}" + (" (stored; --fresh draws it again)" if stored else ""))
