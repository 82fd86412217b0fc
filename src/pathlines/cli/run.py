"""pathlines run: one run (or an ensemble) of a registered model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pathlines.cli.common import (
    AsJson,
    Figure,
    Force,
    Fresh,
    Rtol,
    Seed,
    check_outputs,
    console,
    loaded_files,
    ready,
    writable,
)  # fmt: skip
from pathlines.cli.complete import models
from pathlines.cli.generated import Choice, from_record, names_on, read_array, with_choices

ELSEWHERE = ("d", "step")
"""Parameters of models that are options of every run."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    with_choices(app, "run", run, parameters, "Parameters of the model")


def parameters(command: Any, words: list[str]) -> list[Choice]:
    """The options of the model that a line names."""
    ready()
    from pathlines.model import MODELS

    name = words[0] if words and not words[0].startswith("-") else _first_name(command, words)
    return [c for c in from_record(MODELS[name].parameters()) if c.name not in ELSEWHERE]


def _first_name(command: Any, words: list[str]) -> str:
    """The model of a line that begins with options: those of any model may stand before its name."""
    from pathlines.model import MODELS

    known = [from_record(entry.parameters()) for _, entry in MODELS.items()]
    flags = {c.option for choices in known for c in choices if c.flag}
    return (names_on(command, words, flags) or ["sa"])[0]


def run(
    model: Annotated[
        str,
        typer.Argument(
            help="A model of `pathlines list models`, e.g. sa, usa, pre-ln, rescaled.", autocompletion=models
        ),
    ] = "sa",
    n: Annotated[
        int | None, typer.Option("--n", help="Tokens n (default: 64, or those of --tokens).", show_default=False)
    ] = None,
    d: Annotated[
        int | None,
        typer.Option(
            "--d", help="Dimension d (default: that of --tokens, the weights, or the model).", show_default=False
        ),
    ] = None,
    until: Annotated[float, typer.Option("--until", help="Last depth-time.")] = 15.0,
    start: Annotated[
        str,
        typer.Option(
            "--start",
            help="uniform, sines (deterministic), simplex[:overlap], cube[:half-width], normal[:std], "
            "von-mises-fisher[:concentration] or clusters[:count,spread].",
        ),
    ] = "uniform",
    tokens: Annotated[
        Path | None, typer.Option("--tokens", metavar="FILE.npy", help="Your own tokens instead: an array (n, d).")
    ] = None,
    record: Annotated[
        str,
        typer.Option("--record", help="Observables, comma separated (`pathlines list observables`); a few by default."),
    ] = "",
    runs: Annotated[int, typer.Option("--runs", min=1, help="Independent runs; more than one is an ensemble.")] = 1,
    layers: Annotated[
        int | None, typer.Option("--layers", min=1, help="A stack of that many layers, not a flow.")
    ] = None,
    step: Annotated[float | None, typer.Option("--step", help="Residual step η of a layer, or a method's own.")] = None,
    method: Annotated[
        str, typer.Option("--method", help="rk45, dop853 (adaptive); rk4, heun, euler, … (with --step).")
    ] = "rk45",
    rtol: Rtol = 1e-8,
    form: Annotated[str, typer.Option("--form", help="auto, tokens, span, gram-deficit or circle-fourier.")] = "auto",
    seed: Seed = 0,
    dtype: Annotated[str, typer.Option("--dtype", help="float64 or float32.")] = "float64",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Also write the run to this netCDF file.")
    ] = None,
    figure: Figure = None,
    animate: Annotated[
        Path | None, typer.Option("--animate", metavar="FILE", help="A film of the tokens: gif, mp4 or a folder.")
    ] = None,
    fresh: Fresh = False,
    as_json: AsJson = False,
    force: Force = False,
    **chosen: Any,
) -> None:
    """Simulate a model and record observables.

    Parameters of the model are options too: `pathlines run MODEL --help` lists them with symbol, meaning and range.
    Matrices and vectors are .npy files, JSON, or numbers separated by commas; one matrix per head makes a stack.

    The result is stored under its setting: the same command returns at once, and a run that was interrupted (Ctrl-C or
    killed) continues where it was. A run that cannot be completed (diverged, stalled, beyond what its arithmetic can
    show) keeps what it has, says when and why, and exits with 1. `pathlines show FILE.nc` opens a saved run again.

    Examples: `pathlines run sa --n 200 --d 3 --beta 9 --until 30 --figure run.pdf`,
    `pathlines run sa --tokens x.npy --query Q.npy --key K.npy --value V.npy --mask causal --animate film.gif`,
    `pathlines run pre-ln --n 32 --d 64 --layers 48 --step 0.1 --record mean_overlap`.
    """
    ready()
    from pathlines.foundation.errors import finite_array
    from pathlines.sweep.request import Request, check_size, dimension, execute

    check_outputs(out, figures=(figure,))
    names = tuple(x.strip() for x in record.split(",") if x.strip())
    rows = None if tokens is None else finite_array("tokens", read_array("--tokens", tokens), ("n", "d"))
    n = n if n is not None else 64 if rows is None else len(rows)
    d = dimension(d, rows, model, chosen)
    request = Request(
        model, chosen, n, d, until, start, names, runs, layers, step, method, rtol, form, seed, dtype, rows
    )
    _check_start(request)
    if animate is not None:
        request = _filmed(request, animate)
    check_size(request, force)

    def show(result: Any, how: str) -> None:
        if as_json:
            _print_json(result, how)
        else:
            _print_text(result, how)
        shown.append(result)

    shown: list[Any] = []
    try:
        pictures = figure is not None or animate is not None
        result, _ = execute(request, fresh=fresh, paths=pictures, files=loaded_files(), show=show)
    finally:  # a store that is full keeps nobody from writing elsewhere, nor the other way round
        for result in shown:
            _write(result, out, figure, animate, quiet=as_json)
    if result.outcome != "completed":
        raise typer.Exit(1)


