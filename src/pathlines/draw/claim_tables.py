"""Tables over many outcomes: what claims would notice, and what other seeds say."""

from __future__ import annotations

from pathlib import Path

import msgspec

from pathlines.claim import Outcome
from pathlines.claim.summary import GOALS, Noticed, OverSeeds, noticed, over_seeds, short_of, undisturbed
from pathlines.foundation.files import write_whole


class Table(msgspec.Struct, frozen=True):
    """A sentence that sums up, the rows to look at first, and all rows."""

    title: str
    words: str
    first: list[str]
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]

    def write(self, path: Path, command: str) -> None:
        """As Markdown, with the command that makes it."""
        line = lambda cells: "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"  # noqa: E731
        body = [f"# {self.title}", "", f"`{command}`", "", self.words, ""]
        body += [line(self.header), "|" + "---|" * len(self.header), *map(line, self.rows)]
        write_whole(path, ("\n".join(body) + "\n").encode())


def power_table(outcomes: list[Outcome], size: str) -> Table:
    """Each number of each claim that holds with the smallest error that it would notice, the weakest first."""
    rows = noticed(outcomes)
    sized = [r for r in rows if r.notices is not None]
    short = short_of(rows, size)
    silent = undisturbed(rows) if any(o.objections is not None for o in outcomes) else []
    families = ", ".join(sorted({o.id.split("/")[0] for o in outcomes}))
    words = (
        f"{len(sized) - len(short)} of {len(sized)} two-sided numbers notice an error of {GOALS[size]:.0%} at {size} "
        f"size or say why not. {_bounds(rows, outcomes)} Families: {families}."
    )
    header = ("claim", "number", "kind", "notices", "why not")
    first = [_weak(r) for r in (*silent, *short)]
    return Table("What claims would notice", words, first, header, [_power_row(r) for r in rows])


def _bounds(rows: list[Noticed], outcomes: list[Outcome]) -> str:
    bounds = [r for r in rows if r.notices is None]
    if not any(o.objections is not None for o in outcomes):
        return f"For {len(bounds)} bounds and zeros no mistake was tried (that is done at quick size)."
    heard, silent = sum(bool(r.objection) for r in bounds), len(undisturbed(bounds))
    return (
        f"Of {len(bounds)} bounds and zeros {heard} notice a mistake put into the computation, "
        f"{len(bounds) - heard - silent} say why none can be noticed, {silent} do neither."
    )


def seed_table(outcomes: list[Outcome]) -> Table:
    """One row per claim: seeds, verdicts that were not expected, the largest share of a tolerance that was used."""
    rows = over_seeds(outcomes)
    odd = [r for r in rows if r.odd]
    words = (
        f"{sum(r.seeds for r in rows)} evaluations of {len(rows)} seeded claims: "
        f"{sum(len(r.odd) for r in odd)} unexpected verdicts."
    )
    header = ("claim", "size", "seeds", "unexpected", "largest share of a tolerance used")
    return Table("Claims at other seeds", words, [_odd(r) for r in odd], header, [_seed_row(r) for r in rows])


def _weak(row: Noticed) -> str:
    return f"{row.id} {row.quantity}: {row.text}"


def _power_row(row: Noticed) -> tuple[str, ...]:
    return row.id, row.quantity, row.kind, row.text, row.excuse


def _odd(row: OverSeeds) -> str:
    return f"{row.id}: " + ", ".join(f"{verdict} at seed {seed}" for seed, verdict in row.odd.items())


def _seed_row(row: OverSeeds) -> tuple[str, ...]:
    odd = ", ".join(f"{verdict} ({seed})" for seed, verdict in row.odd.items()) or "–"
    return row.id, row.size, str(row.seeds), odd, f"{row.used:.2f}"
