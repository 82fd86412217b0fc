"""pathlines patterns: which pattern forms first out of uniform tokens, when, and how surely."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pathlines.cli.common import AsJson, Beta, Dimension, Force, console, ready

MOST_DEGREES = 1e5
"""Harmonics about k* ≈ √(2β) up to which rates are tabulated: some seconds."""
HUGE, TINY = "> 1e304", "< 1e-304"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="patterns")(patterns)


def patterns(
    beta: Beta = 9.0,
    d: Dimension = 2,
    n: Annotated[float, typer.Option("--n", help="Tokens n (context length); 1e12 is fine.")] = 1e4,
    level: Annotated[
        float, typer.Option("--level", help="A degree has formed when its amplitude (|mₖ| on the circle) reaches this.")
    ] = 0.1,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Predict the first pattern of a deep stack: growth rates, dominant degree, formation time, cluster counts.

    From uniform tokens every harmonic of degree k grows like exp(λₖ t) on its own; the fastest is k*, about √(2β) on
    the circle, and one (straight to a single cluster) below β ≈ 2d/3. Depth-time t counts layers times their step.
    Softmax attention has one clock; unnormalised attention has two: that of the kernel e^{β(⟨x,y⟩−1)} (scaled) and
    that of e^{β⟨x,y⟩} as printed in the paper, e^β times faster. The probability of each degree is that of reaching the
    level first (linear theory: later competition only favours k*); it needs so many tokens that no degree is above the
    level from the start. Rates are derived for Emergence of meta-stable clustering in mean-field transformer models
    (arXiv:2410.23228).

    Examples: `pathlines patterns --beta 9 --d 2 --n 1e4`, `pathlines patterns --beta 8 --d 64 --json`.
    """
    ready()
    from pathlines.foundation.bounds import within
    from pathlines.limit.metastability.forecast import forecast

    degrees = (2 * max(beta, 0.0)) ** 0.5
    within(f"A table of the patterns at β = {beta:g}", degrees, MOST_DEGREES, "degrees", force=force)
    found = forecast(beta, d, n, level)
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(found)).decode())
        return
    screen = console()
    screen.print(f"β = {beta:g}, d = {d}, n = {n:g}")
    screen.print(_rates(found))
    for line in _sentences(found):
        screen.print(line, soft_wrap=True)


def _rates(found: Any) -> Any:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2))
    columns = ["degree k", "λ SA", "λ USA, scaled", "λ USA, printed"]
    for column in columns + (["P(k first)"] if found.probabilities is not None else []):
        table.add_column(column, justify="right")
    for i, k in enumerate(found.degrees):
        mark = " *" if k == found.dominant_degree else "  "
        cells = [f"{k}{mark}", _number(found.rates_sa[i]), _number(found.rates_usa_scaled[i], TINY)]
        cells.append(_number(found.rates_usa_printed[i], HUGE))
        if found.probabilities is not None:
            cells.append(f"{found.probabilities[i]:.3f}")
        table.add_row(*cells)
    return table


def _number(value: float | None, beyond: str = "") -> str:
    return beyond if value is None else f"{value:.6g}"


def _sentences(found: Any) -> list[str]:
    k, times = found.dominant_degree, found.formation_times
    what = "one cluster, no phase with several" if k == 1 else f"a pattern of degree {k}"
    if found.d == 2 and k > 1:
        what = f"{k} clusters, {2 * 3.141592653589793 / k:.3g} apart"
    lines = [
        f"fastest: k* = {k}, {what}",
        f"forms (|m| = {found.level:g}) at t = {_number(times['sa'])} (SA), "
        f"{_number(times['usa_scaled'], HUGE)} (USA, scaled), {_number(times['usa_printed'], TINY)} (USA, printed)",
    ]
    if found.mean_time is not None:
        lines.append(f"mean over starts, any mode first: t = {_number(found.mean_time)} (SA)")
    if found.expected_maxima is not None:
        lines.append(f"maxima of the potential: {found.expected_maxima:.3g} on average at t = 0")
    if found.probabilities is None:
        lines.append(
            f"probabilities: too few tokens, of whose noise some degree is above {found.level:g} from the start"
        )
    low = "" if found.threshold_below is None else f"below β = {found.threshold_below:.6g} it is {k - 1}, "
    lines.append(f"{low}above β = {found.threshold_above:.6g} it is {k + 1}")
    return lines
