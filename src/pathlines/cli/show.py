"""pathlines show: one thing in full."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from pathlines.cli.common import Figure, check_outputs, console, ready
from pathlines.cli.complete import anything

SETTING = "table"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="show")(show)


def show(
    name: Annotated[
        str,
        typer.Argument(
            help="A model, claim, observable, figure, paper, or a saved run (FILE.nc).", autocompletion=anything
        ),
    ],
    figure: Figure = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="The JSON schema of the setting of a claim, figure, animation or model.")
    ] = False,
) -> None:
    """Show an equation with its citation and good values, a claim with a table of its settings, or a saved run.

    Examples: `pathlines show sa`, `pathlines show clustering/CL-21`, `pathlines show clustering/CL-21 --schema`,
    `pathlines show run.nc --figure run.pdf` (pictures are for saved runs).
    """
    ready()
    check_outputs(figures=(figure,))
    if name.endswith(".nc"):
        return _show_run(Path(name), figure)
    from pathlines.foundation.errors import ArgumentError

    if figure is not None:
        raise ArgumentError(f"Option --figure draws saved runs (FILE.nc), but `{name}` is none.")
    found = _found(name)
    if schema:
        return _print_schema(name, [entry for entry, describe in found if describe in (_claim, _figure, _model)])
    for entry, describe in found:
        _print(describe(entry))
    return None


def _found(name: str) -> list[tuple[Any, Callable[[Any], list[tuple[str, Any]]]]]:
    """Everything of that name, and how it is described."""
    from pathlines.claim import CLAIMS
    from pathlines.draw import ANIMATIONS, FIGURES
    from pathlines.foundation.errors import UnknownNameError
    from pathlines.foundation.papers import PAPERS
    from pathlines.foundation.registry import near
    from pathlines.model import MODELS
    from pathlines.observable import OBSERVABLES

    films = {film: ANIMATIONS[film].picture for film in ANIMATIONS}
    shelves: list[tuple[Any, Any]] = [
        (MODELS, _model), (CLAIMS, _claim), (OBSERVABLES, _observable), (FIGURES, _figure), (films, _figure),
        (PAPERS, _paper),
    ]  # fmt: skip
    found = [(shelf[name], describe) for shelf, describe in shelves if name in list(shelf)]
    if not found:
        meant = near(name, [n for shelf, _ in shelves for n in shelf])
        hint = f" Did you mean {meant}?" if meant else " `pathlines list` shows all."
        raise UnknownNameError(f"There is nothing called `{name}`.{hint}")
    return found


def _print(rows: list[tuple[str, Any]]) -> None:
    from rich.text import Text

    for title, text in rows:
        if title == SETTING:
            console().print(text)
        else:
            console().print(Text.assemble((f"{title:>13}", "bold"), f"  {text}"), soft_wrap=False)
    console().print()


def _model(entry: Any) -> list[tuple[str, Any]]:
    from pathlines.foundation.marks import standing

    doc = (getattr(entry.build, "__doc__", "") or "").strip()
    rows = [("model", entry.title), ("equation", entry.equation), ("you will see", entry.sees)]
    rows += [("good values", entry.good_values)]
    rows += [("paper", p.citation) for p in entry.papers]
    rows += [("standing", words)] if (words := standing(entry.marks, entry.convention)) else []
    rows += [("notes", doc)] if doc else []
    return [*rows, (SETTING, _parameters(entry.parameters()))]


def _parameters(record: Any) -> Any:
    """Options of `pathlines run`, with symbol, meaning, what is allowed, and defaults."""
    from pathlines.foundation.setting import fields

    rows = []
    for f in fields(type(record)):
        default = getattr(record, f.name)
        known = (f.symbol, _meaning(f), f.allowed.removesuffix(" or null"))
        rows.append((_option(f.name), *known, "" if default is None else _shown(default)))
    return _grid(("option", "symbol", "meaning", "allowed", "default"), rows)


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _meaning(f: Any) -> str:
    return f.meaning + (f" ({f.unit})" if f.unit else "")


def _grid(titles: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in titles:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _claim(entry: Any) -> list[tuple[str, Any]]:
    from pathlines.foundation.marks import standing

    also = f" (an alias of {entry.alias_of})" if entry.alias_of else ""
    rows = [("claim", entry.id + also), ("label", entry.label), ("statement", entry.statement)]
    rows += [("paper", entry.paper.citation), ("where", entry.where or "not said")]
    rows += [("standing", words)] if (words := standing(entry.marks, entry.convention)) else []
    rows += [("expected", entry.expected + (f" (correct: {entry.corrected_by})" if entry.corrected_by else ""))]
    rows += [("compares", f"{k}: {t.kind} {t.value:g} ({t.reason})") for k, t in entry.within.items()]
    costs = [f"{cost} at {size} size" for size in ("quick", "full") if (cost := entry.cost(size)) is not None]
    rows += [("cost", ", ".join(costs) or "not measured")]
    rows += [("note", entry.note)] if entry.note else []
    return [*rows, ("setting", type(entry.quick).__doc__), (SETTING, _table(entry.quick, entry.full))]


def _table(quick: Any, full: Any, title: str = "--set", written: Callable[[str], str] = str) -> Any:
    """Name, symbol, meaning, what is allowed, and both sizes; the full one only where it differs."""
    from pathlines.foundation.setting import fields

    rows = []
    for f in fields(type(quick)):
        low, high = (_shown(getattr(s, f.name)) for s in (quick, full))
        rows.append((written(f.name), f.symbol, _meaning(f), f.allowed, low, "" if high == low else high))
    return _grid((title, "symbol", "meaning", "allowed", "quick", "full"), rows)


def _shown(value: Any) -> str:
    """As JSON, which --set reads; words as they are."""
    import json

    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _print_schema(name: str, entries: list[Any]) -> None:
    """What its options and --set accept, with the sizes it comes in as examples."""
    import msgspec

    from pathlines.foundation.errors import ArgumentError

    if not entries:
        raise ArgumentError(f"Option --schema is for what has settings, but `{name}` has none.")
    for entry in entries:
        sizes = [entry.quick, entry.full] if hasattr(entry, "quick") else [entry.parameters()]
        schema = msgspec.json.schema(type(sizes[0])) | {"examples": sizes}
        typer.echo(msgspec.json.format(msgspec.json.encode(schema), indent=2).decode())


def _observable(entry: Any) -> list[tuple[str, Any]]:
    rows = [("observable", entry.name), ("symbol", entry.symbol), ("label", entry.label)]
    rows += [("definition", (entry.function.__doc__ or "").strip())]
    return rows + ([("parameters", dict(entry.parameters))] if entry.parameters else [])


def _figure(entry: Any) -> list[tuple[str, Any]]:
    said = [("figure", entry.name), ("caption", entry.caption), ("paper", entry.paper.citation)]
    return [
        *said,
        ("setting", type(entry.quick).__doc__),
        (SETTING, _table(entry.quick, entry.full, "option", _option)),
    ]


def _paper(entry: Any) -> list[tuple[str, Any]]:
    return [("paper", entry.citation), ("bibtex", "\n" + entry.bibtex)]


def _show_run(path: Path, figure: Path | None) -> None:
    from pathlines.store import open_run

    run = open_run(path)
    console().print(repr(run))
    if figure is not None:
        from pathlines.draw import plot, save_figure

        save_figure(plot(run), figure)
        typer.echo(f"figure: {figure.resolve()}")
