"""What the verbs share: settings from the command line, output, the environment of a run."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from pathlines.foundation.written import value_of

Tokens = Annotated[int, typer.Option("--n", help="Tokens n (context length).")]
Dimension = Annotated[int, typer.Option("--d", help="Dimension d of the tokens (width).")]
Beta = Annotated[float, typer.Option("--beta", help="Inverse temperature β.")]
Step = Annotated[float, typer.Option("--step", help="Residual step η of a layer.")]
Heads = Annotated[int, typer.Option("--heads", help="Heads H of a layer.")]
LogitScale = Annotated[float, typer.Option("--logit-scale", help="b, the standard deviation of one logit.")]
Rtol = Annotated[float, typer.Option("--rtol", help="Relative tolerance of the integrator.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of everything that is drawn.")]
Figure = Annotated[Path | None, typer.Option("--figure", metavar="FILE", help="Draw it: pdf, svg or png.")]
Report = Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Write an HTML page.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Full = Annotated[bool, typer.Option("--full", help="The paper's size instead of the quick one.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Compute again what is stored.")]
Force = Annotated[bool, typer.Option("--force", help="Insist on a size that is refused by its predicted cost.")]
"""One word for each thing, in every verb."""

DAMAGED = "persistent compilation cache"
"""In what JAX says of a kept program that it cannot read; it compiles it again."""
_OPTIONS: dict[str, Any] = {"debug": False, "load": ()}


def remember(**options: Any) -> None:
    """Keep the options given before the verb."""
    _OPTIONS.update(options)


def loaded_files() -> tuple[str, ...]:
    """Files named by --load."""
    return tuple(str(Path(f).resolve()) for f in _OPTIONS["load"])


def debugging() -> bool:
    """Whether --debug was given."""
    return bool(_OPTIONS["debug"])


def ready() -> None:
    """Prepare an application run: 64-bit numbers, kept programs (this process is ours to configure), the user's files.

    JAX is told by its environment as long as nobody has imported it: verbs that need only theory never do.
    """
    from pathlines.foundation.kept_programs import keep_programs
    from pathlines.foundation.load import load_file

    keep_programs()
    os.environ["JAX_ENABLE_X64"] = "1"
    if "jax" in sys.modules:
        from pathlines.foundation.precision import enable_float64

        enable_float64()
    warnings.showwarning = _one_line
    for file in loaded_files():
        load_file(file)


def _one_line(message: Any, *_: Any, **__: Any) -> None:
    if DAMAGED in str(message):
        return
    typer.echo(f"pathlines: warning: {message}", err=True)


def parse_changes(pairs: list[str] | None) -> dict[str, Any]:
    """``name=value`` pairs, values as ``value_of`` reads them."""
    from pathlines.foundation.errors import ArgumentError

    changes = {}
    for pair in pairs or []:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise ArgumentError(f"Option --set takes NAME=VALUE, but got {pair!r}.")
        changes[name] = value_of(text)
    return changes


def console(*, stderr: bool = False) -> Any:
    """A rich console that prints text as it is: brackets are mathematics and file names here, never markup."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False)


def waiting(words: str) -> Any:
    """A moving sign on the terminal while something takes its time; Rich's own would read brackets as markup."""
    from rich.text import Text

    return console(stderr=True).status(Text(words))


FIGURES = (".pdf", ".svg", ".png")


def check_outputs(*files: Path | None, figures: tuple[Path | None, ...] = ()) -> None:
    """All that a verb will write can be written, and figures have a suffix that can be drawn; before any work."""
    from pathlines.foundation.errors import ArgumentError

    for figure in figures:
        if figure is not None and figure.suffix not in FIGURES:
            raise ArgumentError(f"The name of a figure must end in .pdf, .svg or .png, but is {figure}.")
    for path in (*files, *figures):
        if path is not None:
            writable(path)


def writable(path: Path) -> Path:
    """The path, after checking that a file can be written there."""
    from pathlines.foundation.errors import ArgumentError

    try:
        if path.is_dir():
            raise ArgumentError(f"{path} is a folder; name a file in it.")
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            path.open("ab").close()
        else:  # nothing is left under the name if the process is killed here
            tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise ArgumentError(f"The file {path} cannot be written ({error.strerror}).") from error
    return path
