"""pathlines transport sample: draws of a schedule, also conditionally on its first coordinates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pathlines.cli.common import Seed, check_outputs, console, ready
from pathlines.cli.transport_fit import read_table

MOST_DRAWS = 10_000_000


def register(app: typer.Typer) -> None:
    """Add the verb to the group."""
    group: Any = next(g.typer_instance for g in app.registered_groups if g.name == "transport")
    group.command(name="sample")(sample)


def sample(
    flow: Annotated[Path, typer.Argument(help="A schedule of ReLU pieces, JSON.")],
    n: Annotated[int, typer.Option("-n", help="How many draws.")] = 1000,
    given: Annotated[
        str | None, typer.Option("--given", metavar="X,…", help="Values of the first coordinates to condition on.")
    ] = None,
    points: Annotated[
        Path | None, typer.Option("--points", metavar="FILE", help="Move these points instead of N(0, I).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="A .csv or .npy file; printed without.")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Draw from a flow: N(0, I), or the points of a file, moved by its pieces.

    With --given the first coordinates are held exactly, and only the pieces that move the others are applied: the flow
    must be triangular, as `transport fit` makes it for two and three columns.

    Examples: `pathlines transport sample flow.json -n 1000 --out draws.csv`,
    `pathlines transport sample flow.json --given 0.3`.
    """
    ready()
    import numpy as np

    from pathlines.foundation.errors import ArgumentError, positive_integer
    from pathlines.transport.euclid.schedule import EuclideanSchedule
    from pathlines.transport.schedule import read_schedule

    check_outputs(out)
    if out is not None and out.suffix not in (".csv", ".npy"):
        raise ArgumentError(f"Option --out must end in .csv or .npy, but is {out}.")
    if positive_integer("-n", n) > MOST_DRAWS:
        raise ArgumentError(f"Option -n must be at most {MOST_DRAWS}, but is {n}.")
    schedule = read_schedule(flow)
    if not isinstance(schedule, EuclideanSchedule):
        raise ArgumentError(f"The schedule {flow} must be of kind relu-euclid, but is {schedule.kind}.")
    rng = np.random.default_rng(positive_integer("--seed", seed, 0))
    start = rng.standard_normal((n, schedule.d)) if points is None else read_table(points)
    if start.shape[1] != schedule.d:
        raise ArgumentError(f"The points must have {schedule.d} columns, but have {start.shape[1]}.")
    if given is not None:
        first = _numbers(given, schedule.d)
        schedule = schedule.conditional(len(first))
        start[:, : len(first)] = first
    _write(schedule.forward(start)[0], out)


def _numbers(given: str, d: int) -> list[float]:
    from pathlines.foundation.errors import ArgumentError, finite_number

    try:
        first = [finite_number("--given", float(word)) for word in given.split(",")]
    except ValueError:
        raise ArgumentError(f"Option --given takes numbers with commas, but got {given!r}.") from None
    if len(first) >= d:
        raise ArgumentError(f"Option --given takes at most the first {d - 1} of {d} coordinates, but got {len(first)}.")
    return first


def _write(rows: Any, out: Path | None) -> None:
    import io

    import numpy as np

    from pathlines.foundation.files import write_whole

    if out is not None and out.suffix == ".npy":
        content = io.BytesIO()
        np.save(content, rows)
        write_whole(out, content.getvalue())
    else:
        text = "\n".join(",".join(map(repr, row)) for row in rows.tolist()) + "\n"
        if out is None:
            typer.echo(text, nl=False)
            return
        write_whole(out, text.encode())
    console().print(f"{len(rows)} rows: {out.resolve()}" if out else "", soft_wrap=True)
