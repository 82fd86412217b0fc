"""pathlines advise: what an architecture will do to its tokens, and what to change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathlines.cli import advise_more
from pathlines.cli.common import AsJson, Figure, Force, Fresh, Report, Seed, check_outputs, console, ready
from pathlines.cli.generated import Choice, as_choice, with_choices
from pathlines.foundation.errors import ArgumentError, PathlinesError

if TYPE_CHECKING:
    from pathlines.advice import Advice, MeasuredGradients, Simulated
    from pathlines.architecture import Architecture, Reading

WEIGHTS = 1e14
"""Of a transformer that anybody might build."""
LAYER_WORK = 1e9
"""Operations that predictions of a layer take the time of, with all the what-ifs."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    with_choices(app, "advise", advise, changes, "Fields of the architecture, in place of the configuration's")


def changes(command: Any, words: list[str]) -> list[Choice]:
    """The fields of the record, those of its standard deviations as --deviations-NAME."""
    from pathlines.architecture.record import Architecture, Deviations
    from pathlines.foundation.setting import fields

    own = [as_choice(f, None) for f in fields(Architecture) if f.name not in ("deviations", "family", "by_layer")]
    return own + [as_choice(f, None, prefix="deviations.") for f in fields(Deviations)]


def advise(
    source: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CONFIG [CONFIG] | SIX NUMBERS", help="config.json, .toml or folder, or d heads L n mlp std."
        ),
    ] = None,
    written: Annotated[
        str | None, typer.Option("--template", metavar="FAMILY", help="Write a commented .toml of a family and stop.")
    ] = None,
    ids: Annotated[
        Path | None, typer.Option("--ids", metavar="FILE", help="Token ids, separated by spaces or commas.")
    ] = None,
    n: Annotated[
        int | None, typer.Option("--n", help="Tokens n, all different, instead of --ids (default 64).")
    ] = None,
    target_cosine: Annotated[
        float | None, typer.Option("--target-cosine", help="The mean cosine may be at most this …")
    ] = None,
    at_layer: Annotated[int | None, typer.Option("--at-layer", help="… after this layer (default: the last).")] = None,
    confidence: Annotated[
        float, typer.Option("--confidence", help="Share of random starts that have to meet the target.")
    ] = 0.9,
    swept: Annotated[
        list[str] | None,
        typer.Option("--sweep", metavar="NAME=LOW:HIGH", help="Turn a knob, or two, through a range and stop."),
    ] = None,
    without: Annotated[bool, typer.Option("--no-what-if", help="Leave what-ifs and remedies out.")] = False,
    fresh: Fresh = False,
    simulate: Annotated[bool, typer.Option("--simulate", help="Build the random model and compare.")] = False,
    seeds: Annotated[int, typer.Option("--seeds", help="Random models to average over with --simulate.")] = 8,
    seed: Seed = 0,
    report: Report = None,
    figure: Figure = None,
    as_json: AsJson = False,
    force: Force = False,
    **chosen: Any,
) -> None:
    """Predict token similarity against depth from a configuration, without weights, and say what would change it.

    Reads Hugging Face configurations of some eighty kinds (GPT-2, Llama, Qwen, Gemma, OLMo, DeepSeek, Mixtral, gpt-oss,
    BERT, ModernBERT, T5's and BART's encoders, ViT, CLIP, …; others are refused by name with the reason),
    TOML files with the record's own names (width, heads, layers, std, …), or six numbers: width, heads, layers,
    context, perceptron width, std. Prints the mean cosine of pairs of tokens with its spread over seeds, the layers at
    which it reaches 0.5 and 0.9, what causes it and what-ifs; with a target also what meets it in nine of ten random
    starts (--confidence), recipes of the literature first. What was answered before is kept, and comes at once.
    Exit codes can guard a repository: 0 fine (met, or no target), 1 the target is missed, 2 bad input.

    Examples:

    `pathlines advise config.json` — a model's own file, or the folder that holds it.

    `pathlines advise 768 12 12 1024 3072 0.02` — a decoder of GPT-2's kind by six numbers.

    `pathlines advise config.json --target-cosine 0.5 --at-layer 24` — may not be more alike than that.

    `pathlines advise config.json --placement post --deviations-embedding 1` — another architecture.

    `pathlines advise a.json b.json` — two architectures side by side.

    `pathlines advise config.json --sweep residual_scale=0.1:2 --sweep logit_scale=0.5:8:5` — a knob, or two, turned.

    `pathlines advise --template llama > model.toml` — a commented file to change by hand.

    `pathlines advise config.json --simulate --seeds 16 --report advice.html` — put it to the test: the library's own
    modules where torch and transformers are installed, else our chain of random layers.
    """
    ready()
    if written is not None:
        _write_template(written, source)
        return
    if not source:
        raise ArgumentError(WANTED)
    from pathlines.advice import Target
    from pathlines.advice import advise as advised
    from pathlines.foundation.errors import finite_number, positive_integer

    check_outputs(report, figures=(figure,))
    if at_layer is not None and target_cosine is None:
        raise ArgumentError("Option --at-layer needs --target-cosine.")
    positive_integer("seeds", seeds)
    finite_number("confidence", confidence, 0.5, 0.999)

    def asked(reading: Reading) -> tuple[Any, Advice]:
        architecture = reading.architecture
        given = _tokens(architecture, ids, n)
        _check_size(architecture, given, seeds if simulate else 0, force)
        layer = architecture.layers if at_layer is None else at_layer
        target = None if target_cosine is None else Target(target_cosine, layer, confidence)
        return given, advised(reading, given, target, what_if=not without, fresh=fresh)

    if advise_more.two_sources(source):
        _alone("Two configurations", report=report, figure=figure, sweep=swept, simulate=simulate or None)
        both = [_changed(_reading([name]), chosen) for name in source]
        found = [(reading, asked(reading)[1]) for reading in both]
        advise_more.print_both(found, as_json=as_json)
        if any(advice.met is False for _, advice in found):
            raise typer.Exit(1)
        return
    reading = _changed(_reading(source), chosen)
    if swept:
        _alone("Option --sweep", report=report, figure=figure, target_cosine=target_cosine, simulate=simulate or None)
        given = _tokens(reading.architecture, ids, n)
        _check_size(reading.architecture, given, 0, force)
        advise_more.print_sweep(reading, swept, given, as_json=as_json)
        return
    given, advice = asked(reading)
    measured = _simulated(reading, given, advice, seeds, seed, changed=bool(chosen)) if simulate else None
    gradients = _gradients(reading, advice, given, seeds, seed, changed=bool(chosen)) if simulate else None
    tried = advise_more.try_remedies(reading, advice, given, seeds, seed) if simulate and not chosen else []
    if as_json:
        _print_json(reading, advice, measured, gradients, tried)
    else:
        _print(reading, advice, measured, gradients)
        advise_more.print_tried(tried)
    _write(reading, advice, measured, gradients, report, figure, quiet=as_json)
    if advice.met is False:
        raise typer.Exit(1)


