"""pathlines bench: how fast we are, against peers, on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pathlines.cli.common import AsJson, Figure, check_outputs, console, ready


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="bench")(bench)


def bench(
    only: Annotated[
        str, typer.Option("--only", metavar="PATTERN", help="Cases: a name, the beginning of one, or a glob.")
    ] = "",
    quick: Annotated[bool, typer.Option("--quick", help="A few small cases, in seconds.")] = False,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write all numbers as JSON.")] = None,
    figure: Figure = None,
    page: Annotated[Path | None, typer.Option("--page", metavar="FILE", help="Write the page of docs/.")] = None,
    as_json: AsJson = False,
) -> None:
    """Time our methods and their peers, interleaved in one process, with the machine's peaks and our goals.

    Cases are softmax drifts of many sizes, series on the circle and the sphere, an adaptive solve and an ensemble.
    Peers (PyTorch, KeOps, FINUFFT, torchdiffeq, diffrax) come with `pip install 'pathlines[bench]'`; those that are
    missing are left out. A full run takes about ten minutes and wants a quiet machine.

    Examples: `pathlines bench --quick`, `pathlines bench --only "drift/n=1000*"`,
    `pathlines bench --out bench.json --figure bench.png --page docs/benchmarks.md`.
    """
    ready()
    from pathlines.sweep import bench as machinery
    from pathlines.sweep.bench.case import EXTRA

    machinery.chosen_cases(only, quick)
    check_outputs(out, page, figures=(figure,))
    missing = machinery.missing_peers()
    if missing:
        typer.echo(f"left out: {', '.join(missing)} (not installed; {EXTRA})", err=True)
    report = machinery.bench(only, quick)
    import msgspec

    numbers = msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"
    if as_json:
        typer.echo(numbers.decode(), nl=False)
    else:
        _show(report)
    _write(report, numbers, out, figure, page, quiet=as_json)


def _write(report: Any, numbers: bytes, out: Path | None, figure: Path | None, page: Path | None, quiet: bool) -> None:

    from pathlines.foundation.files import write_whole
    from pathlines.sweep.bench import page as as_page

    if out is not None:
        write_whole(out, numbers)
    if figure is not None:
        from pathlines.draw import save_figure
        from pathlines.draw.bench_figure import bench_figure

        save_figure(bench_figure(report), figure)
    if page is not None:
        inside = figure is not None and figure.resolve().is_relative_to(page.resolve().parent)
        picture = figure.resolve().relative_to(page.resolve().parent).as_posix() if inside and figure else ""
        write_whole(page, as_page(report, picture).encode())
    for path in (out, figure, page):
        if path is not None:
            typer.echo(f"written: {path.resolve()}", err=quiet)


def _show(report: Any) -> None:
    from rich.table import Table

    from pathlines.sweep.bench.goals import VERDICTS
    from pathlines.sweep.bench.page import left_out
    from pathlines.sweep.bench.quiet import warning

    screen = console()
    table = Table(box=None, padding=(0, 1))
    for column in ("case", "method (* ours)", "ms", "±", "error"):
        table.add_column(column, justify="left" if column[:6] in ("case", "method") else "right", no_wrap=True)
    for result in report.results:
        fastest = min((t.seconds for t in result.timings), default=0.0)
        for number, t in enumerate(result.timings):
            style = "bold" if t.seconds == fastest else None
            name = f"{t.method} *" if t.ours else t.method
            spread = f"{50 * (t.high - t.low) / t.seconds:.0f} %"
            cells = ("" if number else result.case, name, f"{1e3 * t.seconds:.4g}", spread, f"{t.error:.0e}")
            table.add_row(*cells, style=style)
    screen.print(table)
    if warning(report.others):
        screen.print(warning(report.others), soft_wrap=True)
    for line in left_out(report):
        screen.print(f"left out: {line}", soft_wrap=True)
    for goal in report.goals:
        if goal.measured:
            screen.print(f"{VERDICTS[goal.met]:<13} {goal.text}: {goal.measured}", soft_wrap=True)
