"""pathlines view: pages to play with, and one to send."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pathlines.cli.common import Seed, check_outputs, console, ready
from pathlines.cli.complete import models
from pathlines.cli.generated import Choice, from_record, with_choices

PORT = 8477
"""Where the pages are if nobody says where; the next free one if it is taken."""
ELSEWHERE = ("d", "step")
MISSING = "The pages need NiceGUI, which is not installed: pip install 'pathlines[view]' (--export works without)."


def register(app: typer.Typer) -> None:
    """Add the verb."""
    with_choices(app, "view", view, parameters, "Parameters of the model")


def parameters(command: Any, words: list[str]) -> list[Choice]:
    """The options of the model that a line names by --model."""
    ready()
    from pathlines.model import MODELS
    from pathlines.view.site.state import DEFAULT

    pairs = zip(words, [*words[1:], ""])
    named = [w.partition("=")[2] or after for w, after in pairs if w.partition("=")[0] == "--model"]
    return [c for c in from_record(MODELS[(named or [DEFAULT])[-1]].parameters()) if c.name not in ELSEWHERE]


def view(
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            help="A model of `pathlines list models` to begin with, e.g. sa.",
            autocompletion=models,
            show_default=False,
        ),
    ] = None,
    n: Annotated[int | None, typer.Option("--n", help="Tokens n, 2 to 2000.", show_default=False)] = None,
    d: Annotated[int | None, typer.Option("--d", help="Dimension d, 2 or 3.", show_default=False)] = None,
    until: Annotated[float | None, typer.Option("--until", help="Last depth-time.", show_default=False)] = None,
    start: Annotated[
        str | None, typer.Option("--start", help="Law of the start, as in `pathlines run`.", show_default=False)
    ] = None,
    layers: Annotated[
        int | None, typer.Option("--layers", min=1, help="Layers of a stack or chain.", show_default=False)
    ] = None,
    step: Annotated[float | None, typer.Option("--step", help="Residual step η of a layer.")] = None,
    seed: Seed = 0,
    frames: Annotated[
        int | None, typer.Option("--frames", help="Recorded times, 2 to 501 (101).", show_default=False)
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="FILE.html", help="Write the run as one page that plays anywhere, and stop."),
    ] = None,
    port: Annotated[int | None, typer.Option("--port", help=f"Port ({PORT}, or the next free one).")] = None,
    host: Annotated[
        str | None,
        typer.Option("--host", help="Who can reach it: 127.0.0.1 (usual), this machine only; 0.0.0.0, all."),
    ] = None,
    token: Annotated[
        str | None, typer.Option("--token", help="Your own token, at least 16 letters.", show_default=False)
    ] = None,
    browse: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    **chosen: Any,
) -> None:
    """See it: pages to play with a run, its claims, retrieval, flows, an architecture; or one page to send.

    Starts a server on this machine, prints its link and opens it. The link holds a token that the pages need; others
    reach the server only if --host says so. Every state of a page has an address, and every page says which command
    and which lines of Python give the same numbers. Ctrl-C ends it.

    With --export nothing is served: the run is written as one HTML file with its data and its pictures' own program,
    which plays in any browser without a network.

    Examples: `pathlines view`, `pathlines view --model sa --beta 9 --n 200`,
    `pathlines view --export talk.html --model sa --beta 9 --until 30 --frames 240`,
    `pathlines view --host 0.0.0.0 --port 8477 --no-open`.
    """
    ready()
    stage = {"n": n, "d": d, "until": until, "start": start, "layers": layers, "step": step, "frames": frames}
    said = {k: v for k, v in stage.items() if v is not None} | ({"seed": seed} if seed else {})
    asked = model is not None or bool(said) or bool(chosen)
    state = _state(model, said, chosen)
    if export is None:
        _serve(state.query if asked else "", host or "127.0.0.1", port, token, browse)
        return
    serving = {"--port": port, "--host": host, "--token": token}
    if given := [name for name, value in serving.items() if value is not None]:
        from pathlines.foundation.errors import ArgumentError

        raise ArgumentError(f"Option {given[0]} is for the server, and --export starts none: leave one of them out.")
    _export(state, export)


def _state(model: str | None, stage: dict[str, Any], chosen: dict[str, Any]) -> Any:
    from pathlines.view.site.presets import usual
    from pathlines.view.site.state import DEFAULT, state_of, with_values

    name = model or DEFAULT
    state = state_of(usual(name))
    for key in [k for k, v in chosen.items() if hasattr(v, "shape")]:
        chosen = {**chosen, key: chosen[key].tolist()}
    return with_values(state, {**stage, **chosen})


def _export(state: Any, path: Path) -> None:
    from pathlines.cli.common import waiting
    from pathlines.foundation.errors import ArgumentError
    from pathlines.view.export import export_page
    from pathlines.view.site.runs import frames_of

    if path.suffix not in (".html", ".htm"):
        raise ArgumentError(f"The name of a page must end in .html, but is {path}.")
    check_outputs(path)
    with waiting("computing the run"):
        data = frames_of(state.checked())
    written = export_page(data, path)
    console().print(f"page: {written.resolve()} ({written.stat().st_size / 1e6:.2g} MB)", soft_wrap=True)
    if data["outcome"] != "completed":
        console().print(data["outcome"], soft_wrap=True)
        raise typer.Exit(1)


def _serve(query: str, host: str, port: int | None, token: str | None, browse: bool) -> None:
    from importlib.util import find_spec

    from pathlines.foundation.errors import ArgumentError
    from pathlines.view.site.security import checked_token, is_loopback, kept_token

    if find_spec("nicegui") is None:
        raise ArgumentError(MISSING)
    secret = checked_token(token) if token is not None else kept_token()
    from pathlines.cli.common import waiting

    with waiting("starting the pages"):
        from pathlines.view.site.server import bound, free_from, serve

        listening = free_from(host, PORT) if port is None else bound(host, port)
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    shown = f"[{shown}]" if ":" in shown else shown
    rest = f"&{query}" if query else ""
    address = f"http://{shown}:{listening.getsockname()[1]}/play?token={secret}{rest}"
    screen = console()
    screen.print("Pathlines is open at", style="bold")
    screen.print(f"  {address}", soft_wrap=True)
    if not is_loopback(host):
        screen.print("Everybody who can reach this machine and has the link can use it; it is not encrypted.")
    screen.print("Ctrl-C ends it.", style="dim")
    if browse:
        import threading
        import webbrowser

        threading.Timer(0.5, webbrowser.open, [address]).start()
    serve(listening, secret, host)
    screen.print("Pathlines is closed.")
