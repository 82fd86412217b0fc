"""The program: verbs, global options, and errors without tracebacks."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Annotated, Any

import typer

from pathlines.cli.common import fail, remember

USAGE: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
"""Errors of the command line itself; Typer has carried them under different module names."""

app = typer.Typer(
    name="pathlines",
    help=(
        "Simulate, predict and verify what depth does to tokens.\n\n"
        "Start with `pathlines verify` (every claim of every paper, at quick size, with a report), `pathlines list` "
        "(what there is), `pathlines show NAME` (one model, claim, observable or figure) and `pathlines run --help`."
        "\n\nExit codes: 0 done, 1 another verdict or outcome than expected, 2 bad input, 70 a bug, "
        "74 a file could not be written or read, 130 interrupted."
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


FIRST = ("run", "verify", "figure", "listing", "show", "cite")
HELPERS = ("main", "common", "execute")


def verbs() -> list[Any]:
    """The files of this room but its helpers: the verbs everyone needs first, then the others by name."""
    found = (m.name for m in iter_modules([str(Path(__file__).parent)]))
    names = sorted(name for name in found if name not in (*FIRST, *HELPERS))
    return [import_module(f"pathlines.cli.{name}") for name in (*FIRST, *names)]


for verb in verbs():
    verb.register(app)


def main() -> None:
    """Entry point: deliberate errors become one line on stderr and an exit code (the help lists them)."""
    from pathlines.foundation.errors import PathlinesError, StoreError

    debug = "--debug" in sys.argv
    try:
        code = app(standalone_mode=False)
    except PathlinesError as error:
        if debug:
            raise
        fail(str(error), code=74 if isinstance(error, StoreError) else 2)
    except (KeyboardInterrupt, typer.Abort):
        fail("interrupted; what was finished is stored, the same command goes on from there.", code=130)
    except Exception as error:
        if isinstance(error, USAGE):
            error.show()
            sys.exit(error.exit_code)
        if debug:
            raise
        if isinstance(error, OSError) and error.errno is not None:
            fail(f"{error.filename or 'The output'} cannot be written or read ({error.strerror}).", code=74)
        fail(f"{type(error).__name__}: {error} (this is a bug; `pathlines --debug …` shows where)", code=70)
    sys.exit(code or 0)
