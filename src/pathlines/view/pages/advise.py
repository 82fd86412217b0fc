"""Advise: what an architecture will do to its tokens, with its knobs to turn."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import msgspec
import numpy as np
from fastapi import FastAPI, Request, Response
from msgspec import Meta
from nicegui import ui

from pathlines.advice import Advice, Target
from pathlines.advice import advise as advised
from pathlines.advice.knobs import KNOBS
from pathlines.architecture import Architecture, Deviations, Reading, from_numbers
from pathlines.architecture.read import read_text
from pathlines.foundation.errors import ArgumentError, PathlinesError
from pathlines.foundation.setting import Setting, means
from pathlines.limit.architecture.predict import predict
from pathlines.limit.architecture.prediction import CAUSES, Prediction
from pathlines.limit.architecture.start import usual_tokens
from pathlines.view.observed import numbers
from pathlines.view.site.answers import answer_at, said
from pathlines.view.site.elements import box, words
from pathlines.view.site.sheet import Sheet, record_of
from pathlines.view.site.shell import shell
from pathlines.view.site.state import LONGEST_VALUE

LEAD = (
    "How alike the tokens of an untrained model become layer by layer, from its configuration alone: drop a "
    "config.json here, or paste one. What you turn stands beside the curves."
)
MOST_BYTES = 1_000_000
"""Of a configuration; real ones have some thousand."""
MOST_SECONDS = 8.0
"""What a prediction may be expected to take."""
LAYER_SECONDS = 3e-3
"""Of a layer of 64 tokens, with spread; it grows with the square of their number."""
LAYERS = {"label": "layer", "symbol": "layer"}
GPT2 = (768, 12, 12, 1024, 3072, 0.02)
Factor = Annotated[float, Meta(ge=-6, le=6)]


class Asked(Setting):
    """An architecture as it was read, and what is turned: each knob multiplies by two to the power of its value."""

    record: Annotated[str, Meta(max_length=LONGEST_VALUE), means("the architecture as it was read")] = ""
    n: Annotated[int, Meta(ge=2, le=1024), means("different tokens of the prompt", "n")] | None = None
    layers: Annotated[int, Meta(ge=1, le=1000), means("layers, in place of the configuration's", "L")] | None = None
    embedding: Annotated[Factor, means("std of embeddings")] = 0.0
    matrices: Annotated[Factor, means("init std of all matrices")] = 0.0
    projections: Annotated[Factor, means("std of output projections")] = 0.0
    branches: Annotated[Factor, means("residual scale of both branches")] = 0.0
    attention: Annotated[Factor, means("residual scale of attention")] = 0.0
    perceptron: Annotated[Factor, means("residual scale of the perceptron")] = 0.0
    logits: Annotated[Factor, means("logit scale")] = 0.0
    target: Annotated[float, Meta(ge=-1, le=1), means("mean cosine that may not be exceeded")] | None = None
    at_layer: Annotated[int, Meta(ge=1, le=1000), means("after this layer", "ℓ")] | None = None


TURNED = ("embedding", "matrices", "projections", "branches", "attention", "perceptron", "logits")
"""The knobs of the advice, in its order."""
PRESETS = {
    "GPT-2 small": {},
    "48 layers": {"layers": "48"},
    "Unit embeddings": {"embedding": "5.64"},
    "Residuals ÷ 4": {"branches": "-2"},
    "Stay below 0.3": {"target": "0.3"},
}


def register(app: FastAPI) -> None:
    """The page and its answers."""
    answer_at(app, "advise", prepared)
    answer_at(app, "advise-more", prepared_more)
    app.add_api_route("/data/config", config, methods=["POST"])
    ui.page("/advise")(page)


def page(request: Request) -> None:
    """The page of an address."""
    sheet = Sheet("advise", Asked(), dict(request.query_params))
    with shell("Advise", "Advise", "advise.js", sheet.first), box(classes="play"):
        with sheet.stage("What depth will do to the tokens of a model", LEAD, "advice"):
            box("p", id="finding", classes="finding")
            box("p", id="remedy", classes="lead")
            for name in ("cosine", "causes", "stream"):
                box(id=name)
            box(id="more")
        sheet.panel(_panel)
        sheet.again()

    def read(event: Any) -> None:
        sheet.choose({"record": str(event.args)[:LONGEST_VALUE]})

    ui.on("record", read)


def _panel(sheet: Sheet) -> None:
    sheet.presets(PRESETS)
    with box("fieldset"):
        words("Architecture", "legend")
        field = box("textarea", id="config", rows="3", spellcheck="false", aria_label="configuration",
                    placeholder="Paste a config.json, TOML or six numbers, or drop a file on the page.")  # fmt: skip
        field.on("change", js_handler="(e) => window.pathlines.read(e.target.value)")
        chooser = box(
            "input", type="file", id="file", accept=".json,.toml,.txt", aria_label="choose a configuration file"
        )
        chooser.on("change", js_handler="(e) => window.pathlines.readFile(e.target.files[0])")
        words("", "p", "small", id="config-read", role="status")
        words("", "p", "error", id="config-error", role="alert")
    sheet.group("Prompt and depth", "n", "layers")
    sheet.group("Knobs, in powers of two", *TURNED)
    sheet.group("Target", "target", "at_layer")


def architecture_of(record: str) -> Architecture:
    """The architecture of an address: GPT-2's numbers where there is none."""
    if not record:
        return from_numbers(GPT2).architecture
    try:
        return msgspec.json.decode(record, type=Architecture)
    except (msgspec.DecodeError, PathlinesError, RecursionError) as error:
        raise ArgumentError(f"The architecture of this address is none: {' '.join(str(error).split())[:200]}") from None


