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
    debugging,
    loaded_files,
    parse_changes,
    ready,
)
from pathlines.cli.complete import claims
from pathlines.foundation.errors import ArgumentError, StoreError

FIRST_SEED = 1001
"""Of the seeds that --seeds takes: far from any default, and chosen by nobody."""

MARKS = {"holds": ("✓", "green"), "refuted": ("✗", "red"), "inconclusive": ("?", "yellow")}


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="verify")(verify)


def verify(
    patterns: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATTERN]…",
            help="Claims: a family (`clustering`), an id, or a glob. All by default.",
            autocompletion=claims,
        ),
    ] = None,
    full: Full = False,
    as_json: AsJson = False,
    report: Report = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a setting of the claims, e.g. beta=3."),
    ] = None,
    fresh: Fresh = False,
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="Worker processes (default: one per core).")] = None,
    power: Annotated[
        bool, typer.Option("--power", help="Also measure the smallest error that each number would notice.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Seed of everything that is drawn (default: the claim's own).")
    ] = None,
    seeds: Annotated[
        int,
        typer.Option("--seeds", min=0, metavar="N", help="Run the seeded claims with N seeds from --seed or 1001 on."),
    ] = 0,
    costs: Annotated[
        bool, typer.Option("--costs", help="Measure what each claim costs, and keep it beside the claims.")
    ] = False,
    table: Annotated[
        Path | None, typer.Option("--table", metavar="FILE", help="Write the table of --power or --seeds as Markdown.")
    ] = None,
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
    if table is not None and not (power or seeds):
        raise ArgumentError("Option --table writes the table of --power or --seeds: give one of them.")
    if power and seeds:
        raise ArgumentError("Options --power and --seeds answer different questions: give one of them.")
    if costs and (power or seeds or set_):
        raise ArgumentError("Option --costs measures claims as they are: give it without --power, --seeds and --set.")
    size, began = "full" if full else "quick", time.monotonic()
    changes = parse_changes(set_)
    _check_sizes(patterns or ["*"], size, changes, force)
    queue = _queue(patterns or ["*"], size, changes, seed, seeds, power)
    finished = _run(queue, fresh, jobs, quiet=as_json, costs=costs)
    outcomes = [f.outcome for f in finished if f.outcome is not None]
    failures = [f for f in finished if f.outcome is None]
    if as_json:
        _print_json(outcomes, failures)
    else:
        _summary(outcomes, failures, time.monotonic() - began, size)
    if power or seeds:
        words = [*(patterns or []), *(["--full"] if full else []), "--power" if power else f"--seeds {seeds}"]
        _tabulate(outcomes, size, power, table, " ".join(["pathlines verify", *words]), quiet=as_json)
    if report is not None:
        from pathlines.draw.report import write_report

        write_report(report, outcomes, failures=[(f.job.id, f.failure) for f in failures], size=size)
        console(stderr=as_json).print(f"Report: {report.resolve()}", soft_wrap=True)
    _leave(finished)


def _check_sizes(patterns: list[str], size: str, changes: dict, force: bool) -> None:
    """Refuse changed settings that would take days, by what claims were measured to cost."""
    from pathlines.claim import CLAIMS
    from pathlines.foundation.bounds import enlarged

    for name in {n for p in patterns for n in CLAIMS.match(p)} if changes else ():
        claim, cost = CLAIMS[name], CLAIMS[name].cost(size)
        usual, wanted = claim.setting(size), claim.setting(size, changes)
        enlarged(f"Claim `{name}`", 1.0 if cost is None else cost.seconds, usual, wanted, force=force)


def _queue(patterns: list[str], size: str, changes: dict, seed: int | None, seeds: int, power: bool) -> list[Any]:
    """Claims that match, each at its own seed, at the one that was asked for, or at several."""
    from pathlines.claim import CLAIMS
    from pathlines.sweep.verify import Job

    names = sorted({n for p in patterns for n in CLAIMS.match(p)})
    if seeds:
        names = [n for n in names if CLAIMS[n].seeded]
    if not names or (seed is not None and not any(CLAIMS[n].seeded for n in names)):
        raise ArgumentError("None of these claims has a seed, so no other seed can be tried.")
    first = FIRST_SEED if seed is None else seed
    others: list[dict] = [{"seed": first + k} for k in range(seeds)] or [{} if seed is None else {"seed": seed}]
    mistakes = power and size == "quick"
    return [
        Job(n, size, {**changes, **(other if CLAIMS[n].seeded else {})}, loaded_files(), mistakes)
        for n in names
        for other in others
    ]


def _run(queue: list[Any], fresh: bool, jobs: int | None, *, quiet: bool, costs: bool) -> list[Any]:
    """What became of each job, in the order of their names; measured costs are kept beside the claims."""
    from pathlines.claim import CLAIMS
    from pathlines.claim.cost import keep_cost
    from pathlines.store import Store
    from pathlines.sweep.verify import verify_jobs as sweep

    finished = []
    with _Live(len(queue), quiet=quiet) as live:
        for item in sweep(queue, store=Store(), fresh=fresh, workers=jobs, started=live.begin, costs=costs):
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


