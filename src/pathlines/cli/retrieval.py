"""pathlines retrieval: what the last token of a prompt remembers of every earlier one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pathlines.cli.common import AsJson, Beta, Figure, Force, Seed, Tokens, check_outputs, console, ready


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="retrieval")(retrieval)


def retrieval(
    beta: Beta = 1.0,
    slope: Annotated[float, typer.Option("--slope", help="ALiBi slope λ in units of 1/N; 0 for none.")] = 2.0,
    vocabulary: Annotated[int, typer.Option("--vocabulary", help="Codewords M that are told apart.")] = 8,
    depth: Annotated[float, typer.Option("--depth", help="Depth t: layers times their step.")] = 1.0,
    n: Tokens = 256,
    mask: Annotated[
        str,
        typer.Option("--mask", help="causal, alibi:λ, window:WIDTH, sink:COUNT:WIDTH, strided:STRIDE, or FILE.npy."),
    ] = "causal",
    compare: Annotated[
        list[str] | None, typer.Option("--compare", metavar="MASK", help="Rank masks by their worst position (repeat).")
    ] = None,
    softmax: Annotated[
        bool, typer.Option("--softmax", help="Softmax attention instead of the paper's kernel.")
    ] = False,
    layers: Annotated[int | None, typer.Option("--layers", min=1, help="Residual layers L of step t/L.")] = None,
    simulate: Annotated[bool, typer.Option("--simulate", help="Measure it on random prompts, with errors.")] = False,
    prompts: Annotated[int, typer.Option("--prompts", help="Random prompts of --simulate.")] = 2000,
    seed: Seed = 0,
    figure: Figure = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Save the profile: .nc or .csv.")] = None,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Lost in the middle: how well is the token at each position of a prompt retrieved at its end?

    Theory for uniform prompts through a causal decoder on the circle (arXiv:2605.09213): the closed form for long
    prompts, and for N tokens and any mask the sum over paths of attention. The profile S is what retrieval adds to
    chance: the soft accuracy is √(π/2)/M + √(2π)/(MN) S. `--simulate` measures it by the adjoint of random prompts.
    `--compare` ranks masks: the one whose worst position is retrieved best comes first.

    Examples: `pathlines retrieval --beta 1 --slope 2 --depth 1 --simulate --figure u.pdf`,
    `pathlines retrieval --mask window:64 --n 512`,
    `pathlines retrieval --compare causal --compare window:64 --compare sink:4:64 --n 512 --json`.
    """
    ready()
    from pathlines.foundation.bounds import within
    from pathlines.foundation.errors import ArgumentError
    from pathlines.foundation.setting import changed
    from pathlines.sweep.recall import MOST_WORK, Recall

    check_outputs(out, figures=(figure,))
    if out is not None and out.suffix not in (".nc", ".csv"):
        raise ArgumentError(f"The name of a profile must end in .nc or .csv, but is {out}.")
    if compare and simulate:
        raise ArgumentError("Options --compare and --simulate answer different questions: give one of them.")
    given = {
        "beta": beta, "slope": slope, "depth": depth, "vocabulary": vocabulary, "n": n, "softmax": softmax,
        "layers": layers, "prompts": prompts, "seed": seed,
    }  # fmt: skip
    asked = {word: changed("retrieval", Recall(), {**given, "mask": word}) for word in (compare or [mask])}
    work = sum(one.work(simulate=simulate) for one in asked.values())
    within(f"Retrieval from {n} tokens", work, MOST_WORK, "operations", force=force)
    for question in asked.values():
        question.check(simulate=simulate, force=True)
    found = {word: question.forecast() for word, question in asked.items()}
    if compare:
        _ranked(found, figure, as_json)
        return
    one, measured = found[mask], asked[mask].measured() if simulate else None
    _answer(one, measured, as_json)
    if out is not None:
        _save(out, one, measured)
    if figure is not None:
        from pathlines.draw import save_figure
        from pathlines.draw.retrieval_figure import retrieval_figure

        save_figure(retrieval_figure(one, measured), figure)


def _answer(found: Any, measured: Any, as_json: bool) -> None:
    import msgspec

    if as_json:
        said = msgspec.to_builtins(found)
        if measured is not None:
            said["measured"] = measured["profile"].values.tolist()
            said["measured_error"] = measured["error"].values.tolist()
            said["measured_warning"] = measured.attrs["warning"]
        typer.echo(msgspec.json.format(msgspec.json.encode(said)).decode())
        return
    screen = console()
    screen.print(f"Regime: {found.regime}.", style="bold")
    for line in found.sentences:
        screen.print(line, soft_wrap=True)
    screen.print(
        f"Soft accuracy: {found.accuracy_at_worst:.5f} at the worst position, {found.accuracy_at_last:.5f} at the last "
        f"but one, chance {found.chance:.5f}.",
        soft_wrap=True,
    )
    screen.print(_table(found, measured))
    if measured is not None and measured.attrs["warning"]:
        screen.print(f"Measured with a warning: {measured.attrs['warning']}.", soft_wrap=True)


def _table(found: Any, measured: Any) -> Any:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2))
    for column in ("source", "i/N", "paths", *(["closed form"] if found.closed_form else [])):
        table.add_column(column, justify="right")
    if measured is not None:
        table.add_column("measured", justify="right")
    for i in sorted({1, found.worst_position, found.n - 1, *(max(1, round(k * found.n / 8)) for k in range(1, 8))}):
        cells = [str(i), f"{i / found.n:.3f}", f"{found.profile[i - 1]:.4g}"]
        if found.closed_form:
            cells.append(f"{found.closed_form[i - 1]:.4g}")
        if measured is not None:
            row = measured.sel(position=i)
            cells.append(f"{float(row['profile']):.4g} ± {float(row['error']):.1g}")
        table.add_row(*cells)
    return table


def _ranked(found: dict[str, Any], figure: Path | None, as_json: bool) -> None:
    import msgspec
    from rich.table import Table

    order = sorted(found, key=lambda word: -found[word].worst)
    if as_json:
        named = [{"mask": word, **msgspec.to_builtins(found[word])} for word in order]
        typer.echo(msgspec.json.format(msgspec.json.encode(named)).decode())
    else:
        table = Table(box=None, padding=(0, 2))
        for column in ("mask", "worst", "at i/N", "first", "last", "recency to", "shape"):
            table.add_column(column, no_wrap=True, justify="left" if column in ("mask", "shape") else "right")
        for word in order:
            f = found[word]
            numbers = (f"{v:.3g}" for v in (f.worst, f.worst_position / f.n, f.first, f.last, f.recency_lost))
            table.add_row(word, *numbers, f.regime)
        screen = console()
        screen.print(table)
        screen.print(f"The worst position is retrieved best with {order[0]}.", soft_wrap=True)
    if figure is not None:
        from pathlines.draw import save_figure
        from pathlines.draw.retrieval_figure import masks_figure

        save_figure(masks_figure({word: found[word] for word in order}), figure)


def _save(path: Path, found: Any, measured: Any) -> None:
    import numpy as np
    import xarray as xr

    from pathlines.foundation.files import write_whole
    from pathlines.store.results import file_bytes

    position = np.arange(1, found.n)
    data = (
        xr.Dataset({"paths": ("position", list(found.profile))}, {"position": position})
        if measured is None
        else measured
    )
    data = data.assign(paths=("position", list(found.profile)))
    if found.closed_form is not None:
        data = data.assign(closed_form=("position", list(found.closed_form)))
    if path.suffix == ".csv":
        write_whole(path, data.to_dataframe().to_csv().encode())
    else:
        write_whole(path, file_bytes(data))