def record_text(architecture: Architecture) -> str:
    """The same as an address holds it: what differs from the usual."""
    usual = {f.name: f.default for f in msgspec.structs.fields(Architecture)}
    own = {
        k: v
        for k, v in msgspec.to_builtins(architecture).items()
        if v != usual.get(k) and not (k == "by_layer" and not v)
    }
    text = msgspec.json.encode(own).decode()
    if len(text) > LONGEST_VALUE:
        raise ArgumentError(f"Its layers differ in more ways than an address can hold ({LONGEST_VALUE} letters).")
    return text


def turned(asked: Asked) -> Architecture:
    """The architecture with its knobs turned."""
    found = architecture_of(asked.record)
    if asked.layers is not None:
        found = found.changed(layers=asked.layers)
    for knob, name in zip(KNOBS, TURNED, strict=True):
        if getattr(asked, name):
            found = knob.turn(found, 2.0 ** getattr(asked, name))
    return found


def _checked(asked: dict[str, str]) -> tuple[Asked, Architecture, int]:
    question = record_of(Asked(), asked)
    architecture = turned(question)
    tokens = usual_tokens(architecture) if question.n is None else question.n
    depth = max(architecture.layers, question.at_layer or 0)
    seconds = 5 * depth * LAYER_SECONDS * (tokens / 64) ** 2
    if seconds > MOST_SECONDS:
        raise ArgumentError(
            f"{depth} layers of {tokens} tokens would take some {seconds:.2g} s, but a page waits {MOST_SECONDS:g} s; "
            "`pathlines advise` has no such limit."
        )
    return question, architecture, tokens


def prepared(asked: dict[str, str]) -> tuple[Any, Any]:
    """Curves of an address."""
    question, architecture, tokens = _checked(asked)
    return question, lambda: answer(question, architecture, tokens)


def prepared_more(asked: dict[str, str]) -> tuple[Any, Any]:
    """Words, what-ifs and the smallest change of an address."""
    question, architecture, tokens = _checked(asked)
    return question, lambda: more(question, architecture, tokens)


def answer(question: Asked, architecture: Architecture, tokens: int) -> dict[str, Any]:
    """The curves, and the lines that give them again."""
    depth = max(architecture.layers, question.at_layer or 0)
    found = predict(architecture, tokens, layers=depth)
    before = architecture_of(question.record)
    usual = None if before == architecture else predict(before, tokens, spread=False)
    return {
        "cosine": _cosine(question, architecture, found, usual),
        "causes": _causes(found),
        "stream": _stream(found),
        "mean_cosine": numbers(found.mean_cosine),
        "command": command(question, architecture, tokens),
        "python": python(question, architecture, tokens),
    }


def _cosine(question: Asked, a: Architecture, found: Prediction, usual: Prediction | None) -> dict[str, Any]:
    layers = list(range(len(found.mean_cosine)))
    lower, upper = (numbers(np.clip(found.mean_cosine + sign * found.spread, -1, 1)) for sign in (-1, 1))
    line = {"label": "predicted ± s.d. over seeds", "x": layers, "y": numbers(found.mean_cosine), "colour": 0}
    lines: list[dict[str, Any]] = [line | {"lower": lower, "upper": upper}]
    if usual is not None:
        y = numbers(usual.mean_cosine)
        lines.append({"label": "as configured", "x": list(range(len(y))), "y": y, "kind": "dotted"})
    last = float(found.mean_cosine[-1])
    level = {} if question.target is None else {"level": {"at": question.target, "label": "target"}}
    low = min(0.0, float(found.mean_cosine.min()))
    return {
        "title": "Mean cosine of pairs of tokens", "alt": f"Mean cosine against layers, {last:.2f} after the last one.",
        "x": LAYERS, "y": {"low": low, "high": 1.02}, "lines": lines, "height": 330, **level,
    }  # fmt: skip


def _causes(found: Prediction) -> dict[str, Any]:
    totals = np.cumsum(found.causes, axis=0)
    areas = [
        {"label": c, "values": numbers(totals[:, k]), "colour": k} for k, c in enumerate(CAUSES) if np.any(totals[:, k])
    ]
    layers = list(range(len(totals)))
    total = {"label": "their sum", "x": layers, "y": numbers(totals.sum(axis=1))}
    return {
        "title": "Where it comes from: contributions that add up to it", "alt": "Contributions of each cause, stacked.",
        "x": LAYERS, "lines": [total],
        "stack": {"x": layers, "areas": areas}, "height": 270,
    }  # fmt: skip


