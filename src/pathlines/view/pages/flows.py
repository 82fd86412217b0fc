"""Flows: ReLU pieces put together by hand, with the density that they carry, exactly."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import msgspec
import numpy as np
from fastapi import FastAPI, Request
from msgspec import Meta
from nicegui import ui

from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.setting import Setting, means
from pathlines.foundation.typeset import as_html
from pathlines.transport.euclid.schedule import EuclideanSchedule
from pathlines.view.observed import numbers
from pathlines.view.site.answers import answer_at
from pathlines.view.site.controls import Controls, Range
from pathlines.view.site.elements import box, button, link, words
from pathlines.view.site.sheet import Sheet, record_of, with_word
from pathlines.view.site.shell import shell

LEAD = (
    "Each piece moves a half-space, x' = w (a·x + b)₊ for a time t, and leaves the rest where it is. Pieces in a row "
    "carry a Gaussian to a density that is known exactly: no solver, no training."
)
MOST_PIECES = 40
FARTHEST = 50.0
"""Largest number of a piece."""
REACH = 4.5
"""How far to each side the densities are drawn."""
ALONG, ACROSS = 481, 121
"""Points of a line, and of each side of a map."""
DOTS = 400
ROW = {1: "one row w, a, b, t for each piece", 2: "one row w₁, w₂, a₁, a₂, b, t for each piece"}
START = {1: ((1.0, 1.0, 0.0, 1.0),), 2: ((0.0, 1.5, 1.0, 0.0, 0.0, 1.0),)}
BUMPS = ((2.0, 1.0, 0.0, 0.5), (-2.0, -1.0, 0.0, 0.5), (-3.0, 1.0, -1.2, 0.5), (3.0, -1.0, -1.2, 0.5))
Number = Annotated[float, Meta(ge=-FARTHEST, le=FARTHEST)]


class Asked(Setting):
    """Pieces as rows of numbers, the one that is edited, and how many of them have acted."""

    d: Annotated[int, Meta(ge=1, le=2), means("dimension", "d")] = 1
    pieces: Annotated[tuple[tuple[float, ...], ...], Meta(max_length=MOST_PIECES), means("pieces")] = BUMPS
    piece: Annotated[int, Meta(ge=1, le=MOST_PIECES), means("the piece that is edited")] = 1
    acted: Annotated[float, Meta(ge=0, le=MOST_PIECES), means("pieces that have acted")] | None = None
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1), means("seed of the points")] = 0


class OnLine(Setting):
    """A piece of the line."""

    w: Annotated[Number, means("where points go", "w")] = 1.0
    a: Annotated[Number, means("which side: the sign of a", "a")] = 1.0
    b: Annotated[Number, means("where it begins: x = −b/a", "b")] = 0.0
    t: Annotated[float, Meta(ge=0, le=FARTHEST), means("for how long", "t")] = 1.0


class InPlane(Setting):
    """A piece of the plane."""

    w1: Annotated[Number, means("where points go, first coordinate", "w₁")] = 0.0
    w2: Annotated[Number, means("where points go, second coordinate", "w₂")] = 1.0
    a1: Annotated[Number, means("which half-plane, first coordinate", "a₁")] = 1.0
    a2: Annotated[Number, means("which half-plane, second coordinate", "a₂")] = 0.0
    b: Annotated[Number, means("where it begins", "b")] = 0.0
    t: Annotated[float, Meta(ge=0, le=FARTHEST), means("for how long", "t")] = 1.0


PIECES: dict[int, type[Setting]] = {1: OnLine, 2: InPlane}
PRESETS = {
    "Two bumps": {},
    "One piece": {"pieces": "[[1.5,1,0,0.6]]"},
    "A step": {"pieces": "[[-3,1,-0.5,0.5]]"},
    "A shear": {"d": "2", "pieces": "[[0,1.5,1,0,0,1]]"},
    "A bird": {"d": "2", "pieces": "[[0,1.4,1,0,0,1],[0,1.4,-1,0,0,1],[0,-1,0,1,-1,0.6]]"},
    "Four corners": {"d": "2", "pieces": "[[2,0,1,0,0,0.5],[-2,0,-1,0,0,0.5],[0,2,0,1,0,0.5],[0,-2,0,-1,0,0.5]]"},
}


def register(app: FastAPI) -> None:
    """The page and its answers."""
    answer_at(app, "flows", prepared)
    ui.page("/flows")(page)


def schedule_of(asked: Asked) -> EuclideanSchedule:
    """The pieces that have acted, the last of them in part."""
    if not asked.pieces:
        return EuclideanSchedule.empty(asked.d)
    width = 2 * asked.d + 2
    for k, row in enumerate(asked.pieces):
        if len(row) != width or not all(abs(v) <= FARTHEST for v in row):
            raise ArgumentError(
                f"Piece {k + 1} must be {width} numbers up to {FARTHEST:g} in d = {asked.d}: {ROW[asked.d]}."
            )
    table = np.array(asked.pieces, float)
    d, acted = asked.d, len(table) if asked.acted is None else min(asked.acted, len(table))
    share = np.clip(acted - np.arange(len(table)), 0.0, 1.0)
    return EuclideanSchedule(table[:, :d], table[:, d : 2 * d], table[:, -2], table[:, -1] * share)


def prepared(asked: dict[str, str]) -> tuple[Any, Any]:
    """The pieces of an address, checked."""
    question = record_of(Asked(), asked)
    flow = schedule_of(question)
    usual = msgspec.structs.replace(question, piece=1)
    return usual, lambda: answer(question, flow)


def answer(question: Asked, flow: EuclideanSchedule) -> dict[str, Any]:
    """The density, exactly, with points that were drawn from it."""
    figures = _line(question, flow) if question.d == 1 else _plane(question, flow)
    bound = flow.log_lipschitz()
    pieces = f"{flow.count} piece{'s' * (flow.count != 1)}, {flow.switches} switch{'es' * (flow.switches != 1)}"
    finding = as_html(f"{pieces}; the map and its inverse stretch by at most e^{{{bound:.3g}}}")
    return {**figures, "finding": finding, "command": command(question, flow), "python": python(question, flow)}


def _line(question: Asked, flow: EuclideanSchedule) -> dict[str, Any]:
    x = np.linspace(-REACH, REACH, ALONG)
    draws = np.sort(flow.sample(4000, question.seed)[:, 0])
    counts, edges = np.histogram(draws, bins=60, range=(-REACH, REACH))
    seen = counts / (len(draws) * (edges[1] - edges[0]))
    middles = (edges[1:] + edges[:-1]) / 2
    exact = np.exp(flow.log_prob(x[:, None]))
    base = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    moved = flow.forward(x[:, None])[0][:, 0]
    density = {
        "title": "Density", "symbol": "ρ", "alt": "The density that the pieces carry the Gaussian to.", "height": 380,
        "x": {"label": "x", "symbol": "x"}, "y": {"low": 0},
        "lines": [
            {"label": "exact", "x": numbers(x), "y": numbers(exact), "colour": 0},
            {"label": "Gaussian before", "x": numbers(x), "y": numbers(base), "kind": "dashed"},
            {"label": "4,000 points", "x": numbers(middles), "y": numbers(seen), "kind": "points", "colour": 1},
        ],
    }  # fmt: skip
    mapped = {
        "title": "The map", "symbol": "T", "alt": "Where each point goes.", "height": 260,
        "x": {"label": "x", "symbol": "x"},
        "lines": [
            {"label": "T(x)", "x": numbers(x), "y": numbers(moved), "colour": 0},
            {"label": "x", "x": numbers(x), "y": numbers(x), "kind": "dotted"},
        ],
    }  # fmt: skip
    return {"density": density, "map": mapped}


def _plane(question: Asked, flow: EuclideanSchedule) -> dict[str, Any]:
    side = np.linspace(-REACH, REACH, ACROSS)
    u, v = np.meshgrid(side, side)
    exact = np.exp(flow.log_prob(np.column_stack([u.ravel(), v.ravel()]))).reshape(ACROSS, ACROSS)
    axis = {"values": [float(f"{x:.6g}") for x in side]}
    density = {
        "title": "Density, exactly, with points drawn from it", "alt": "The density as a map of colours.", "label": "ρ",
        "x": {"label": "x_1", "symbol": "x₁", **axis}, "y": {"label": "x_2", "symbol": "x₂", **axis}, "square": True,
        "values": [[float(f"{value:.4g}") for value in row] for row in exact],
        "dots": [[float(f"{c:.4g}") for c in point] for point in flow.sample(DOTS, question.seed)],
        "lines": [edge for k, row in enumerate(question.pieces) if (edge := _edge(k, row))],
    }  # fmt: skip
    return {"density": density, "map": None}


def _edge(number: int, row: tuple[float, ...]) -> dict[str, Any] | None:
    """The line at which a piece begins, as far as it is drawn."""
    a, b = np.array(row[2:4]), row[4]
    length = float(a @ a)
    if not length:
        return None
    foot, along = -b * a / length, np.array([-a[1], a[0]]) / np.sqrt(length)
    ends = [(foot + s * 4 * REACH * along).tolist() for s in (-1, 1)]
    return {"points": ends, "label": f"piece {number + 1} begins here"}


def command(question: Asked, flow: EuclideanSchedule) -> str:
    """Lines for a shell: points from the same flow."""
    sample = f"pathlines transport sample flow.json -n 1000 --seed {question.seed}"
    return f"echo {shlex.quote(flow.to_json())} > flow.json\n{sample}"


def python(question: Asked, flow: EuclideanSchedule) -> str:
    """Lines of Python: the same numbers."""
    parts = ", ".join(f"{name}={getattr(flow, name).tolist()}" for name in "wabt")
    made = f"flow = pl.EuclideanSchedule({parts})" if flow.count else f"flow = pl.EuclideanSchedule.empty({question.d})"
    at = "0.0" if question.d == 1 else "0.0, 0.0"
    return f"import pathlines as pl\n{made}\nflow.log_prob([[{at}]]), flow.sample(1000, seed={question.seed})"


def page(request: Request) -> None:
    """The page of an address."""
    Editor(dict(request.query_params))


class Editor:
    """One person's pieces."""

    def __init__(self, asked: dict[str, str]) -> None:
        self.sheet = Sheet("flows", Asked(), asked)
        with shell("Flows", "Flows of ReLU pieces", "flows.js", self.sheet.first), box(classes="play"):
            with self.sheet.stage("A density made of ReLU pieces", LEAD, "density"):
                box("p", id="finding", classes="finding")
                box(id="density")
                box(id="map")
            self.panel = box("aside", "panel", aria_label="settings")
            with self.panel:
                self._panel()
            self.sheet.again()
        self.sheet.rebuild = self.rebuild

    @property
    def asked(self) -> Asked:
        """What is set now."""
        assert isinstance(self.sheet.record, Asked)
        return self.sheet.record

    def rebuild(self) -> None:
        """The fields anew, for what is set now."""
        self.panel.clear()
        with self.panel:
            self._panel()

    def _panel(self) -> None:
        link("Three prompts that share tokens, moved by one transformer →", "/flows/prompts", "small")
        self.sheet.presets(PRESETS)
        a = self.asked
        with box("fieldset"):
            words("Pieces", "legend")
            with box(classes="presets"):
                for k in range(len(a.pieces)):
                    pressed = "true" if k + 1 == a.piece else "false"
                    button(
                        str(k + 1), lambda k=k: self.put(piece=k + 1), aria_pressed=pressed, aria_label=f"piece {k + 1}"
                    )
                if len(a.pieces) < MOST_PIECES:
                    button("+", self.add, aria_label="another piece")
                if a.pieces:
                    button("−", self.remove, aria_label="remove this piece")
        if 1 <= a.piece <= len(a.pieces):
            self._piece()
        most = float(max(1, len(a.pieces)))
        self.controls = Controls(self.slide, {"acted": Range(0.0, most, 0.05 if most < 20 else 0.25)})
        with box("fieldset"):
            words("Shown", "legend")
            usual = msgspec.structs.replace(a, acted=float(len(a.pieces)))
            shown = usual if a.acted is None else a
            self.controls.of(shown, ["acted"], usual)
            self.controls.of(a, ["seed"], Asked())

    def _piece(self) -> None:
        a = self.asked
        kind = PIECES[a.d]
        row = a.pieces[a.piece - 1]
        usual = kind()
        piece = kind(*row) if len(row) == len(kind.__struct_fields__) else usual
        self.edited = Controls(lambda name, text: self.edit(piece, name, text))
        with box("fieldset"):
            words(f"Piece {a.piece}", "legend")
            self.edited.of(piece, None, usual)

    def put(self, **values: Any) -> None:
        """Other values, and the fields anew."""
        self.sheet.record = msgspec.structs.replace(self.asked, **values)
        self.rebuild()
        self.sheet.show()

    def add(self) -> None:
        """One more piece at the end, which is edited then."""
        self.put(pieces=(*self.asked.pieces, START[self.asked.d][0]), piece=len(self.asked.pieces) + 1, acted=None)

    def remove(self) -> None:
        """Without the piece that is edited."""
        a = self.asked
        kept = tuple(row for k, row in enumerate(a.pieces) if k + 1 != a.piece)
        self.put(pieces=kept, piece=max(1, min(a.piece, len(kept))), acted=None)

    def slide(self, name: str, text: str) -> None:
        """What is shown of the pieces."""
        self.sheet.change(name, text)

    def edit(self, before: Setting, name: str, text: str) -> None:
        """One number of the piece that is edited."""
        a = self.asked
        row = a.pieces[a.piece - 1]
        kind = PIECES[a.d]
        try:
            piece = with_word(kind(*row) if len(row) == len(kind.__struct_fields__) else before, name, text)
        except ArgumentError as error:
            self.edited.complain(name, str(error))
            return
        self.edited.complain(name, "")
        pieces = list(a.pieces)
        pieces[a.piece - 1] = tuple(float(v) for v in msgspec.structs.astuple(piece))
        self.sheet.record = msgspec.structs.replace(a, pieces=tuple(pieces))
        self.sheet.show()
