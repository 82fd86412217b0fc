"""How a study stands, as it goes on: a table in the terminal, or a line of JSON for each step."""

from __future__ import annotations

import time
from typing import Any

import typer

from pathlines.cli.common import console

MANY_REASONS = 8
"""Reasons of failures that are printed."""


class Board:
    """A live table on a terminal, lines of JSON where they were asked for, else nothing until the end."""

    def __init__(self, as_json: bool, where: str) -> None:
        self.as_json, self.where = as_json, where
        self.last: Any = None
        self._screen = console(stderr=True)
        self._live: Any = None
        self._began = time.monotonic()

    def __enter__(self) -> Board:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, event: str, **values: Any) -> None:
        """One line for machines."""
        if self.as_json:
            import msgspec

            typer.echo(msgspec.json.encode({"event": event, **values}).decode())

    def announce(self, where: str) -> None:
        """What it runs on; of a cluster, where its dashboard is."""
        self.say("running", on=where)
        if not self.as_json and "://" in where:
            self._screen.print(f"on {where}", soft_wrap=True)
        self.where = where.partition(",")[0]

    def see(self, standing: Any) -> None:
        """A chunk is finished."""
        self.last = standing
        self.say("standing", **standing._asdict(), seconds_left=_left(standing))
        if not self.as_json and self._screen.is_terminal:
            if self._live is None:
                from rich.live import Live

                self._live = Live(console=self._screen, transient=True, refresh_per_second=4)
                self._live.start()
            self._live.update(self._table(standing))

    def _table(self, s: Any) -> Any:
        from rich.table import Table

        table = Table(box=None, padding=(0, 2))
        for name in ("done", "of", "failed", "from the store", "rate", "time left", "on"):
            table.add_column(name, justify="right")
        rate = s.computed / s.seconds if s.seconds else 0.0
        left = _left(s)
        shown = "–" if left is None else duration(left)
        cells = (s.done, s.total, s.failed, s.recalled, f"{rate:.3g}/s", shown, self.where)
        table.add_row(*map(str, cells))
        return table


def _left(s: Any) -> float | None:
    """Seconds that the rest will take at the rate so far."""
    if s.done == s.total:
        return 0.0
    return (s.total - s.done) * s.seconds / s.computed if s.computed else None


def duration(seconds: float) -> str:
    """A time in the words of people."""
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s"


def explain(study: Any, forecast: Any, where: str) -> None:
    """What will be run, and what it will take."""
    screen = console()
    screen.print(repr(study), style="bold", soft_wrap=True)
    programs = f"{forecast.programs} program{'s' if forecast.programs != 1 else ''}, {forecast.chunks} chunks"
    rest = forecast.runs - forecast.stored
    cost = "nobody has measured how long" if forecast.seconds is None else f"about {_time(forecast)}"
    screen.print(
        f"  {programs}; {forecast.stored} runs are stored, {rest} to do: {cost}, {forecast.memory / 1e9:.2g} GB"
    )
    same = ", ".join(f"{k} = {v}" for k, v in study.outline()["setting"].items() if v is not None)
    screen.print(f"  on {where}; the same for all: {same}", soft_wrap=True)


def _time(forecast: Any) -> str:
    return (
        f"{duration(forecast.seconds)} of one core, {duration(forecast.seconds / forecast.cores)} on {forecast.cores}"
    )


def summary(data: Any, standing: Any) -> None:
    """What came out, in a few lines; failures with their reasons."""
    import numpy as np

    screen = console()
    for name, array in data.data_vars.items():
        if name != "status":
            values = array.values
            finite = values[np.isfinite(values)]
            span = f"{finite.min():.6g} … {finite.max():.6g}" if finite.size else "no number"
            screen.print(f"  {name} ({' × '.join(map(str, array.dims))}): {span}", soft_wrap=True)
    s = standing
    screen.print(f"{s.done} of {s.total} runs: {s.computed} computed, {s.recalled} from the store, {s.failed} failed.")
    reasons = data.attrs["errors"].split("\n") if data.attrs["errors"] else []
    for k, reason in enumerate(reasons[:MANY_REASONS], 1):
        count = int((data.status.values == k).sum())
        screen.print(f"  {count} × {reason}", style="red", soft_wrap=True)
    if s.failed:
        screen.print("  (--retry-failed runs them again)")
