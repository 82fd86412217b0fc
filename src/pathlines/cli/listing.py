"""pathlines list: what there is."""

from __future__ import annotations

from typing import Annotated

import typer

from pathlines.cli.common import AsJson, console, ready

KINDS = ("models", "claims", "observables", "figures", "animations", "papers", "methods")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="list")(listing)


def listing(
    kind: Annotated[
        str,
        typer.Argument(
            help="models, claims, observables, figures, animations, papers or methods; all by default.",
            autocompletion=lambda incomplete: [k for k in KINDS if k.startswith(incomplete)],
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """List models, claims, observables, figures, animations, papers and methods, one line each.

    Lines are cut to the width of a terminal and whole when piped, so that `pathlines list claims | grep rank` works.

    Examples: `pathlines list`, `pathlines list claims`, `pathlines list observables --json`.
    """
    from pathlines.foundation.errors import ArgumentError

    if kind and kind not in KINDS:
        raise ArgumentError(f"Argument KIND must be one of {', '.join(KINDS)}, but is {kind!r}.")
    ready()
    found = {k: entries(k) for k in KINDS if kind in ("", k)}
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode({k: dict(v) for k, v in found.items()})).decode())
        return
    from rich.text import Text

    screen = console()
    cut = {"no_wrap": True, "overflow": "ellipsis"} if screen.is_terminal else {"soft_wrap": True}
    for name, rows in found.items():
        if not kind:
            screen.print(f"{name} ({len(rows)})", style="bold")
        width = max((len(n) for n, _ in rows), default=0)
        for entry, line in rows:
            screen.print(Text.assemble((entry.ljust(width), "cyan"), "  ", line), **cut)
        if not kind:
            screen.print()


def entries(kind: str) -> list[tuple[str, str]]:
    """(name, one line) of everything of that kind."""
    return [(name, " ".join(line.split())) for name, line in _entries(kind)]


def _entries(kind: str) -> list[tuple[str, str]]:
    if kind == "models":
        from pathlines.model import MODELS

        return [(n, f"{e.title}:  {e.equation}") for n, e in MODELS.items()]
    if kind == "claims":
        from pathlines.claim import CLAIMS

        return [(n, ("" if c.expected == "holds" else f"[{c.expected}] ") + c.statement) for n, c in CLAIMS.items()]
    if kind == "observables":
        from pathlines.observable import OBSERVABLES

        return [(n, f"{o.label}, {o.symbol}") for n, o in OBSERVABLES.items()]
    if kind == "figures":
        from pathlines.draw import FIGURES

        return [(n, p.caption) for n, p in FIGURES.items()]
    if kind == "animations":
        from pathlines.draw import ANIMATIONS

        return [(n, film.picture.caption) for n, film in ANIMATIONS.items()]
    if kind == "methods":
        from pathlines.integrate import METHODS

        return [
            (n, f"order {m.order}" + (", adaptive" if m.error_order else ", fixed step")) for n, m in METHODS.items()
        ]
    from pathlines.foundation.papers import PAPERS

    return [(p.key, p.citation) for p in PAPERS.values()]