def _alone(what: str, **others: Any) -> None:
    """Options that have no meaning beside another."""
    given = [f"--{name.replace('_', '-')}" for name, value in others.items() if value is not None]
    if given:
        raise ArgumentError(f"{what} cannot be combined with {', '.join(given)}.")


WANTED = "Give a config.json, a .toml file, a folder or six numbers; or --template FAMILY to write a file."


def _write_template(name: str, source: list[str] | None) -> None:
    from pathlines.architecture.template import template

    if source:
        raise ArgumentError("Option --template stands alone: it writes a file of the family and reads none.")
    typer.echo(template(name), nl=False)


def _check_size(a: Architecture, ids: Any, seeds: int, force: bool) -> None:
    """Refuse what nobody could build or wait for, by lower bounds of what is computed."""
    import numpy as np

    from pathlines.foundation.bounds import affordable, within

    tokens = float(ids if np.ndim(ids) == 0 else len(ids))
    layer = 4.0 * a.width * a.attention_width + (3.0 if a.gated else 2.0) * a.width * a.mlp_width
    within(f"A transformer of width {a.width} and {a.layers} layers", a.layers * layer, WEIGHTS, "weights", force=force)
    work = a.layers * (LAYER_WORK + tokens**2 + 2 * seeds * tokens * layer)
    memory = 8.0 * (tokens**2 + (layer if seeds else 0))
    affordable(f"Advice on {a.layers} layers and {tokens:g} tokens", memory=memory, operations=work, force=force)


