"""Play: a run to look at and to turn the knobs of."""

from __future__ import annotations

import json

from fastapi import Request
from fastapi.responses import RedirectResponse
from nicegui import ui

from pathlines.domain.start import STARTS
from pathlines.foundation.errors import PathlinesError
from pathlines.foundation.typeset import as_html
from pathlines.model import MODELS
from pathlines.view.site.controls import Controls
from pathlines.view.site.drawable import offered_models
from pathlines.view.site.elements import box, button, code_line, link, mathematics, words
from pathlines.view.site.presets import PRESETS, Preset, usual
from pathlines.view.site.shell import shell
from pathlines.view.site.state import OF_RUN, Stage, State, moment_of, state_of

FIRST = ("beta", "value", "eps", "logit_scale", "score", "heads", "step")
"""Parameters that are asked for before the others."""
HIDDEN = ("summation", *OF_RUN)


def register() -> None:
    """The page at its address, which is also the first one."""
    ui.page("/")(lambda: RedirectResponse("/play"))
    ui.page("/play")(page)


def page(request: Request) -> None:
    """The page of an address; what it does not understand is said on the page, which then shows what it can."""
    asked = dict(request.query_params)
    try:
        state, problem = state_of(asked or PRESETS[0].words), ""
    except PathlinesError as error:
        state, problem = State(), str(error)
    Play(state, asked, problem)


class Play:
    """One person's page."""

    def __init__(self, state: State, asked: dict[str, str], problem: str = "") -> None:
        self.state = state
        self.client = ui.context.client
        with shell("Play", MODELS[state.model].title, "play.js", f"/data/play?{state.query}"):
            with box(classes="play"):
                with box("section", "stage-box", aria_label="run"):
                    self.title = mathematics(MODELS[state.model].title, "h1")
                    self.look = mathematics("", "p", "lead")
                    self.message = words(problem, "p", "error banner", role="alert")
                    t, colour = moment_of(asked), asked.get("colour") == "cluster"
                    start = {"query": state.query, "t": t, "colour": "cluster" if colour else "initial"}
                    box(id="player", data_start=json.dumps(start))
                    words("The run is being computed; the first of its kind takes some seconds to compile.", "p",
                          "small waiting", role="status")  # fmt: skip
                with box("aside", "panel", aria_label="settings"):
                    self.panel = box(classes="controls-box")
                with box("section", "again", aria_label="the same numbers elsewhere"):
                    link("Save as one page to send", "/export/play", "button", id="export", download="pathlines.html")
                    code_line("", "as command", "command")
                    code_line("", "as Python", "python")
            with self.panel:
                self._controls()
            self._tell()

    def _controls(self) -> None:
        self.controls = Controls(self.change)
        with box("fieldset"):
            words("What you will see", "legend")
            with box(classes="presets"):
                for preset in PRESETS:
                    chosen = state_of(preset.words) == self.state
                    button(preset.name, lambda p=preset: self.choose(p), title=preset.look,
                           aria_pressed="true" if chosen else "false")  # fmt: skip
        with box("fieldset"):
            words("Model", "legend")
            with box("select", id="f-model", aria_label="model") as select:
                for name in offered_models(self.state.model):
                    words(f"{name}: {MODELS[name].title}", "option", value=name, selected=name == self.state.model)
            select.on("change", lambda e: self.change("model", str(e.args)), js_handler="(e) => emit(e.target.value)")
            mathematics(MODELS[self.state.model].equation, "p", "equation")
        self._parameters()
        with box("fieldset"):
            words("Run", "legend")
            stage = self.state.stage
            depth = ["layers"] if self.state.stage.layers else ["until", "frames"]
            self.controls.of(stage, ["n", "d", *depth, "seed"], Stage())
            self._starts()
        with box("details", "more"):
            words("How to read it", "summary")
            mathematics(MODELS[self.state.model].sees)
            words("Good values: " + MODELS[self.state.model].good_values, "p", "small")
            for paper in MODELS[self.state.model].papers:
                words(paper.citation, "p", "small")

    def _parameters(self) -> None:
        record, own = self.state.record, MODELS[self.state.model].parameters()
        names = [n for n in record.__struct_fields__ if n not in HIDDEN]
        if not names:
            return
        first = [n for n in FIRST if n in names] or names[:2]
        with box("fieldset"):
            words("Parameters", "legend")
            self.controls.of(record, first, own)
            others = [n for n in names if n not in first]
            if others:
                with box("details", "more"):
                    words(f"{len(others)} more: {', '.join(others[:3])}{', …' if len(others) > 3 else ''}", "summary")
                    self.controls.of(record, others, own)

    def _starts(self) -> None:
        with box(classes="field text", title="law of the start, with its parameters after a colon"):
            with box("label", "name", for_="f-start"):
                words("start", "b")
                words("law of the start", "span", "meaning")
            field = box(
                "input", type="text", id="f-start", value=self.state.stage.start, list="starts", spellcheck="false"
            )
            field.on("change", lambda e: self.change("start", str(e.args)), js_handler="(e) => emit(e.target.value)")
            with box("datalist", id="starts"):
                for law in STARTS:
                    box("option", value=law)
            self.controls.errors["start"] = words("", "p", "error", role="alert")

    def choose(self, preset: Preset) -> None:
        """A preset in place of what is shown."""
        self._show(state_of(preset.words), rebuild=True)

    def change(self, name: str, text: str) -> None:
        """What a person did to one field; what is refused leaves the picture as it is."""
        try:
            if name == "model":
                self._show(state_of(usual(text)), rebuild=True)
            else:
                self._show(self.state.changed(name, text))
        except PathlinesError as error:
            self.controls.complain(name, str(error))
            self.message.text = str(error)
        else:
            self.controls.complain(name, "")

    def _show(self, state: State, *, rebuild: bool = False) -> None:
        new = state.model != self.state.model
        self.state = state
        self.message.text = ""
        if rebuild:
            self.panel.clear()
            with self.panel:
                self._controls()
        self._tell()
        asked = {"query": state.query, "restart": rebuild or new}
        self.client.run_javascript(f"window.pathlines.show({json.dumps(asked)})")

    def _tell(self) -> None:
        """What is said around the picture."""
        self.title.content = as_html(MODELS[self.state.model].title)
        match = next((p for p in PRESETS if state_of(p.words) == self.state), None)
        self.look.content = as_html(match.look if match else MODELS[self.state.model].sees)
