"""Flows, second part: prompts that share tokens, moved by one transformer to targets that share atoms."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import FastAPI, Request
from msgspec import Meta
from nicegui import ui

from pathlines.draw.figures.transport.three_prompts import Course, course
from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.papers.transport import MEASURE_TO_MEASURE
from pathlines.foundation.setting import Setting, means
from pathlines.view.frames import FORMAT
from pathlines.view.observed import numbers
from pathlines.view.packed import packed_labels, packed_positions
from pathlines.view.site.answers import answer_at
from pathlines.view.site.controls import Range
from pathlines.view.site.elements import box, link, words
from pathlines.view.site.sheet import Sheet, arguments, options, record_of
from pathlines.view.site.shell import shell

LEAD = (
    "One list of layers takes every prompt to its own target (crosses), though they share tokens: attention splits "
    "what is shared, gates move one token at a time past all others, reversed attention joins what the targets share."
)
IN_ATTENTION, IN_A_GATE = 24, 3
"""Frames of a layer of attention, and of a gate."""
PRESETS = {
    "Three prompts": {},
    "Two that share one": {"prompts": "2", "n": "3", "shared": "1"},
    "Five": {"prompts": "5"},
}


class Asked(Setting):
    """Random prompts and targets on S²."""

    prompts: Annotated[int, Meta(ge=2, le=5), means("prompts", "N")] = 3
    n: Annotated[int, Meta(ge=2, le=6), means("tokens of each prompt", "n")] = 4
    shared: Annotated[
        int, Meta(ge=1, le=5), means("tokens that all prompts share, and atoms that all targets share")
    ] = 2
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1), means("seed of everything that is drawn")] = 3


def register(app: FastAPI) -> None:
    """The page and its answers."""
    answer_at(app, "prompts", prepared)
    ui.page("/flows/prompts")(page)


def prepared(asked: dict[str, str]) -> tuple[Any, Any]:
    """The prompts of an address, checked."""
    question = record_of(Asked(), asked)
    if question.shared >= question.n:
        raise ArgumentError(f"Setting `shared` must be less than n = {question.n}, but is {question.shared}.")
    return question, lambda: answer(question)


def answer(question: Asked) -> dict[str, Any]:
    """The course of all prompts, as the player shows it."""
    found = course(question.prompts, question.n, question.shared, question.seed, (IN_ATTENTION, IN_A_GATE))
    own = options(question, Asked())
    said = arguments(question, Asked())
    return {
        "frames": frames(question, found),
        "finding": f"{len(found.pieces)} pieces take {question.prompts} prompts to their targets; the largest distance "
        f"left is W₂ = {found.w2[-1].max():.1g}",
        "command": f"pathlines animate transport/shared-tokens {own}".rstrip(),
        "python": "from pathlines.draw.figures.transport.three_prompts import Prompts, course\n"
        f"s = Prompts({said})\ncourse(s.prompts, s.n, s.shared, s.seed, ({IN_ATTENTION}, {IN_A_GATE})).w2[-1]",
    }


def frames(question: Asked, found: Course) -> dict[str, Any]:
    """Tokens of all prompts, in the colour of their prompt, and their distances."""
    count, size = question.prompts * question.n, len(found.at)
    places = found.tokens.reshape(size, count, 3)
    labels = np.tile(np.repeat(np.arange(question.prompts) * question.n, question.n), (size, 1))
    curves = [
        {"name": f"w2_{k}", "symbol": "W_2", "label": f"prompt {k + 1} to its target", "times": found.at.tolist(),
         "values": numbers(found.w2[:, k]), "scale": "linear"}
        for k in range(question.prompts)
    ]  # fmt: skip
    targets = np.unique(np.round(found.targets.reshape(-1, 3), 9), axis=0)
    return {
        "format": FORMAT, "space": "sphere", "n": count, "components": 3, "times": found.at.tolist(),
        "clock": {"name": "piece", "label": "piece", "scale": "linear"}, **packed_positions(places, True),
        "clusters": packed_labels(labels), "groups": "prompt", "curves": curves,
        "overlays": [{"kind": "points", "points": targets.tolist()}], "title": "Prompts that share tokens",
        "subtitle": f"{question.prompts} prompts of {question.n} tokens", "outcome": "completed", "command": "",
        "python": "", "alt": f"{question.prompts} prompts of {question.n} tokens on the sphere go to their targets.",
    }  # fmt: skip


def page(request: Request) -> None:
    """The page of an address."""
    sheet = Sheet("prompts", Asked(), dict(request.query_params), {"n": Range(2, 6, 1), "shared": Range(1, 5, 1)})
    with shell("Flows", "Prompts that share tokens", "prompts.js", sheet.first), box(classes="play"):
        with sheet.stage("Prompts that share tokens", LEAD, "prompts"):
            box("p", id="finding", classes="finding")
            box(id="player")
        sheet.panel(_panel)
        sheet.again(figures=False)


def _panel(sheet: Sheet) -> None:
    link("← A density made of ReLU pieces", "/flows", "small")
    sheet.presets(PRESETS)
    sheet.group("Prompts", "prompts", "n", "shared", "seed")
    words(MEASURE_TO_MEASURE.citation, "p", "small")
