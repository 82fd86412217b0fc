"""pathlines sweep: a model, a claim or a function at many settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pathlines.cli.common import AsJson, Figure, Force, Fresh, check_outputs, console, loaded_files, ready
from pathlines.cli.complete import cited
from pathlines.cli.generated import Choice, as_choice, names_on, with_choices
from pathlines.cli.standing import Board, explain, summary

OWN = (
    "axis",
    "repeat",
    "record",
    "times",
    "full",
    "on",
    "workers",
    "store",
    "out",
    "figure",
    "dry_run",
    "retry_failed",
    "extend",
)
"""Options of the verb, which fields of a setting do not take away (an axis over one still can be made)."""


Target = Annotated[
    str, typer.Argument(help="A model, a claim, FILE.py that makes a study, or FILE.toml.", autocompletion=cited)
]
Axes = Annotated[
    list[str] | None,
    typer.Option(
        "--axis",
        metavar="NAME=VALUES",
        help="beta=1:9:9, n=8:128:log, n=16,32,64, beta=0:9:random:50 (or halton, sobol); n/d=16,64/2,3 together.",
    ),
]
Repeat = Annotated[int, typer.Option("--repeat", min=1, help="Repetitions with derived seeds.")]
Record = Annotated[str, typer.Option("--record", help="Observables, comma separated (models); a few by default.")]
Times = Annotated[
    str, typer.Option("--times", metavar="LOW:HIGH:COUNT", help="Depth-times of records; by default the end.")
]
FullClaim = Annotated[bool, typer.Option("--full", help="The paper's size of a claim instead of the quick one.")]
On = Annotated[
    str | None,
    typer.Option("--on", help="serial, processes, dask, tcp://… (a scheduler) or cluster.toml.", show_default=False),
]
Workers = Annotated[int | None, typer.Option("--workers", min=1, help="Worker processes: one per core.")]
StoreAt = Annotated[
    str | None,
    typer.Option("--store", metavar="FOLDER|URL", help="Where chunks are kept: a folder, s3://bucket/folder, …"),
]
Out = Annotated[Path | None, typer.Option("--out", metavar="FILE.nc", help="Write the labelled array here.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say how many runs, how long, how large; run none.")]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Run again what failed.")]
Extend = Annotated[bool, typer.Option("--extend", help="Add the points to those of the study in --out.")]
Refine = Annotated[
    int | None, typer.Option("--refine", metavar="N", min=4, help="Spend N runs where the answer changes.")
]
Threshold = Annotated[
    str, typer.Option("--threshold", metavar="5%", help="From which size on is theory as near as that? (one axis)")
]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    with_choices(app, "sweep", sweep, parameters, "What stays the same")


def parameters(command: Any, words: list[str]) -> list[Choice]:
    """The options of the model or claim that a line names."""
    ready()
    from pathlines.foundation.errors import UnknownNameError
    from pathlines.foundation.setting import fields
    from pathlines.sweep.study_file import SUFFIXES
    from pathlines.sweep.subject import fixed_setting, found_by_name

    found = names_on(command, words, ())
    if not found or Path(found[0]).suffix in SUFFIXES:
        return []
    try:
        known = found_by_name(found[0], ())
    except UnknownNameError:
        return []
    values = fixed_setting(known, {})
    return [as_choice(f, values.get(f.name)) for f in fields(known.record) if f.name not in OWN]


def sweep(
    target: Target,
    axis: Axes = None,
    repeat: Repeat = 1,
    record: Record = "",
    times: Times = "",
    full: FullClaim = False,
    on: On = None,
    workers: Workers = None,
    store: StoreAt = None,
    out: Out = None,
    figure: Figure = None,
    dry_run: DryRun = False,
    retry_failed: RetryFailed = False,
    extend: Extend = False,
    refine: Refine = None,
    threshold: Threshold = "",
    fresh: Fresh = False,
    as_json: AsJson = False,
    force: Force = False,
    **chosen: Any,
) -> None:
    """Run a model, a claim or a function of yours at all settings of some axes, and label what comes out.

    Settings that share a compiled program run side by side. Every finished chunk is kept before it is counted: after
    Ctrl-C, a kill or a full disk the same command goes on from there, and two of them at once share the work. A setting
    that fails is recorded with its reason, the study goes on, and the exit code is 1.

    Fields of the model or claim are options, for what stays the same: `pathlines sweep sa --help` lists them.

    Examples: `pathlines sweep sa --axis beta=1:9:9 --axis n=16,32,64 --repeat 20 --record cluster_count --until 30
    --out study.nc`, `pathlines sweep clustering/CL-21 --axis n=8:128:log --threshold 5%`,
    `pathlines sweep my_study.py --on processes`.
    """
    ready()
    from pathlines.sweep.engines import check_engine

    check_outputs(out, figures=(figure,))
    near = _threshold(threshold)
    made = _study(target, axis or [], repeat, record, times, full, chosen)
    along = _along(made) if near is not None else ""
    usual = "serial" if made.known.subject.kind == "model" or refine is not None else "processes"
    where = usual if on is None else on
    check_engine(where)
    if out is not None:
        made = _beside(made, out, extend, refine)
    forecast = _foreseen(made, refine, force, store)
    with Board(as_json, where) as board:
        _announce(made, forecast, where, board)
        if dry_run:
            return
        how = {"on": where, "fresh": fresh, "retry_failed": retry_failed, "workers": workers, "store": store}
        data = _run(made, board, refine, **how)
        board.say("finished", **board.last._asdict(), errors=data.attrs["errors"].split("\n"))
        found = None if near is None else _asymptotics(data, along, near, board)
    if not as_json:
        summary(data, board.last)
    _write(data, out, figure, found, quiet=as_json)
    if board.last.failed:
        raise typer.Exit(1)


def _beside(made: Any, out: Path, extend: bool, refine: int | None) -> Any:
    """The study, with the points that its file has already where it is extended; no other study is overwritten."""
    from pathlines.sweep.outline import require_same

    if extend:
        return made.extended(out)
    require_same(out, made.outline(), but_axes=refine is not None)
    return made


def _foreseen(made: Any, refine: int | None, force: bool, store: str | None = None) -> Any:
    """What it will cost; refused where that is too much."""
    from pathlines.foundation.errors import ArgumentError
    from pathlines.sweep.foresight import check_forecast

    if store is not None and not (store.strip() and store.isprintable()):
        raise ArgumentError(f"Option --store takes a folder or a URL, but is {store!r}.")
    forecast = made.predict(store) if refine is None else made.predict(store).of_runs(refine)
    check_forecast(made.known.title, forecast, force)
    return forecast


def _announce(made: Any, forecast: Any, where: str, board: Board) -> None:
    import msgspec

    board.say("planned", **msgspec.to_builtins(forecast), shape=made.shape, outline=made.outline())
    if not board.as_json:
        explain(made, forecast, where)


def _threshold(text: str) -> float | None:
    """5 % or .05 as a number."""
    from pathlines.foundation.errors import ArgumentError

    if not text:
        return None
    try:
        near = float(text.rstrip("% ")) / (100 if text.rstrip().endswith("%") else 1)
    except ValueError:
        near = 0.0
    if not 0 < near < 1:
        raise ArgumentError(f"Option --threshold takes a share such as 5% or 0.05, but got {text!r}.")
    return near


def _along(made: Any) -> str:
    """The one axis of numbers, along which --threshold looks."""
    from pathlines.foundation.errors import ArgumentError
    from pathlines.sweep.asymptotics import FEWEST

    axes = [axis for axis in made.axes if axis.dim != "repeat"]
    if made.known.subject.kind != "claim":
        raise ArgumentError(
            "Option --threshold compares with theory: it takes a claim (pl.asymptotics takes any theory)."
        )
    if len(axes) != 1 or len(axes[0]) < FEWEST:
        raise ArgumentError(f"Option --threshold takes one axis of {FEWEST} or more sizes, such as --axis n=8:128:log.")
    return str(axes[0].dim)


def _asymptotics(data: Any, along: str, near: float, board: Board) -> Any:
    """From which size on each quantity is near its theory; the first of them is drawn."""
    from pathlines.sweep.asymptotics import asymptotics

    names = [n for n in map(str, data.data_vars) if f"{n}_theory" in data]
    found = [asymptotics(data, along, variable=name, tolerance=near) for name in names]
    for one in found:
        board.say(
            "asymptotics", variable=one.variable, size=one.size, predicted_size=one.predicted_size, words=str(one)
        )
        if not board.as_json:
            console().print(str(one), style="bold", soft_wrap=True)
    return found[0]


def _study(
    target: str, axis: list[str], repeat: int, record: str, times: str, full: bool, chosen: dict[str, Any]
) -> Any:
    from pathlines.foundation.errors import ArgumentError
    from pathlines.sweep.study import study
    from pathlines.sweep.study_file import SUFFIXES, study_in

    if Path(target).suffix in SUFFIXES:
        if axis or record or times or full or chosen or repeat > 1:
            raise ArgumentError(f"The study of {target} stands in it: change it there, not on the command line.")
        return study_in(Path(target))
    axes: dict[str, str] = {}
    for one in axis:
        name, equals, values = one.partition("=")
        if not equals or not name:
            raise ArgumentError(f"Option --axis takes NAME=VALUES, but got {one!r}.")
        if name in axes:
            raise ArgumentError(f"Axis `{name}` is given twice.")
        axes[name] = values
    more: dict[str, Any] = {"record": tuple(x.strip() for x in record.split(",") if x.strip())} if record else {}
    more |= {"times": times} if times else {}
    size = "full" if full else "quick"
    return study(target, axes, repeat=repeat, size=size, load=loaded_files(), **more, **chosen)


def _run(made: Any, board: Board, refine: int | None, **how: Any) -> Any:
    try:
        how |= {"watch": board.see, "announce": board.announce}
        return made.run(**how) if refine is None else made.refine(refine, **how)
    except KeyboardInterrupt:
        if board.last is not None and not board.as_json:
            kept = f"{board.last.done} of {board.last.total} runs are kept"
            console(stderr=True).print(f"pathlines: {kept}.", soft_wrap=True)
        raise


def _write(data: Any, out: Path | None, figure: Path | None, found: Any, quiet: bool) -> None:
    if out is not None:
        from pathlines.foundation.files import write_whole
        from pathlines.store.results import file_bytes

        write_whole(out, file_bytes(data))
    if figure is not None:
        from pathlines.draw import asymptotics_figure, save_figure, study_figure

        save_figure(study_figure(data) if found is None else asymptotics_figure(found), figure)
    for label, path in (("study", out), ("figure", figure)):
        if path is not None and not quiet:
            console().print(f"{label}: {path.resolve()}", soft_wrap=True)
