"""pathlines run: one run (or an ensemble) of a registered model."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from pathlines.cli.common import Force, check_outputs, console, parse_changes, ready


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="run")(run)


def run(
    model: Annotated[
        str, typer.Argument(help="A model of `pathlines list models`, e.g. sa, usa, pre-ln, rescaled.")
    ] = "sa",
    n: Annotated[int, typer.Option("--n", help="Number of tokens.")] = 64,
    d: Annotated[int, typer.Option("--d", help="Ambient dimension.")] = 3,
    until: Annotated[float, typer.Option("--until", help="Last depth-time.")] = 15.0,
    start: Annotated[
        str, typer.Option("--start", help="uniform, sines (deterministic), simplex[:overlap] or cube[:half-width].")
    ] = "uniform",
    record: Annotated[
        str,
        typer.Option("--record", help="Observables, comma separated (`pathlines list observables`); a few by default."),
    ] = "",
    runs: Annotated[int, typer.Option("--runs", min=1, help="Independent starts; more than one is an ensemble.")] = 1,
    depth: Annotated[
        int | None, typer.Option("--layers", min=1, help="A stack of that many layers, not a flow.")
    ] = None,
    step: Annotated[float | None, typer.Option("--step", help="Step of the layers or of a fixed-step method.")] = None,
    method: Annotated[
        str, typer.Option("--method", help="rk45, dop853 (adaptive); rk4, heun, euler, … (with --step).")
    ] = "rk45",
    rtol: Annotated[float, typer.Option("--rtol", help="Relative tolerance of adaptive methods.")] = 1e-8,
    form: Annotated[str, typer.Option("--form", help="auto, tokens, span, gram-deficit or circle-fourier.")] = "auto",
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random start.")] = 0,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the model, e.g. beta=9.")
    ] = None,
    dtype: Annotated[str, typer.Option("--dtype", help="float64 or float32.")] = "float64",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Also write the run to this netCDF file.")
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw it (pdf, svg or png).")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Compute again even if stored.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print final values and certificates as JSON.")] = False,
    force: Force = False,
) -> None:
    """Simulate a model and record observables.

    The result is stored under its setting: the same command returns at once, and a run that was interrupted (Ctrl-C or
    killed) continues where it was. A run that cannot be completed (diverged, stalled, beyond what its arithmetic can
    show) keeps what it has, says when and why, and exits with 1. `pathlines show FILE.nc` opens a saved run again.

    Examples: `pathlines run sa --n 200 --d 3 --set beta=9 --until 30 --plot run.pdf`,
    `pathlines run pre-ln --n 32 --d 64 --layers 48 --step 0.1 --record mean_overlap`,
    `pathlines run rescaled --n 20 --d 2 --start cube:5 --until 12 --record tokens --plot polytope.pdf`.
    """
    ready()
    from pathlines.cli.execute import Request, check_size, execute

    check_outputs(out, figures=(plot,))
    names = tuple(x.strip() for x in record.split(",") if x.strip())
    request = Request(
        model, parse_changes(set_), n, d, until, start, names, runs, depth, step, method, rtol, form, seed, dtype
    )
    check_size(request, force)

    def show(result: Any, how: str) -> None:
        if as_json:
            _print_json(result, how)
        else:
            _print_text(result, how)
        shown.append(result)

    shown: list[Any] = []
    try:
        result, _ = execute(request, fresh=fresh, show=show)
    finally:  # a store that is full keeps nobody from writing elsewhere, nor the other way round
        for result in shown:
            _write(result, out, plot, quiet=as_json)
    if result.outcome != "completed":
        raise typer.Exit(1)


def parameters(build: Any) -> dict[str, Any]:
    """The parameters of a model's builder with their defaults."""
    return {k: p.default for k, p in inspect.signature(build).parameters.items()}


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


def _write(result: Any, out: Path | None, plot: Path | None, quiet: bool) -> None:
    if out is not None:
        from pathlines.store import save_run

        out = save_run(result, out)
    if plot is not None:
        from pathlines.draw import plot as draw
        from pathlines.draw import save_figure

        save_figure(draw(result), plot)
    for label, path in (("run", out), ("figure", plot)):
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