class _Live:
    """Rows appear as claims finish; a bar shows what is running."""

    def __init__(self, total: int, quiet: bool) -> None:
        self._total, self._done = total, 0
        self._console = console(stderr=True) if quiet else console()
        self._rows = not quiet
        self._running: dict[str, float] = {}
        self._bar: Any = None

    def __enter__(self) -> _Live:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
        )
        self._bar = Progress(*columns, console=self._console, transient=True, disable=not self._console.is_terminal)
        self._bar.start()
        self._task = self._bar.add_task("starting", total=self._total)
        if self._rows:
            head = ("claim", "quantity", "expected", "measured", "error, or slack", "verdict", "s")
            self._console.print(_row(head), style="bold")
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def begin(self, job: Any) -> None:
        self._running[job.id] = time.monotonic()
        self._describe()

    def end(self, item: Any) -> None:
        self._done += 1
        self._running.pop(item.job.id, None)
        if self._rows:
            text, style = _line(item)
            self._console.print(text, style=style, soft_wrap=True)
        self._describe()

    def _describe(self) -> None:
        self._bar.update(self._task, completed=self._done, description=", ".join(self._running))


def _row(cells: tuple[str, ...]) -> str:
    widths = (20, 18, 13, 24, 21, 16, 7)
    return " ".join(str(c)[:w].ljust(w) for c, w in zip(cells, widths, strict=True)).rstrip()


def _number(value: float | None, digits: int = 6) -> str:
    return "–" if value is None else f"{value:.{digits}g}"


def _line(item: Any) -> tuple[str, str]:
    if item.outcome is None:
        return _row((item.job.id, "", "", "", "", "! error", "")) + f"\n    {item.failure}", "red"
    from pathlines.claim.summary import distance, side

    o = item.outcome
    mark, _colour = MARKS[o.verdict]
    measured = _number(o.measured, 8) + (f" ± {o.uncertainty:.1g}" if o.uncertainty else "")
    verdict = f"{mark} {o.verdict}" + ("" if o.as_expected else "  UNEXPECTED")
    seconds = "stored" if item.stored else f"{o.seconds:.1f}"
    style = "" if o.as_expected and o.verdict == "holds" else "cyan" if o.as_expected else "bold red"
    advice = "".join(f"\n    {c.quantity}: {c.reason}" for c in o.checks if c.verdict == "inconclusive")
    kind = next(c.kind for c in o.checks if c.quantity == o.quantity)
    sign, compared = side(kind), distance(kind, o.error, o.tolerance)
    expected = sign + _number(o.expected)
    return _row((o.id, o.quantity, expected, measured, compared, verdict, seconds)) + advice, style


def _summary(outcomes: list, failures: list, seconds: float, size: str) -> None:
    counts = {v: sum(o.verdict == v for o in outcomes) for v in MARKS}
    odd = list(dict.fromkeys(o.id for o in outcomes if not o.as_expected))
    out = console()
    words = ", ".join(f"{c} {v}" for v, c in counts.items() if c)
    out.print(f"\n{len(outcomes)} claims at {size} size in {seconds:.0f} s: {words or 'none evaluated'}.", style="bold")
    if odd:
        out.print(f"Not as expected: {', '.join(odd)}", style="bold red")
    if failures:
        out.print(f"Failed to run: {', '.join(f.job.id for f in failures)}", style="bold red")
        if debugging():
            for f in failures:
                out.print(f.trace)
    if not odd and not failures:
        out.print("Every verdict is the expected one (errata of the literature are expected to be refuted).")


def _tabulate(outcomes: list, size: str, power: bool, path: Path | None, command: str, quiet: bool) -> None:
    from pathlines.draw.claim_tables import power_table, seed_table

    table = power_table(outcomes, size) if power else seed_table(outcomes)
    out = console(stderr=quiet)
    out.print(f"\n{table.words}", style="bold")
    for line in table.first[:20]:
        out.print(f"  {line}", style="red", soft_wrap=True)
    if path is not None:
        table.write(path, command)
        out.print(f"Table: {path.resolve()}", soft_wrap=True)


def _print_json(outcomes: list, failures: list) -> None:
    import msgspec

    from pathlines.claim import CLAIMS

    items = [{k: v for k, v in msgspec.to_builtins(o).items() if k != "lines"} for o in outcomes]
    for f in failures:
        entry = CLAIMS[f.job.id]
        blank = dict.fromkeys(("measured", "expected", "tolerance", "error", "seconds"))
        known = {
            "id": entry.id,
            "paper": entry.paper.citation,
            "where": entry.where,
            "statement": entry.statement,
            "verdict": "error",
        }
        items.append(
            {**known, "expected_verdict": entry.expected, **blank, "failure": f.failure, "setting": f.job.changes}
        )
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(items), indent=2).decode() + "\n")
