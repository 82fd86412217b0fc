"""pathlines tradeoff: when random attention collapses its tokens, and what moves that."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from pathlines.cli.common import AsJson, Force, Heads, LogitScale, Step, Tokens, console, ready

MOST_TOKENS = 1e8
"""Tokens up to which the laws of attention weights are resolved, at every logit scale of the table."""
B_COLUMNS = (0.0, 1.0, 2.0, 4.0, 8.0, math.inf)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="tradeoff")(tradeoff)


def tradeoff(
    n: Tokens = 128,
    logit_scale: LogitScale = 1.0,
    qk_dim: Annotated[float, typer.Option("--qk-dim", help="Head width p (inf allowed).")] = math.inf,
    d: Annotated[
        float, typer.Option("--d", help="Dimension d of the tokens (width); inf: no finite-width slow-down.")
    ] = math.inf,
    step: Step = 0.3,
    heads: Heads = 1,
    level: Annotated[float, typer.Option("--level", help="Collapsed when the mean overlap reaches this.")] = 0.5,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Predict the diffusive time and the depth at which random attention makes tokens alike, and what changes it.

    From orthogonal tokens, by the simplex reduction of Homogenized Transformers (arXiv:2604.01978): the time τ of the
    limit, the depth of the layer map with v = η²/H, the elasticities ∂log(depth)/∂log(parameter), and a table over
    context length and logit scale. `pathlines figure homogenized/collapse-map` draws the map.

    Examples: `pathlines tradeoff --n 1024 --logit-scale 4`, `pathlines tradeoff --qk-dim 64 --d 768 --json`.
    """
    ready()
    from pathlines.foundation.bounds import within
    from pathlines.foundation.errors import finite_number, positive_integer
    from pathlines.limit.homogenized.collapse import collapse_depth, collapse_map, sensitivities

    v = finite_number("step", step, 0.0, open_low=True) ** 2 / positive_integer("heads", heads)
    within(f"A table up to 8n for n = {n}", 8.0 * n, MOST_TOKENS, "tokens", force=force)
    screen = console()
    sizes = sorted({max(4, n // 8), n, 8 * n})
    with screen.status("integrating the laws of attention weights"):
        found = sensitivities(n, logit_scale, p=qk_dim, d=d, level=level)
        depth = collapse_depth(n, logit_scale, v, p=qk_dim, d=d, level=level)
        table = collapse_map(sizes, B_COLUMNS, level=level, p=qk_dim, d=d)
    if as_json:
        _print_json(found, depth, v, sizes, table)
        return
    name = f"γ = {level:g}"
    screen.print(
        f"{name} at diffusive time τ = {found.time:.6g}, after {depth or 'more than 100000'} layers (v = {v:.4g})"
    )
    screen.print("what moves the depth (multiply by x, depth changes by x^exponent):")
    for effect in found.effects():
        screen.print(f"  {effect.name:<18}{effect.exponent:+.3f}", highlight=False)
    _print_table(screen, sizes, table, name)


def _print_table(screen: Any, sizes: list[int], table: Any, name: str) -> None:
    from rich.table import Table

    view = Table(box=None, padding=(0, 2), title=f"τ of {name} over context n and logit scale b", title_justify="left")
    view.add_column("n", justify="right")
    for b in B_COLUMNS:
        view.add_column("b = ∞" if math.isinf(b) else f"b = {b:g}", justify="right")
    for size, row in zip(sizes, table, strict=True):
        view.add_row(str(size), *(f"{x:.4g}" for x in row))
    screen.print(view)


def _print_json(found: Any, depth: int | None, v: float, sizes: list[int], table: Any) -> None:
    import msgspec

    columns = [str(b) for b in B_COLUMNS]
    document = {
        "time": found.time,
        "layers": depth,
        "layer_time": v,
        "elasticities": {k: getattr(found, k) for k in ("n", "b", "p", "d")} | {"step": -2.0, "heads": 1.0},
        "table": {str(size): dict(zip(columns, map(float, row), strict=True)) for size, row in zip(sizes, table)},
    }
    typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())
