"""pathlines collapse: how many layers until tokens are alike."""

from __future__ import annotations

from typing import Annotated

import typer

from pathlines.cli.common import AsJson, Beta, Dimension, Force, Seed, Step, Tokens, console, ready

MAP_WORK = 1e4
"""Operations that one step of a scalar map takes the time of."""
FEWEST_LAYERS = 10.0
"""Below which no tokens are alike: what --runs does at least."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="collapse")(collapse)


def collapse(
    n: Tokens = 32,
    d: Dimension = 512,
    beta: Beta = 1.0,
    scheme: Annotated[str, typer.Option("--scheme", help="post, pre, mix, peri, ngpt, sqrt, or all.")] = "all",
    step: Step = 0.1,
    delta: Annotated[float, typer.Option("--delta", help="Collapsed when 1 − ρ < δ.")] = 1e-3,
    overlap: Annotated[
        float, typer.Option("--overlap", help="Common inner product ρ₀ of the tokens at the start.")
    ] = 0.0,
    alpha: Annotated[float, typer.Option("--alpha", help="α of nGPT.")] = 1.0,
    switch: Annotated[float, typer.Option("--switch", help="Switching time of Mix-LN.")] = 2.0,
    max_layers: Annotated[int, typer.Option("--max-layers", help="Give up beyond this depth.")] = 100_000,
    runs: Annotated[int, typer.Option("--runs", help="Runs of random tokens to compare with (0: theory only).")] = 0,
    seed: Seed = 0,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Plan depth: layers until token similarity exceeds 1 − δ, from exact equiangular maps.

    For each normalisation scheme: layers of step η (exact discrete map), the depth-time of the continuous flow, and
    with --runs the layers measured on that many random starts (mean pair deficit below δ). The theory is exact for
    n ≤ d.

    Examples: `pathlines collapse --n 64 --beta 4`, `pathlines collapse --scheme pre --step 0.05 --runs 16 --json`.
    """
    ready()
    from pathlines.foundation.bounds import affordable
    from pathlines.sweep.planner import PlannedArchitecture, plan_collapse

    affordable(f"A search over {max_layers:g} layers", operations=MAP_WORK * max_layers, force=force)
    size, work = runs * n * d, runs * n * n * d * FEWEST_LAYERS
    affordable(f"{runs} runs of {n} tokens of width {d}", memory=8.0 * size, operations=work, force=force)
    architecture = PlannedArchitecture(n, d, beta, step, overlap, alpha, switch)
    plans = plan_collapse(architecture, scheme, delta, max_layers=max_layers, confirm=runs, seed=seed)
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(plans)).decode())
        return
    from rich.table import Table

    title = f"layers until 1 − ρ < {delta:g}   (n = {n}, d = {d}, β = {beta:g}, η = {step:g}, ρ₀ = {overlap:g})"
    table = Table(box=None, padding=(0, 2), title=title, title_justify="left")
    for column in ("scheme", "layers", "layer time", "flow time") + (("measured layers",) if runs else ()):
        table.add_column(column, justify="left" if column == "scheme" else "right")
    for plan in plans:
        layers = "–" if plan.layers is None else f"{plan.layers:,}"
        cells = [plan.scheme, layers, _time(plan.layer_time), _time(plan.flow_time)]
        if runs:
            measured = plan.measured_layers
            cells.append("–" if measured is None else f"{measured:.1f} ± {plan.measured_error:.1f}")
        table.add_row(*cells)
    console().print(table)
    if any(p.layers is None for p in plans):
        console().print(f"– means not within --max-layers {max_layers:,}.")
    if d < n and overlap == 0:
        console().print(
            f"n = {n} > d = {d}: equal overlaps 0 need n ≤ d, so this is the theory of a wider model; see --runs."
        )


def _time(value: float | None) -> str:
    return "–" if value is None else f"{value:.6g}"