def _stream(found: Prediction) -> dict[str, Any]:
    x = list(range(len(found.effective_rank)))
    rank = {"label": "effective rank", "x": x, "y": numbers(found.effective_rank), "colour": 2}
    size = {"label": "root mean square of the stream", "x": x, "y": numbers(found.residual_rms), "colour": 1}
    entropy = {
        "label": "e to the entropy of attention",
        "x": x[:-1],
        "y": numbers(np.exp(found.attention_entropy)),
        "colour": 3,
    }
    return {
        "title": "Rank, size, attention", "alt": "Effective rank, root mean square and width of attention over layers.",
        "x": LAYERS, "y": {"scale": "log"}, "lines": [rank, size, entropy], "height": 270,
    }  # fmt: skip


def more(question: Asked, architecture: Architecture, tokens: int) -> dict[str, Any]:
    """What `pathlines advise` says."""
    layer = question.at_layer or architecture.layers
    target = None if question.target is None else Target(question.target, layer)
    found = advised(architecture, tokens, target)
    return {
        "finding": found.summary[0],
        "remedy": found.summary[1],
        "met": found.met,
        "verdict": found.verdict,
        "changes": [[c.knob, c.factor, c.cosine, c.slope] for c in found.changes],
        "outcomes": [[o.name, o.cosine, o.change] for o in found.outcomes],
        "layer": found.layer,
        "regime": list(found.regime),
        "collapse": _collapse(found),
        "assumptions": list(found.assumptions),
    }


def _collapse(found: Advice) -> str:
    beyond = f"not within {4 * found.architecture.layers} layers"
    parts = (f"{level:g} {f'at layer {at}' if at is not None else beyond}" for level, at in found.collapse.items())
    return f"The mean cosine reaches {', '.join(parts)}."


async def config(request: Request) -> Response:
    """The architecture of a text that was pasted or dropped, as an address holds it."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            break
    return await said(lambda: _read(body))


async def _read(body: bytes) -> bytes:
    if len(body) > MOST_BYTES:
        raise ArgumentError(f"A configuration may have {MOST_BYTES // 1000} kB; this one has more.")
    try:
        reading: Reading = read_text(body.decode("utf-8-sig"), "This configuration")
    except UnicodeDecodeError:
        raise ArgumentError("A configuration must be text.") from None
    a = reading.architecture
    read = f"{a.family}: width {a.width}, {a.heads} heads, {a.layers} layers, {a.placement}-norm"
    unknown = f"Not understood and left out: {', '.join(reading.unknown)}." if reading.unknown else ""
    return msgspec.json.encode({"record": record_text(a), "read": read, "unknown": unknown[:500]})


def _six(a: Architecture) -> tuple[float, ...]:
    std = a.deviations.query
    return (a.width, a.heads, a.layers, a.context, max(a.mlp_width, 1), std if std > 0 else 0.02)


def command(question: Asked, a: Architecture, tokens: int) -> str:
    """A line for a shell: six numbers, and every field in which the architecture differs from what they mean."""
    if a.by_layer:
        return "pathlines advise config.json   # its layers differ: give the file itself"
    usual = from_numbers(_six(a)).architecture
    parts = [f"{v:g}" if float(v).is_integer() else repr(v) for v in _six(a)]
    for prefix, own, theirs in (("", a, usual), ("deviations-", a.deviations, usual.deviations)):
        for name in own.__struct_fields__:
            value = getattr(own, name)
            if name in ("deviations", "family", "by_layer") or value == getattr(theirs, name):
                continue
            flag = f"--{prefix}{name.replace('_', '-')}"
            parts += ([flag] if value else [f"--no-{flag[2:]}"]) if isinstance(value, bool) else [flag, str(value)]
    parts += ["--n", str(tokens)]
    if question.target is not None:
        parts += ["--target-cosine", f"{question.target:g}", "--at-layer", str(question.at_layer or a.layers)]
    return shlex.join(["pathlines", "advise", *parts])


def python(question: Asked, a: Architecture, tokens: int) -> str:
    """Lines of Python: the same numbers."""
    usual = {f.name: f.default for f in msgspec.structs.fields(Architecture)}
    own = {n: getattr(a, n) for n in a.__struct_fields__ if n not in ("deviations", "by_layer")}
    said = [f"{n}={v!r}" for n, v in own.items() if v != usual[n]] + (
        [f"by_layer={a.by_layer!r}"] if a.by_layer else []
    )
    spread = ", ".join(f"{n}={getattr(a.deviations, n)!r}" for n in Deviations.__struct_fields__)
    lines = ["import pathlines as pl", f"spread = pl.architecture.Deviations({spread})"]
    lines.append(f"model = pl.architecture.Architecture({', '.join(said)}, deviations=spread)")
    target = (
        "" if question.target is None else f", pl.advice.Target({question.target!r}, {question.at_layer or a.layers})"
    )
    return "\n".join(
        [*lines, f"found = pl.advise(model, {tokens}{target})", "found.prediction.mean_cosine, found.changes"]
    )
