"""What `pathlines advise` prints beside one advice: a swept knob, two architectures side by side, remedies tried."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pathlines.cli.common import console
from pathlines.foundation.errors import ArgumentError

if TYPE_CHECKING:
    from pathlines.advice import Advice
    from pathlines.advice.remedies import Remedy
    from pathlines.advice.sweep import Swept
    from pathlines.architecture import Reading


def print_sweep(reading: Reading, texts: list[str], tokens: Any, *, as_json: bool) -> None:
    """A line for each setting, or a grid of two knobs."""
    import msgspec
    from rich.table import Table

    from pathlines.advice.sweep import sweep, values_of

    knobs = dict(values_of(text) for text in texts)
    if len(knobs) != len(texts):
        raise ArgumentError("Option --sweep may turn each knob once.")
    found = sweep(reading.architecture, knobs, tokens)
    if as_json:
        document = {"source": reading.source, "knobs": list(knobs), "settings": msgspec.to_builtins(found)}
        typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())
        return
    screen = console()
    screen.print(f"{reading.source}: mean cosine after the last layer ± s.d. over seeds; gradients")
    table = Table(box=None, padding=(0, 2))
    if len(knobs) == 1:
        for column in (*knobs, "mean cosine", "first layer at 0.9", "a token's own gradient", "gradients"):
            table.add_column(column, justify="right" if column != "gradients" else "left")
        for one in found:
            table.add_row(f"{one.values[0]:.3g}", *_cells(one))
    else:
        (first, rows), (second, columns) = knobs.items()
        table.add_column(f"{first} \\ {second}", justify="right")
        for value in columns:
            table.add_column(f"{value:.3g}")
        for k, value in enumerate(rows):
            line = found[k * len(columns) : (k + 1) * len(columns)]
            table.add_row(f"{value:.3g}", *(f"{_short(one)}" for one in line))
    screen.print(table)
    if len(knobs) == 2:
        screen.print("letters: R tokens alike, E attention on few keys, V vanishing, X exploding gradients, · none")


def _cells(one: Swept) -> tuple[str, ...]:
    if one.cosine is None:
        return ("–", "–", "–", f"refused: {one.refused}")
    layer = "–" if one.collapse is None else str(one.collapse)
    private = "–" if one.private is None else f"{one.private:.2g}"
    return f"{one.cosine:.3f} ± {one.spread:.3f}", layer, private, ", ".join(one.labels) or "not followed"


def _short(one: Swept) -> str:
    if one.cosine is None:
        return "refused"
    letters = {"rank": "R", "entropy": "E", "vanishing": "V", "exploding": "X", "trainable": "·"}
    return f"{''.join(letters[label] for label in one.labels)} {one.cosine:.2f}"


def two_sources(source: list[str]) -> bool:
    """Whether two files are named, and not numbers."""
    return len(source) == 2 and all(Path(name).suffix in (".json", ".toml") or Path(name).exists() for name in source)


def print_both(advices: list[tuple[Reading, Advice]], *, as_json: bool) -> None:
    """The numbers of two architectures side by side, and the fields in which they differ."""
    import msgspec
    from rich.table import Table

    from pathlines.advice.remedies import differences

    (one, first), (two, second) = advices
    fields = differences(first.architecture, second.architecture)
    if as_json:
        document = [advice.as_dict() | {"source": reading.source} for reading, advice in advices]
        typer.echo(msgspec.json.format(msgspec.json.encode({"advice": document, "differences": fields})).decode())
        return
    screen, table = console(), Table(box=None, padding=(0, 2))
    for column in ("", one.source, two.source):
        table.add_column(column)
    for name, read in _LINES:
        table.add_row(name, read(first), read(second))
    for name, value in fields.items():
        table.add_row(f"`{name}`", str(_field(first.architecture, name)), str(value), style="dim")
    screen.print(table)
    for reading, advice in advices:
        screen.print(f"{reading.source}: {advice.summary[0]}")


def _field(architecture: Any, name: str) -> Any:
    for part in name.split("."):
        architecture = getattr(architecture, part)
    return architecture


def _first_at(level: float) -> Any:
    return lambda a: "–" if a.collapse[level] is None else str(a.collapse[level])


def _gradient(read: Any) -> Any:
    return lambda a: "not followed" if a.gradients is None else read(a.gradients)


def _ratio(g: Any) -> float:
    return float(g.matrices["query"][-1] / max(g.matrices["value"][-1], 1e-300))


_LINES: tuple[tuple[str, Any], ...] = (
    ("mean cosine, last layer", lambda a: f"{a.band.cosine:.3f} ± {a.band.spread:.3f}"),
    ("target", lambda a: "–" if a.met is None else "met" if a.met else "missed"),
    ("first layer at 0.5", _first_at(0.5)),
    ("first layer at 0.9", _first_at(0.9)),
    ("effective rank, last layer", lambda a: f"{a.prediction.effective_rank[-1]:.1f}"),
    ("logit s.d., first layer", lambda a: f"{a.prediction.logit_std[0]:.2g}"),
    ("gradients", _gradient(lambda g: ", ".join(g.labels))),
    ("a token's own gradient, bottom/top", _gradient(lambda g: f"{g.transmission:.2g}")),
    ("queries' over values', last layer", _gradient(lambda g: f"{_ratio(g):.2g}")),
)  # fmt: skip


def print_remedies(remedies: tuple[Remedy, ...], most: int = 6) -> None:
    """The best of them, and what else they change."""
    screen = console()
    screen.print("what meets the target, the best first (mean cosine ± s.d. over seeds, share of seeds that meet it):")
    for number, one in enumerate(remedies[:most], start=1):
        share = f"{one.share:.0%}" if one.meets else f"{one.share:.0%}, too few"
        numbers = f"{one.before:.3f} → {one.cosine:.3f} ± {one.spread:.3f}, {share}"
        screen.print(f"  {number}. {one.name}: {numbers}", style=None if one.meets else "dim")
        for line in one.also:
            screen.print(f"       {line}", style="dim")


def try_remedies(reading: Reading, advice: Advice, tokens: Any, seeds: int, seed: int, most: int = 3) -> list[Any]:
    """The best remedies on the library's own random modules; none where those cannot be built or multiplied."""
    from pathlines.foundation.errors import PathlinesError
    from pathlines.probing.simulate import why_not

    if advice.target is None or reading.fields is None or why_not(reading.fields, tokens) is not None:
        return []
    from pathlines.probing.remedied import tried

    found = []
    for remedy in [r for r in advice.remedies if r.meets and r.weights is not None][:most]:
        assert remedy.weights is not None
        try:
            aim = advice.target.cosine, advice.target.layer
            found.append(tried(reading.fields, tokens, remedy.name, remedy.weights, *aim, seeds=seeds, seed=seed))
        except (PathlinesError, IndexError) as error:
            typer.echo(f"pathlines: warning: {remedy.name} was not tried: {error}", err=True)
    return found


def print_tried(tried: list[Any]) -> None:
    """One line each."""
    for one in tried:
        before, after = (sum(values) / len(values) for values in (one.before, one.after))
        console().print(
            f"tried on {len(one.after)} random modules: {one.remedy}: mean cosine {before:.3f} → {after:.3f}, "
            f"{one.met} of {len(one.after)} meet the target"
        )