def _check_start(request: Any) -> None:
    from pathlines.foundation.errors import ArgumentError

    if request.tokens is not None and request.tokens.shape != (request.n, request.d):
        shape = " × ".join(map(str, request.tokens.shape))
        raise ArgumentError(f"Options --n {request.n} and --d {request.d} do not fit --tokens, which are {shape}.")


def _filmed(request: Any, path: Path) -> Any:
    """The request with its tokens recorded, once it is known that they can be drawn and the film written."""
    import msgspec

    from pathlines.draw.animation import check_target
    from pathlines.foundation.errors import ArgumentError
    from pathlines.sweep.request import build, can_draw

    check_target(path, "--animate")
    if path.suffix:
        writable(path)
    if not can_draw(build(request), request):
        raise ArgumentError(
            "Option --animate shows one run of up to 2000 tokens in two or three dimensions (--form auto or tokens)."
        )
    named = request.record and "tokens" not in request.record
    return msgspec.structs.replace(request, record=(*request.record, "tokens")) if named else request


def _last(result: Any) -> dict[str, Any]:
    import numpy as np

    values = {}
    for name, data in result.data.data_vars.items():
        final = data.isel(time=-1)
        if final.size == 1 or ("run" in final.dims and final.ndim == 1):
            values[str(name)] = float(np.mean(final.values))
    return values


def _print_json(result: Any, how: str) -> None:
    import msgspec

    document = {
        "outcome": result.outcome,
        "stored": how == "stored",
        "resumed": how == "resumed",
        "last_time": float(result.time[-1]) if len(result.time) else None,
        "final": _last(result),
        "certificates": msgspec.to_builtins(result.certificates),
        "forms": msgspec.to_builtins(result.forms),
        "setting": result.setting,
        "seconds": result.seconds,
    }
    typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())


def _write(result: Any, out: Path | None, figure: Path | None, film: Path | None, quiet: bool) -> None:
    if out is not None:
        from pathlines.store import save_run

        out = save_run(result, out)
    if figure is not None:
        from pathlines.draw import plot, save_figure

        save_figure(plot(result), figure)
    if film is not None:
        from pathlines.draw.animation import write_reel
        from pathlines.draw.film import run_reel

        write_reel(run_reel(result), film)
    for label, path in (("run", out), ("figure", figure), ("film", film)):
        if path is not None and not quiet:
            console().print(f"{label}: {path.resolve()}", soft_wrap=True)


def _print_text(result: Any, how: str) -> None:
    from rich.table import Table

    screen = console()
    screen.print(repr(result))
    if how == "stored":
        screen.print("  (stored result; --fresh computes it again)")
    if how == "resumed":
        screen.print("  (continued from the checkpoint of an interrupted run)")
    table = Table(box=None, padding=(0, 2), title_justify="left")
    table.add_column("observable")
    table.add_column(f"at t = {result.time[-1]:g}" if len(result.time) else "never recorded", justify="right")
    for name, value in _last(result).items():
        table.add_row(name, f"{value:.8g}")
    screen.print(table)
