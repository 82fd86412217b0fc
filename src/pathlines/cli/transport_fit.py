"""pathlines transport fit: a normalizing flow with explicit weights from a table of samples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pathlines.cli.common import AsJson, Seed, check_outputs, console, ready, waiting

MOST_COMPARED = 2000
"""Points of both clouds whose W₂ is measured, exactly."""
FEW_DIMENSIONS = 3
"""Dimensions up to which bins are affordable: triangular flows, beyond them ridge flows."""


def register(app: typer.Typer) -> None:
    """Add the verb to the group."""
    group: Any = next(g.typer_instance for g in app.registered_groups if g.name == "transport")
    group.command(name="fit")(fit)


def fit(
    samples: Annotated[Path, typer.Argument(help="Rows of numbers: .csv, .npy or .parquet.")],
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE", help="Move the samples to these, instead of N(0, I) to them.")
    ] = None,
    pieces: Annotated[int | None, typer.Option("--pieces", help="Largest number of pieces (of each flow).")] = None,
    error: Annotated[
        float | None, typer.Option("--error", help="Largest KL(samples‖flow); nothing is written if it is missed.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The schedule, JSON.")] = Path("flow.json"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Build a flow of ReLU pieces from N(0, I) to the law of the samples, without training (arXiv:2412.19366).

    One column: an increasing map; two or three: a triangular flow, which samples conditionally on the first columns;
    more: a ridge flow. Sizes are chosen by held-out likelihood; with --error, the fewest pieces are taken whose KL,
    estimated from held-out samples, is below it by two standard errors. W₂ is that of at most 2000 draws and samples,
    and some of it is noise.

    Examples: `pathlines transport fit samples.csv --out flow.json`,
    `pathlines transport fit before.npy --to after.npy --pieces 500`.
    """
    ready()
    import numpy as np

    from pathlines.foundation.errors import ArgumentError, positive_integer
    from pathlines.observable.distances import cloud_distance

    check_outputs(out)
    positive_integer("--seed", seed, 0)
    data, goal = read_table(samples), None if to is None else read_table(to)
    if goal is not None and goal.shape[1] != data.shape[1]:
        raise ArgumentError(f"Both files must have as many columns, but have {data.shape[1]} and {goal.shape[1]}.")
    with waiting("fitting"):
        first = _flow(data, pieces, error, seed)
        flow, reference = first.schedule_, data
        rng = np.random.default_rng(seed)
        start = rng.standard_normal((min(MOST_COMPARED, len(data)), data.shape[1]))
        if goal is not None:
            flow, reference = flow.inverse().compose(_flow(goal, pieces, error, seed).schedule_), goal
            start = data[rng.permutation(len(data))[:MOST_COMPARED]]
        ends = reference[rng.permutation(len(reference))[:MOST_COMPARED]]
        distance = cloud_distance(flow.forward(start)[0], ends).value
    flow.save(out)
    said: dict[str, Any] = {"pieces": flow.count, "W2": distance, "out": str(out)}
    if to is None:
        said |= {name: getattr(first.report_, name) for name in ("held_out", "kl", "kl_error")}
    _answer(said, as_json)


def _answer(said: dict[str, Any], as_json: bool) -> None:
    import msgspec

    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(said)).decode())
        return
    held = f", held-out log-density {said['held_out']:.4g}" if said.get("held_out") is not None else ""
    kl = f", KL {said['kl']:.3g} ± {said['kl_error']:.2g} (estimated)" if said.get("kl") is not None else ""
    console().print(f"{said['pieces']} pieces, W₂ of draws to the samples {said['W2']:.3g}{held}{kl}", soft_wrap=True)
    console().print(f"schedule: {Path(said['out']).resolve()}", soft_wrap=True)


def _flow(data: Any, pieces: int | None, error: float | None, seed: int) -> Any:
    from pathlines.transport.euclid.ridge import RidgeFlow
    from pathlines.transport.euclid.transport1d import Transport1D
    from pathlines.transport.euclid.triangular import TriangularFlow

    d = data.shape[1]
    if d == 1:
        return Transport1D(pieces, error).fit(data)
    if d <= FEW_DIMENSIONS:
        return TriangularFlow(pieces=pieces, error=error).fit(data)
    return RidgeFlow(pieces=pieces, error=error, seed=seed).fit(data)


def read_table(path: Path) -> Any:
    """The rows of a file of numbers; a header is allowed in a CSV file."""
    import numpy as np

    from pathlines.foundation.errors import ArgumentError

    if not path.is_file():
        raise ArgumentError(f"There is no file {path}.")
    try:
        if path.suffix == ".npy":
            table = np.load(path)
        elif path.suffix in (".csv", ".parquet"):
            table = _frame(path)
        else:
            raise ArgumentError(f"A table must end in .csv, .npy or .parquet, but is {path}.")
        table = np.asarray(table, float)
    except ArgumentError:
        raise
    except Exception as error:  # readers of files fail in many ways
        raise ArgumentError(f"The file {path} cannot be read as numbers ({str(error).splitlines()[0]}).") from None
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or table.size == 0:
        raise ArgumentError(f"The file {path} must hold rows and columns, but has shape {table.shape}.")
    bad = ~np.isfinite(table).all(axis=1)
    if bad.any():
        raise ArgumentError(f"The file {path} must hold finite numbers, but row {int(bad.argmax())} is not finite.")
    return table


def _frame(path: Path) -> Any:
    import pandas as pd

    if path.suffix == ".parquet":
        return pd.read_parquet(path).to_numpy()
    frame = pd.read_csv(path, header=None, skip_blank_lines=True)
    first = pd.to_numeric(frame.iloc[0], errors="coerce")
    named = bool(first.isna().all())
    return frame.iloc[1 if named else 0 :].to_numpy()
