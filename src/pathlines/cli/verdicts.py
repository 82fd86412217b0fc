"""What `pathlines verify` prints: rows as verdicts fall, a summary, tables, JSON."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from pathlines.cli.common import console, debugging

MARKS = {"holds": "✓", "refuted": "✗", "inconclusive": "?"}


class Live:
    """Rows appear as claims finish; a bar shows what is running."""

    def __init__(self, total: int, quiet: bool) -> None:
        self._total, self._done = total, 0
        self._console = console(stderr=True) if quiet else console()
        self._rows = not quiet
        self._running: dict[str, float] = {}
        self._bar: Any = None

    def __enter__(self) -> Live:
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
        """A claim runs."""
        self._running[job.id] = time.monotonic()
        self._describe()

    def end(self, item: Any) -> None:
        """A claim is finished."""
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
    measured = _number(o.measured, 8) + (f" ± {o.uncertainty:.1g}" if o.uncertainty else "")
    verdict = f"{MARKS[o.verdict]} {o.verdict}" + ("" if o.as_expected else "  UNEXPECTED")
    seconds = "stored" if item.stored else f"{o.seconds:.1f}"
    style = "" if o.as_expected and o.verdict == "holds" else "cyan" if o.as_expected else "bold red"
    advice = "".join(f"\n    {c.quantity}: {c.reason}" for c in o.checks if c.verdict == "inconclusive")
    kind = next(c.kind for c in o.checks if c.quantity == o.quantity)
    sign, compared = side(kind), distance(kind, o.error, o.tolerance)
    expected = sign + _number(o.expected)
    return _row((o.id, o.quantity, expected, measured, compared, verdict, seconds)) + advice, style


def print_summary(outcomes: list[Any], failures: list[Any], seconds: float, size: str) -> None:
    """How many verdicts of each kind, and which are not the expected ones."""
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


def tabulate(outcomes: list[Any], size: str, power: bool, path: Path | None, command: str, quiet: bool) -> None:
    """The table of --power or --seeds in words, its worst lines, and as a file."""
    from pathlines.draw.claim_tables import power_table, seed_table

    table = power_table(outcomes, size) if power else seed_table(outcomes)
    out = console(stderr=quiet)
    out.print(f"\n{table.words}", style="bold")
    for line in table.first[:20]:
        out.print(f"  {line}", style="red", soft_wrap=True)
    if path is not None:
        table.write(path, command)
        out.print(f"Table: {path.resolve()}", soft_wrap=True)


def print_json(outcomes: list[Any], failures: list[Any]) -> None:
    """Outcomes and failures for a machine."""
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
            "marks": entry.marks,
            "convention": entry.convention,
            "alias_of": entry.alias_of,
            "statement": entry.statement,
            "verdict": "error",
        }
        items.append(
            {**known, "expected_verdict": entry.expected, **blank, "failure": f.failure, "setting": f.job.changes}
        )
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(items), indent=2).decode() + "\n")
