"""The program: verbs, global options, and errors without tracebacks."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pathlines.cli import cite, collapse, figure, listing, run, show, verify
from pathlines.cli.common import fail, remember

app = typer.Typer(
    name="pathlines",
    help=(
        "Simulate, predict and verify what depth does to tokens.\n\n"
        "Start with `pathlines verify` (every claim of every paper, at quick size, with a report), `pathlines list` "
        "(what there is), `pathlines show NAME` (one model, claim, observable or figure) and `pathlines run --help`."
    ),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"pathlines {version('pathlines')}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    load: Annotated[
        list[str] | None,
        typer.Option("--load", metavar="FILE", help="A Python file that registers models, observables or claims."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options that come before the verb."""
    remember(debug=debug, load=tuple(load or ()))


for verb in (run, verify, figure, listing, show, cite, collapse):
    verb.register(app)


def main() -> None:
    """Entry point: deliberate errors become one line on stderr and exit code 2; Ctrl-C exits with 130."""
    from pathlines.foundation.errors import PathlinesError

    try:
        app()
    except PathlinesError as error:
        if "--debug" in sys.argv:
            raise
        fail(str(error))
    except KeyboardInterrupt:
        fail("Interrupted; what was finished is stored.", code=130)
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        fail(f"{type(error).__name__}: {error} (this is a bug; `pathlines --debug …` shows where)", code=70)