def _reading(source: list[str]) -> Reading:
    from pathlines.architecture import from_numbers, read_architecture

    if len(source) == 1:
        return read_architecture(source[0])
    try:
        numbers = [float(text) for text in source]
    except ValueError:
        words = "width heads layers context perceptron-width std"
        raise ArgumentError(f"Give one file, or six numbers: {words}; but got {' '.join(source)!r}.") from None
    return from_numbers(numbers)


def _changed(reading: Reading, chosen: dict[str, Any]) -> Reading:
    import msgspec

    changes: dict[str, Any] = {}
    for name, value in chosen.items():
        head, dot, tail = name.partition(".")
        if dot:
            changes.setdefault(head, {})[tail] = value
        else:
            changes[name] = value
    architecture = reading.architecture.changed(**changes) if changes else reading.architecture
    return msgspec.structs.replace(reading, architecture=architecture)


def _tokens(architecture: Architecture, file: Path | None, n: int | None) -> Any:
    import numpy as np

    from pathlines.limit.architecture.start import usual_tokens

    if file is None:
        return usual_tokens(architecture) if n is None else n
    if n is not None:
        raise ArgumentError("Give --ids or --n, not both.")
    try:
        words = file.read_text(encoding="utf-8").replace(",", " ").split()
        return np.array([int(word) for word in words])
    except FileNotFoundError:
        raise ArgumentError(f"There is no file {file} with token ids.") from None
    except ValueError:
        raise ArgumentError(f"The file {file} must hold whole numbers, separated by spaces or commas.") from None


def _simulated(reading: Reading, ids: Any, advice: Advice, seeds: int, seed: int, *, changed: bool) -> Simulated:
    """The library's modules of the configuration where they can be built, our own chain of random layers elsewhere."""
    import msgspec

    from pathlines.advice import simulate
    from pathlines.probing.simulate import simulate_module, why_not

    reason = "fields were changed" if changed else why_not(reading.fields, ids)
    if reason is None and reading.fields is not None:
        try:
            return simulate_module(reading.fields, ids, seeds=seeds, seed=seed)
        except (PathlinesError, ValueError, TypeError, AttributeError) as error:  # whatever stops the library's module
            reason = f"the library's module was not understood: {str(error).splitlines()[0][:80]}"
    found = simulate(reading.architecture, ids, layers=len(advice.prediction.mean_cosine) - 1, seeds=seeds, seed=seed)
    return msgspec.structs.replace(found, model=f"{found.model} ({reason})")


def _gradients(
    reading: Reading, advice: Advice, tokens: Any, seeds: int, seed: int, *, changed: bool
) -> MeasuredGradients | None:
    """Autograd on the library's modules where they can be built, else random modules of our own with a reverse pass."""
    from pathlines.advice.gradients import not_formed, simulate_gradients
    from pathlines.probing.simulate import why_not

    if advice.gradients is None:
        return None
    if not changed and reading.fields is not None and why_not(reading.fields, tokens) is None:
        from pathlines.probing.module_gradients import module_gradients

        try:
            return module_gradients(reading.fields, tokens, seeds=seeds, seed=seed)
        except (PathlinesError, ValueError, TypeError, AttributeError, KeyError) as error:
            typer.echo(f"pathlines: warning: no autograd of the library's module: {str(error)[:80]}", err=True)
    if advice.architecture.patch_inputs or not_formed(advice.architecture) is not None:
        return None
    return simulate_gradients(advice.architecture, tokens, seeds=seeds, seed=seed)


