"""pathlines staircase: which clusters merge, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathlines.cli.common import AsJson, Beta, Dimension, Figure, Force, Seed, check_outputs, console, ready

if TYPE_CHECKING:
    from pathlines.integrate.staircase import Staircase

MERGER_WORK = 1000.0
"""Operations for each pair of clusters until the next merger, at least."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="staircase")(staircase)


def staircase(
    angles: Annotated[
        str | None, typer.Option("--angles", metavar="A,B,…", help="Clusters on the circle, in radians.")
    ] = None,
    n: Annotated[int | None, typer.Option("--n", help="Draw n clusters uniformly instead of --angles.")] = None,
    d: Dimension = 2,
    seed: Seed = 0,
    beta: Beta = 20.0,
    masses: Annotated[
        str | None,
        typer.Option("--masses", metavar="A,B,…", help="Masses in any unit; default equal."),
    ] = None,
    kind: Annotated[str, typer.Option("--kind", help="usa (unnormalised, scaled kernel) or sa (softmax).")] = "usa",
    merge: Annotated[
        str, typer.Option("--merge", help="Angle at which clusters are merged, or `kernel` for 1/√(β ln β).")
    ] = "0.01",
    as_json: AsJson = False,
    figure: Figure = None,
    force: Force = False,
) -> None:
    """Follow tight clusters through their mergers until one is left: times, masses, places, plateaus of the energy.

    The slow phase of Dynamic metastability in the self-attention model (arXiv:2410.06833). Times grow like
    e^{β(1−cos gap)} and are given as logarithms; the level after a merger is Σ m², the energy at which the next plateau
    rests; the rescaled time counts jumps in units of order one. USA times belong to the kernel e^{β(⟨x,y⟩−1)}. β = 1000
    is no harder than 10.

    Examples: `pathlines staircase --angles 0,.5,1.1,2.4 --beta 20`,
    `pathlines staircase --n 12 --beta 400 --kind sa --figure steps.pdf`.
    """
    ready()
    from pathlines.foundation.bounds import affordable
    from pathlines.foundation.errors import ArgumentError, positive_integer
    from pathlines.integrate.cluster_flow import cluster_flow

    if (angles is None) == (n is None):
        raise ArgumentError("Give either --angles (clusters on the circle) or --n (how many to draw).")
    check_outputs(figures=(figure,))
    positive_integer("d", d, 2)
    positive_integer("seed", seed, 0)
    if n is not None:
        count = float(max(n, 0))
        memory, work = 8 * count * (count + max(d, 0)), MERGER_WORK * count**3
        affordable(f"Mergers of {n} clusters in dimension {d}", memory=memory, operations=work, force=force)
    places = _numbers("--angles", angles) if angles is not None else _drawn(n, d, seed)
    weights = None if masses is None else _shares(_numbers("--masses", masses))
    width = merge if merge == "kernel" else _numbers("--merge", merge)[0]
    found = cluster_flow(places, beta, masses=weights, kind=kind, delta=width)
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(found.as_dict())).decode())
    else:
        _print_table(found)
    if figure is not None:
        from pathlines.draw.staircase_figure import staircase_figure
        from pathlines.draw.style import save_figure

        save_figure(staircase_figure(found), figure)
        console(stderr=as_json).print(f"figure: {figure.resolve()}", soft_wrap=True)


def _numbers(option: str, text: str) -> list[float]:
    from pathlines.foundation.errors import ArgumentError

    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise ArgumentError(f"Option {option} takes numbers separated by commas, but got {text!r}.") from None


def _shares(masses: list[float]) -> list[float]:
    """Masses that sum to one; what cannot be scaled is left to be refused."""
    total = sum(masses)
    return [m / total for m in masses] if total > 0 else masses


def _drawn(count: Any, d: int, seed: int) -> Any:
    """Uniform points; angles on the circle."""
    import numpy as np

    from pathlines.foundation.errors import positive_integer

    draw, count = np.random.default_rng(seed), positive_integer("n", count)
    if d == 2:
        return np.sort(draw.uniform(0, 2 * np.pi, count))
    points = draw.standard_normal((count, d))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def _print_table(found: Staircase) -> None:
    from rich.table import Table

    title = f"{found.kind.upper()}, β = {found.beta:g}: {len(found.masses)} clusters, E = Σm² = {found.levels[0]:.6g}"
    table = Table(box=None, padding=(0, 1), title=title, title_justify="left")
    for column in ("left", "ln t", "log₁₀ t", "rescaled", "masses", "at", "Σm²"):
        table.add_column(column, justify="right", no_wrap=True)
    for merger in found.mergers:
        place = merger.position
        table.add_row(
            str(merger.clusters),
            f"{merger.log_time:.9g}",
            f"{merger.log_time / 2.302585092994046:.6g}",
            f"{merger.rescaled_time:.4g}",
            " + ".join(f"{m:.4g}" for m in merger.masses),
            f"{place[0]:.6g}" if len(place) == 1 else "(" + ", ".join(f"{x:.3f}" for x in place[:4]) + ")",
            f"{merger.level:.6g}",
        )
    console().print(table)
    if found.outcome != "one cluster":
        console().print(f"The flow ended early: {found.outcome}.")
