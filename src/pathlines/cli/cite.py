"""pathlines cite: the papers to cite."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pathlines.cli.common import ready
from pathlines.cli.complete import cited


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="cite")(cite)


def cite(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]…", help="Models, claims, figures or saved runs; all by default.", autocompletion=cited
        ),
    ] = None,
) -> None:
    """Print the BibTeX of the papers behind a model, a claim, a figure or a saved run.

    Examples: `pathlines cite pre-ln`, `pathlines cite clustering/CL-40`,
    `pathlines cite run.nc`.
    """
    from pathlines.foundation.papers import PAPERS

    papers = list(PAPERS.values())
    if names:
        ready()
        papers = [p for name in names for p in _papers(name)]
    for paper in dict.fromkeys(papers):
        typer.echo(paper.bibtex + "\n")


def _papers(name: str) -> list[Any]:
    from pathlines.claim import CLAIMS
    from pathlines.draw import FIGURES
    from pathlines.foundation.errors import UnknownNameError
    from pathlines.model import MODELS

    if name.endswith(".nc"):
        return _run_papers(name)
    if name in list(MODELS):
        return list(MODELS[name].papers)
    for shelf in (CLAIMS, FIGURES):
        if name in list(shelf):
            return [shelf[name].paper]
    raise UnknownNameError(f"There is no model, claim or figure `{name}`.{CLAIMS.suggestion(name)}")


def _run_papers(path: str) -> list[Any]:
    from pathlines.foundation.papers import PAPERS
    from pathlines.store import open_run

    return [PAPERS[key] for key in open_run(path).setting["papers"] if key in PAPERS]
