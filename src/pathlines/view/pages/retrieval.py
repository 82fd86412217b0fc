"""Retrieval: what the end of a prompt remembers of every position, lost in the middle."""

from __future__ import annotations

import math
from typing import Annotated, Any

import msgspec
import numpy as np
import xarray as xr
from fastapi import FastAPI, Request
from nicegui import ui

from pathlines.foundation.setting import means
from pathlines.limit.causal.forecast import RetrievalForecast
from pathlines.sweep.recall import Recall
from pathlines.view.observed import numbers
from pathlines.view.site.answers import answer_at
from pathlines.view.site.elements import box, words
from pathlines.view.site.sheet import Sheet, options, record_of
from pathlines.view.site.shell import shell

MOST_WORK = 4e9
"""Operations of one answer: some ten seconds."""
MOST_DRAWN = 500
"""Positions of a curve: more than that a screen cannot show."""
LEAD = (
    "How much of the token at each position of a prompt is left in the last one, beyond chance. Theory is a sum over "
    "all paths of attention; a simulation follows random prompts and their derivative."
)


class Asked(Recall):
    """The question of `pathlines retrieval`, and whether to put it to random prompts."""

    simulate: Annotated[bool, means("measure it on random prompts")] = False


SIMULATED = ("prompts", "seed", "simulate")
PRESETS = {
    "Lost in the middle": {},
    "Recent tokens win": {"depth": "0.3"},
    "Recency is lost": {"depth": "5"},
    "A steeper slope": {"slope": "6", "depth": "2"},
    "A window": {"mask": "window:64"},
    "Sinks and a window": {"mask": "sink:4:64"},
}


def register(app: FastAPI) -> None:
    """The page and its answers."""
    answer_at(app, "retrieval", prepared)
    ui.page("/retrieval")(page)


def page(request: Request) -> None:
    """The page of an address."""
    sheet = Sheet("retrieval", Asked(), dict(request.query_params))
    with shell("Retrieval", "Lost in the middle", "retrieval.js", sheet.first), box(classes="play"):
        with sheet.stage("Lost in the middle", LEAD, "profile"):
            box("p", id="regime", classes="finding")
            box(id="profile")
            box(id="said", classes="said")
        sheet.panel(_panel)
        sheet.again()


def _panel(sheet: Sheet) -> None:
    sheet.presets(PRESETS)
    sheet.group("Decoder", "beta", "slope", "depth", "mask", "layers", "softmax")
    sheet.group("Prompt", "n", "vocabulary")
    sheet.group("Simulation", *SIMULATED)
    words("A mask: causal, alibi:2, window:64, sink:4:64 or strided:8.", "p", "small")


def prepared(asked: dict[str, str]) -> tuple[Any, Any]:
    """The question of an address, and what answers it."""
    question = record_of(Asked(), asked)
    question.check(simulate=question.simulate, most=MOST_WORK)
    if not question.simulate:
        usual = {name: getattr(Recall(), name) for name in ("prompts", "seed")}
        question = msgspec.structs.replace(question, **usual)
    return question, lambda: answer(question)


def answer(question: Asked) -> dict[str, Any]:
    """Regime, sentences and curves."""
    found = question.forecast()
    measured = question.measured() if question.simulate else None
    return {
        "regime": _regime(found),
        "sentences": [*found.sentences, *_cautions(measured)],
        "figure": _figure(question, found, measured),
        "command": f"pathlines retrieval {_own(question)}{' --simulate' if question.simulate else ''}".replace(
            "  ", " "
        ),
        "python": python(question),
        "profile": numbers(found.profile),
    }


def _own(question: Asked) -> str:
    names = tuple(n for n in Recall.__struct_fields__ if question.simulate or n not in SIMULATED)
    return options(question, Asked(), names)


def _regime(found: RetrievalForecast) -> str:
    lost = {math.inf: "recency is never lost", 0.0: "recent tokens are never best"}
    depth = lost.get(found.recency_lost, f"recency is lost beyond depth {found.recency_lost:.4g}")
    shape = {"U": "U-shaped"}.get(found.regime, found.regime)
    return f"{shape[0].upper()}{shape[1:]}: {depth}"


def _cautions(measured: xr.Dataset | None) -> list[str]:
    warning = "" if measured is None else str(measured.attrs["warning"])
    return [f"Measured with a warning: {warning}."] if warning else []


def _figure(question: Asked, found: RetrievalForecast, measured: xr.Dataset | None) -> dict[str, Any]:
    kept = np.unique(np.linspace(0, found.n - 2, min(found.n - 1, MOST_DRAWN)).astype(int))
    kept = np.union1d(kept, [found.worst_position - 1])
    x = ((kept + 1) / found.n).tolist()
    lines: list[dict[str, Any]] = []
    if measured is not None:
        value, error = (measured[name].values[kept] for name in ("profile", "error"))
        band = {"lower": numbers(value - 2 * error), "upper": numbers(value + 2 * error)}
        lines.append(
            {"label": f"{question.prompts:,} random prompts ± 2 s.e.", "y": numbers(value), "colour": 0, **band}
        )
    paths = numbers(np.asarray(found.profile)[kept])
    lines.append({"label": f"theory, N = {found.n:,}", "y": paths, "kind": "dashed"})
    if found.closed_form is not None:
        closed = numbers(np.asarray(found.closed_form)[kept])
        lines.append({"label": "closed form, N → ∞", "y": closed, "kind": "dotted", "colour": 1})
    worst = {"x": found.worst_position / found.n, "y": found.worst, "label": "worst"}
    return {
        "title": "What the last token keeps of each position",
        "symbol": "S",
        "alt": f"Retrieval profile, {found.regime}; the worst position is {found.worst_position} of {found.n}.",
        "x": {"label": "position of the source, i/N", "symbol": "i/N"},
        "lines": [{"x": x, **line} for line in lines],
        "points": [worst],
        "height": 430,
    }


def python(question: Asked) -> str:
    """Lines that give the same numbers."""
    names = (
        Recall.__struct_fields__ if question.simulate else [n for n in Recall.__struct_fields__ if n not in SIMULATED]
    )
    said = ", ".join(f"{n}={getattr(question, n)!r}" for n in names if getattr(question, n) != getattr(Recall(), n))
    lines = [
        "import jax, pathlines as pl",
        'jax.config.update("jax_enable_x64", True)',
        f"asked = pl.sweep.Recall({said})",
    ]
    lines.append("profile = asked.forecast().profile")
    return "\n".join([*lines, "measured = asked.measured()"] if question.simulate else lines)