def _print(reading: Reading, advice: Advice, measured: Simulated | None, gradients: MeasuredGradients | None) -> None:
    import numpy as np
    from rich.table import Table

    from pathlines.advice.plain import causes
    from pathlines.advice.terminal import curve_lines

    screen, a, found = console(), advice.architecture, advice.prediction
    if reading.unknown:
        typer.echo(f"pathlines: warning: not understood in {reading.source}: {', '.join(reading.unknown)}.", err=True)
    screen.print(
        f"{reading.source}: {a.family}, d = {a.width}, {a.heads} heads, {a.layers} layers, {a.placement}-norm, "
        f"{advice.tokens} tokens"
    )
    for sentence in advice.summary:
        screen.print(sentence, style="bold")
    screen.print(advice.verdict)
    key = "● predicted mean cosine, │ ± s.d. over seeds" + (", ○ random models" if measured else "")
    screen.print(key)
    for line in curve_lines(found.mean_cosine, found.spread, None if measured is None else np.array(measured.mean)):
        screen.print(line)
    if measured is not None:
        largest, mean = measured.errors(found.mean_cosine)
        text = f"against {measured.seeds} random models, {measured.model}: largest error {largest:.3f}, mean {mean:.3f}"
        screen.print(f"{text}; their s.d. at the last layer {measured.spread[-1]:.3f}")
    depths = ", ".join(f"{level:g}: {'–' if layer is None else layer}" for level, layer in advice.collapse.items())
    screen.print(f"first layer with mean cosine ≥ {depths}   (– not within {4 * a.layers} layers)")
    if advice.whole_context is not None:
        screen.print(f"with all {a.context} tokens of the context: {advice.whole_context:.3f} (simplex map)")
    screen.print(causes(advice))
    screen.print(
        f"last layer: effective rank {found.effective_rank[-1]:.1f}, RMS {found.residual_rms[0]:.3g} → "
        f"{found.residual_rms[-1]:.3g}, entropy of attention {found.attention_entropy[-1]:.2f} nats"
    )
    if advice.gradients is not None:
        from pathlines.advice import gradient_lines

        for line in gradient_lines(advice.gradients, gradients):
            screen.print(f"gradients: {line}")
    if advice.remedies:
        advise_more.print_remedies(advice.remedies)
    if advice.outcomes:
        table = Table(box=None, padding=(0, 2), title="what if", title_justify="left")
        for column in ("change", f"cosine, layer {advice.layer}", "difference"):
            table.add_column(column, justify="left" if column == "change" else "right")
        for outcome in advice.outcomes:
            table.add_row(outcome.name, f"{outcome.cosine:.3f}", f"{outcome.change:+.3f}")
        screen.print(table)
    screen.print("theory: " + "; ".join(advice.regime) + ".", style="dim")
    screen.print("assumes: " + "; ".join(advice.assumptions) + ".")


def _print_json(
    reading: Reading, advice: Advice, measured: Simulated | None, gradients: MeasuredGradients | None, tried: list[Any]
) -> None:
    import msgspec

    document = advice.as_dict() | {
        "source": reading.source,
        "irrelevant_fields": reading.irrelevant,
        "assumed_fields": reading.assumed,
        "unknown_fields": reading.unknown,
    }
    if measured is not None:
        largest, mean = measured.errors(advice.prediction.mean_cosine)
        errors = {"largest_error": largest, "mean_error": mean}
        document |= {"simulated": msgspec.to_builtins(measured) | errors}
    if gradients is not None and advice.gradients is not None:
        errors = gradients.errors(advice.gradients)
        document |= {"simulated_gradients": msgspec.to_builtins(gradients) | {"median_errors": errors}}
    if tried:
        document["remedies_tried"] = [msgspec.to_builtins(one) | {"met": one.met} for one in tried]
    typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())


def _write(
    reading: Reading, advice: Advice, measured: Simulated | None, gradients: MeasuredGradients | None,
    report: Path | None, figure: Path | None, quiet: bool,
) -> None:  # fmt: skip
    if report is not None:
        from pathlines.advice.page import write_page

        write_page(report, reading, advice, measured, gradients)
    if figure is not None:
        from pathlines.advice.figure import advice_figure
        from pathlines.draw import save_figure

        save_figure(advice_figure(advice, measured, gradients), figure)
    for kind, path in (("report", report), ("figure", figure)):
        if path is not None and not quiet:
            console().print(f"{kind}: {path.resolve()}", soft_wrap=True)
