"""Theory: every claim with its verdict, and each of them run here."""

from __future__ import annotations

import itertools
import json
from typing import Any
from urllib.parse import urlencode

import msgspec
from fastapi import FastAPI, Request
from nicegui import ui

from pathlines.claim.base import Claim
from pathlines.foundation.errors import PathlinesError
from pathlines.foundation.setting import Setting
from pathlines.view.site.answers import CLAIM_ANSWERS, answer_at
from pathlines.view.site.controls import Controls
from pathlines.view.site.elements import box, code_line, words
from pathlines.view.site.sheet import with_word, words_of
from pathlines.view.site.shell import shell

FILTERS = ("all", "holds", "refuted", "inconclusive")
_ASKED = itertools.count()
"""What is stored may change: it is never answered from what was kept."""


def register(app: FastAPI) -> None:
    """The page and its answers."""
    answer_at(app, "theory", lambda _: ("claims", _entries))
    answer_at(app, "verdicts", lambda _: (next(_ASKED), _verdicts))
    answer_at(app, "claim", prepared)
    answer_at(app, "claim-run", prepared_run, CLAIM_ANSWERS)
    ui.page("/theory")(page)


def _entries() -> Any:
    from pathlines.view.site.shelf import entries

    return {"claims": entries()}


def _verdicts() -> Any:
    from pathlines.view.site.shelf import verdicts

    return {"verdicts": verdicts()}


def prepared(asked: dict[str, str]) -> tuple[Any, Any]:
    """The claim of an address at its setting, with what is stored."""
    from pathlines.view.site.shelf import claim_of, stored

    claim, setting = claim_of(asked)
    return next(_ASKED), lambda: stored(claim, setting)


def prepared_run(asked: dict[str, str]) -> tuple[Any, Any]:
    """The same, computed where nothing is stored and the cost allows it."""
    from pathlines.view.site.shelf import check_cost, claim_of, run

    claim, setting = claim_of(asked)
    check_cost(claim, setting)
    return [claim.id, msgspec.to_builtins(setting)], lambda: run(claim, setting)


def page(request: Request) -> None:
    """The page of an address."""
    Theory(dict(request.query_params))


class Theory:
    """One person's page."""

    def __init__(self, asked: dict[str, str]) -> None:
        self.claim: Claim[Any] | None = None
        self.setting: Setting | None = None
        self.client = ui.context.client
        with shell("Theory", "Theory", "theory.js", "/data/theory"), box(classes="theory"):
            with box("aside", "shelf", aria_label="claims"):
                words("Theory", "h1")
                words(
                    "Theorems, figures and errata as programs: simulated, predicted in another way, compared.",
                    "p",
                    "lead",
                )
                self._search(asked)
                words("The claims are being read.", "p", "small early", role="status")
                box("div", id="list")
            with box("article", "claim", aria_label="claim"):
                self.message = words("", "p", "error banner", role="alert")
                box("div", id="sheet", data_asked=json.dumps(asked))
                self.form = box("section", "run-here", id="form", aria_label="run it here")
                with box("section", "again", id="again", aria_label="the same numbers elsewhere"):
                    code_line("", "as command", "command")
                    code_line("", "as Python", "python")
        ui.on("claim", lambda e: self.choose(str(e.args)))
        if "claim" in asked:
            self._begin(asked)

    def _search(self, asked: dict[str, str]) -> None:
        with box("search", "tools"):
            box("input", type="search", id="words", value=asked.get("words", "")[:200], aria_label="search",
                placeholder="Search statements, papers, ids …")  # fmt: skip
            with box(classes="presets", role="group", aria_label="verdict"):
                for name in FILTERS:
                    words(name, "button", type="button", data_verdict=name, aria_pressed="false")
            words("", "p", "small", id="count", aria_live="polite")

    def _begin(self, asked: dict[str, str]) -> None:
        from pathlines.view.site.shelf import claim_of

        try:
            self.claim, self.setting = claim_of(asked)
        except PathlinesError as error:
            self.message.text = str(error)
            return
        with self.form:
            self._form()

    def choose(self, id: str) -> None:
        """Another claim, at its own setting."""
        from pathlines.claim import CLAIMS

        try:
            self.claim = CLAIMS[id[:80]]
        except PathlinesError as error:
            self.message.text = str(error)
            return
        self.setting = self.claim.quick
        self.form.clear()
        with self.form:
            self._form()
        self._show()

    def _form(self) -> None:
        assert self.claim is not None and self.setting is not None
        self.controls = Controls(self.change)
        with box("details", "more", open=True):
            words("Run it here", "summary")
            with box(classes="fields"):
                self.controls.of(self.setting, None, self.claim.quick)
            with box(classes="presets"):
                run = words("Run", "button", "strong", type="button", id="run")
                run.on("click", js_handler="() => window.pathlines.run()")
                words("", "span", "small", id="running", role="status")

    def change(self, name: str, text: str) -> None:
        """What a person did to one field; what is refused leaves the claim as it is."""
        assert self.setting is not None
        try:
            self.setting = with_word(self.setting, name, text)
        except PathlinesError as error:
            self.controls.complain(name, str(error))
            return
        self.controls.complain(name, "")
        self._show()

    def _show(self) -> None:
        assert self.claim is not None and self.setting is not None
        own = {f"set.{k}": v for k, v in words_of(self.setting, self.claim.quick).items()}
        query = urlencode({"claim": self.claim.id, **own})
        self.client.run_javascript(f"window.pathlines.show({json.dumps({'query': query})})")
