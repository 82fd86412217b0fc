"""pathlines transport: measures moved by explicit networks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pathlines.cli.common import AsJson, Seed, check_outputs, console, ready

Prompts = Annotated[Path, typer.Argument(help="A folder of prompts, one .npy or .csv file each, by name.")]
TABLES = (".npy", ".csv")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    group = typer.Typer(help="Measures moved by networks with explicit weights.", no_args_is_help=True)
    group.command(name="interpolate")(interpolate)
    group.command(name="check")(check)
    app.add_typer(group, name="transport")


def interpolate(
    inputs: Prompts,
    targets: Prompts,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the schedule is written, JSON.")] = Path(
        "schedule.json"
    ),
    method: Annotated[str, typer.Option("--method", help="auto, paper or trained (a baseline).")] = "auto",
    error: Annotated[float, typer.Option("--error", help="Largest W₂ where atoms must come together.")] = 1e-6,
    pieces: Annotated[int | None, typer.Option("--pieces", help="Refuse a schedule with more pieces.")] = None,
    grouping: Annotated[str, typer.Option("--grouping", help="exact, or nearest (groups that do not fit).")] = "exact",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Send N prompts to N targets with one transformer, on the sphere (arXiv:2411.04551).

    Rows of a file are tokens of length one; files of both folders are paired in the order of their names. Nothing is
    written when there is no schedule.

    Example: `pathlines transport interpolate prompts/ answers/ --out schedule.json`.
    """
    ready()
    from pathlines.transport.sphere.interpolate import MeasureInterpolator

    check_outputs(out)
    sources, goals = read_clouds("INPUTS", inputs), read_clouds("TARGETS", targets)
    solver = MeasureInterpolator(method, error=error, pieces=pieces, grouping=grouping, seed=seed)
    solver.fit(sources, goals)
    solver.schedule_.save(out)
    if as_json:
        _print_json({**solver.report_, "timeline": [stage._asdict() for stage in solver.timeline_]})
        return
    for stage in solver.timeline_:
        console().print(
            f"{stage.pieces:5d} pieces  W2 {stage.w2:9.3g}  separation {stage.separation:9.3g}  {stage.name}",
            soft_wrap=True,
        )
    report = solver.report_
    console().print(f"{report['algorithm']}: {report['pieces']} pieces, round trip {report['round_trip']:.2g}")
    console().print(f"schedule: {out.resolve()}", soft_wrap=True)


def check(
    schedule: Annotated[Path, typer.Argument(help="A schedule: JSON with kind, d and pieces.")],
    inputs: Annotated[Path | None, typer.Option("--inputs", metavar="PATH", help="A folder or file of tokens.")] = None,
    targets: Annotated[Path | None, typer.Option("--targets", metavar="PATH", help="Where they should end.")] = None,
    rtol: Annotated[float, typer.Option("--rtol", help="Relative tolerance of the integrator.")] = 1e-11,
    within: Annotated[float | None, typer.Option("--within", help="Exit with 1 if some W₂ is larger.")] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Integrate a schedule by code that no construction shares, and say where measures end.

    Schedules may have been trained elsewhere. Without --inputs, 100 random points look at the round trip only.

    Example: `pathlines transport check schedule.json --inputs prompts/ --targets answers/ --within 1e-9`.
    """
    ready()
    from pathlines.foundation.errors import ArgumentError, finite_number
    from pathlines.transport.verifier import random_points, verify_schedule

    if targets is not None and inputs is None:
        raise ArgumentError("Option --targets needs --inputs.")
    if within is not None:
        finite_number("--within", within, 0.0)
        if targets is None:
            raise ArgumentError("Option --within needs --targets.")
    sources = random_points(schedule, seed) if inputs is None else read_clouds("--inputs", inputs)
    goals = None if targets is None else read_clouds("--targets", targets)
    found = verify_schedule(schedule, sources, goals, rtol=rtol)
    if as_json:
        _print_json(found.as_dict())
    else:
        for name, value in found.as_dict().items():
            if value is not None:
                shown = ", ".join(f"{v:.4g}" for v in value) if isinstance(value, list) else value
                console().print(f"{name.replace('_', ' '):12s} {shown}", soft_wrap=True)
    if within is not None and max(found.w2 or [0.0]) > within:
        raise typer.Exit(1)


def read_clouds(option: str, path: Path) -> list[Any]:
    """The arrays of a folder of files in the order of their names, or of one file."""
    from pathlines.foundation.errors import ArgumentError

    if not path.exists():
        raise ArgumentError(f"{option}: there is no file or folder {path}.")
    files = sorted(f for f in path.iterdir() if f.suffix in TABLES) if path.is_dir() else [path]
    if not files:
        raise ArgumentError(f"{option}: the folder {path} has no .npy or .csv files.")
    return [_table(option, file) for file in files]


def _table(option: str, file: Path) -> Any:
    import numpy as np

    from pathlines.foundation.errors import ArgumentError

    if file.suffix not in TABLES:
        raise ArgumentError(f"{option}: files must end in .npy or .csv, but {file} does not.")
    try:
        table = np.load(file) if file.suffix == ".npy" else np.loadtxt(file, delimiter=",", ndmin=2)
    except (ValueError, OSError, EOFError) as error:
        raise ArgumentError(f"{option}: {file} cannot be read as a table of numbers ({error}).") from None
    rows = np.atleast_2d(table)
    if rows.dtype.kind not in "iuf":
        raise ArgumentError(f"{option}: {file} must hold numbers, but holds {rows.dtype}.")
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=-1))
    if len(bad):
        raise ArgumentError(f"{option}: {file} must hold finite numbers, but row {bad[0]} does not.")
    return rows


def _print_json(document: Any) -> None:
    import msgspec

    typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())
