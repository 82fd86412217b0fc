"""pathlines verify: run claims, show verdicts as they fall, write a report."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from pathlines.cli.common import (
    AsJson,
    Force,
    Fresh,
    Full,
    Report,
    check_outputs,
    console,
    loaded_files,
    parse_changes,
    ready,
)
from pathlines.cli.complete import claims
from pathlines.cli.verdicts import Live, print_json, print_summary, tabulate
from pathlines.foundation.errors import ArgumentError, StoreError

FIRST_SEED = 1001
"""Of the seeds that --seeds takes: far from any default, and chosen by nobody."""

Patterns = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PATTERN]…",
        help="Claims: a family (`clustering`), an id, or a glob. All by default.",
        autocompletion=claims,
    ),
]
Changes = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a setting of the claims, e.g. beta=3.")
]
Jobs = Annotated[int | None, typer.Option("--jobs", min=1, help="Worker processes (default: one per core).")]
On = Annotated[
    str, typer.Option("--on", help="processes, dask, tcp://… (a scheduler) or cluster.toml.", show_default=False)
]
Power = Annotated[bool, typer.Option("--power", help="Also measure the smallest error that each number would notice.")]
FromSeed = Annotated[
    int | None, typer.Option("--seed", help="Seed of everything that is drawn (default: the claim's own).")
]
Seeds = Annotated[
    int, typer.Option("--seeds", min=0, metavar="N", help="Run the seeded claims with N seeds from --seed or 1001 on.")
]
Costs = Annotated[bool, typer.Option("--costs", help="Measure what each claim costs, and keep it beside the claims.")]
Table = Annotated[
    Path | None, typer.Option("--table", metavar="FILE", help="Write the table of --power or --seeds as Markdown.")
]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="verify")(verify)


def verify(
    patterns: Patterns = None,
    full: Full = False,
    as_json: AsJson = False,
    report: Report = None,
    set_: Changes = None,
    fresh: Fresh = False,
    jobs: Jobs = None,
    on: On = "processes",
    power: Power = False,
    seed: FromSeed = None,
    seeds: Seeds = 0,
    costs: Costs = False,
    table: Table = None,
    force: Force = False,
) -> None:
    """Run executable claims and compare each verdict with the one we stand behind.

    A claim simulates, predicts by an independent computation, and compares. Verdicts are *holds*, *refuted* (as an
    erratum of the literature is expected to be) or *inconclusive*. Finished claims are stored: run the command again
    after an interruption and it goes on where it stopped.

    Exit code 0 when every verdict is the expected one, 1 otherwise, 2 for bad input (a claim cannot run at a setting).

    With `--power`, each number says which relative error of its prediction would be refuted; at quick size mistakes are
    also put into the computation of bounds and zeros until one is noticed (up to twenty runs of a claim). With
    `--seeds 20`, claims in which chance has a part are judged at twenty seeds that nobody chose. With `--costs`, each
    claim runs in a process of its own, and its seconds and memory, by which later verifications start the longest
    claims first, are kept in the package.

    Examples: `pathlines verify`, `pathlines verify clustering/CL-43 --set beta=3 --json`,
    `pathlines verify "clustering/CL-1*" --full --report report.html`, `pathlines verify gaussian --power`,
    `pathlines verify --seeds 20 --table seeds.md`.
    """
    ready()
    check_outputs(report, table)
    _check_options(table, power, seeds, costs, set_)
    _check_on(on, costs)
    size, began, changes = "full" if full else "quick", time.monotonic(), parse_changes(set_)
    _check_sizes(patterns or ["*"], size, changes, force)
    queue = _queue(patterns or ["*"], size, changes, seed, seeds, power)
    finished = _run(queue, fresh, jobs, quiet=as_json, costs=costs, on=on)
    outcomes = [f.outcome for f in finished if f.outcome is not None]
    failures = [f for f in finished if f.outcome is None]
    if as_json:
        print_json(outcomes, failures)
    else:
        print_summary(outcomes, failures, time.monotonic() - began, size)
    if power or seeds:
        words = [*(patterns or []), *(["--full"] if full else []), "--power" if power else f"--seeds {seeds}"]
        tabulate(outcomes, size, power, table, " ".join(["pathlines verify", *words]), quiet=as_json)
    if report is not None:
        from pathlines.draw.report import write_report

        write_report(report, outcomes, failures=[(f.job.id, f.failure) for f in failures], size=size)
        console(stderr=as_json).print(f"Report: {report.resolve()}", soft_wrap=True)
    _leave(finished)


def _check_options(table: Path | None, power: bool, seeds: int, costs: bool, changes: list[str] | None) -> None:
    """Refuse options that contradict each other."""
    if table is not None and not (power or seeds):
        raise ArgumentError("Option --table writes the table of --power or --seeds: give one of them.")
    if power and seeds:
        raise ArgumentError("Options --power and --seeds answer different questions: give one of them.")
    if costs and (power or seeds or changes):
        raise ArgumentError("Option --costs measures claims as they are: give it without --power, --seeds and --set.")


def _check_on(on: str, costs: bool) -> None:
    """Refuse what names no engine, and costs of machines that are not this one."""
    from pathlines.sweep.cluster import is_cluster

    if on != "processes" and not is_cluster(on):
        raise ArgumentError(f"Option --on takes processes, dask, tcp://… or a file cluster.toml, but got {on!r}.")
    if costs and on != "processes":
        raise ArgumentError("Option --costs measures on this machine: give it without --on.")


def _check_sizes(patterns: list[str], size: str, changes: dict[str, Any], force: bool) -> None:
    """Refuse changed settings that would take days, by what claims were measured to cost."""
    from pathlines.claim import CLAIMS
    from pathlines.foundation.bounds import enlarged

    for name in {n for p in patterns for n in CLAIMS.match(p)} if changes else ():
        claim, cost = CLAIMS[name], CLAIMS[name].cost(size)
        usual, wanted = claim.setting(size), claim.setting(size, changes)
        enlarged(f"Claim `{name}`", 1.0 if cost is None else cost.seconds, usual, wanted, force=force)


def _queue(
    patterns: list[str], size: str, changes: dict[str, Any], seed: int | None, seeds: int, power: bool
) -> list[Any]:
    """Claims that match, each at its own seed, at the one that was asked for, or at several."""
    from pathlines.claim import CLAIMS
    from pathlines.sweep.verify import Job

    names = sorted({n for p in patterns for n in CLAIMS.match(p)})
    if seeds:
        names = [n for n in names if CLAIMS[n].seeded]
    if not names or (seed is not None and not any(CLAIMS[n].seeded for n in names)):
        raise ArgumentError("None of these claims has a seed, so no other seed can be tried.")
    first = FIRST_SEED if seed is None else seed
    others: list[dict[str, Any]] = [{"seed": first + k} for k in range(seeds)] or [
        {} if seed is None else {"seed": seed}
    ]
    mistakes = power and size == "quick"
    return [
        Job(n, size, {**changes, **(other if CLAIMS[n].seeded else {})}, loaded_files(), mistakes)
        for n in names
        for other in others
    ]


def _run(queue: list[Any], fresh: bool, jobs: int | None, *, quiet: bool, costs: bool, on: str) -> list[Any]:
    """What became of each job, in the order of their names; measured costs are kept beside the claims."""
    from pathlines.claim import CLAIMS
    from pathlines.claim.cost import keep_cost
    from pathlines.store import Store
    from pathlines.sweep.verify import verify_jobs as sweep

    finished = []
    how: dict[str, Any] = {"fresh": fresh, "workers": jobs, "costs": costs, "on": on}
    with Live(len(queue), quiet=quiet) as live:
        for item in sweep(queue, store=Store(), started=live.begin, **how):
            finished.append(item)
            live.end(item)
            if item.cost is not None:
                keep_cost(item.job.id, CLAIMS[item.job.id].homes[0], item.job.size, item.cost)
    return sorted(finished, key=lambda f: (f.job.id, f.job.changes.get("seed", 0)))


def _leave(finished: list[Any]) -> None:
    """The exit code: 74 for what could not be stored, 2 for a setting that was refused, 1 for another verdict."""
    if unstored := next((f.unstored for f in finished if f.unstored), ""):
        raise StoreError(unstored)
    if any(f.refused for f in finished):
        sys.exit(2)
    if any(f.outcome is None or not f.outcome.as_expected for f in finished):
        sys.exit(1)
