"""The program: verbs, global options, and errors without tracebacks."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Annotated, Any

import typer

from pathlines.cli.common import remember

COMPLETING = "_PATHLINES_COMPLETE"
"""Set by a shell that asks for completions."""
USAGE: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
"""Errors of the command line itself; Typer has carried them under different module names."""

app = typer.Typer(
    name="pathlines",
    help=(
        "Simulate, predict and verify what depth does to tokens.\n\n"
        "Start with `pathlines verify` (every claim of every paper, at quick size, with a report), `pathlines list` "
        "(what there is), `pathlines show NAME` (one model, claim, observable or figure) and `pathlines run --help`."
        "\n\nExit codes: 0 done, 1 another verdict or outcome than expected or a target missed, 2 bad input, 70 a bug, "
        "71 not enough memory, 74 a file could not be written or read, 130 interrupted."
    ),
    no_args_is_help=True,
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
        bool | None, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options that come before the verb."""
    remember(debug=debug, load=tuple(load or ()))


FIRST = ("run", "verify", "figure", "listing", "show", "cite")
OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "std::bad_alloc")
"""How the compiler and native code say so."""
HELPERS = ("program", "advise_more", "common", "complete", "generated", "interrupt", "standing", "verdicts")


def verbs() -> list[Any]:
    """The files of this room but its helpers: the verbs everyone needs first, then the others by name."""
    found = (m.name for m in iter_modules([str(Path(__file__).parent)]))
    names = sorted(name for name in found if name not in (*FIRST, *HELPERS))
    return [import_module(f"pathlines.cli.{name}") for name in (*FIRST, *names)]


for verb in verbs():
    verb.register(app)


def outcome() -> int:
    """Run the program: deliberate errors become one line on stderr and an exit code (the help lists them)."""
    from pathlines.foundation.errors import PathlinesError, StoreError

    debug = "--debug" in sys.argv
    try:
        code = app(standalone_mode=False) or 0
        sys.stdout.flush()
        return code
    except SystemExit as stop:
        if stop.code or COMPLETING in os.environ:
            raise
        return _said("A loaded file ended the program before there was a result (SystemExit).", 2)
    except PathlinesError as error:
        if debug:
            raise
        return _said(str(error), 74 if isinstance(error, StoreError) else 2)
    except Exception as error:
        if isinstance(error, USAGE):
            return _misused(error)
        if debug:
            raise
        if isinstance(error, OSError) and error.errno is not None:
            _forget_output()
            return _said(f"{error.filename or 'The output'} cannot be written or read ({error.strerror}).", 74)
        if isinstance(error, MemoryError) or any(word in str(error) for word in OUT_OF_MEMORY):
            return _said("There is not enough memory for this size on this machine.", 71)
        cause = error.__cause__ if isinstance(error, typer.Abort) and error.__cause__ else error
        kind = type(cause).__name__
        return _said(f"{kind}: {cause} (this is a bug; `pathlines --debug …` shows where)", 70)


def _forget_output() -> None:
    """What could not be printed is not tried again when Python ends, which would change the exit code."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _misused(error: Any) -> int:
    """Words that the command line does not understand; no words at all are answered by the help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return error.exit_code
    path = error.ctx.command_path if getattr(error, "ctx", None) else "pathlines"
    return _said(f"{error.format_message().rstrip('.')}; see `{path} --help`.", error.exit_code)


def _said(message: str, code: int) -> int:
    typer.echo(f"pathlines: {' '.join(message.split())}", err=True)
    return code
