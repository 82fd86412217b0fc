"""A page whose state is one record: its address, its fields, its figures, and the lines that repeat it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlencode

import msgspec
from nicegui import ui

from pathlines.foundation.errors import ArgumentError, PathlinesError
from pathlines.foundation.setting import S, Setting, changed, fields
from pathlines.view.site.controls import Controls, Range
from pathlines.view.site.elements import box, button, code_line, mathematics, words
from pathlines.view.site.state import LONGEST_VALUE, MOST_WORDS, read, written

OWNER = "this page"
SAVED = (("svg", "Save the figures as drawings"), ("png", "Save the figures as pictures"))


def with_word(record: S, name: str, text: str) -> S:
    """The record with one field as a person writes it; text stays text where the field is text."""
    kinds = {f.name: f.allowed.removesuffix(" or null") for f in fields(type(record))}
    value = read(name, text)
    if kinds.get(name) == "text" and value is not None:
        value = str(text).strip()
    return changed(OWNER, record, {name: value})


def record_of(usual: S, asked: Mapping[str, str]) -> S:
    """The record of an address; unknown names and what is not allowed are errors in one line."""
    if len(asked) > MOST_WORDS:
        raise ArgumentError(f"An address may hold {MOST_WORDS} settings, but this one has {len(asked)}.")
    record = usual
    for name, text in asked.items():
        record = with_word(record, name[:80], text)
    return record


def words_of(record: Setting, usual: Setting) -> dict[str, str]:
    """What differs from the usual record, as an address writes it."""
    pairs = ((name, getattr(record, name)) for name in record.__struct_fields__)
    plain = ((k, msgspec.to_builtins(v)) for k, v in pairs if v != getattr(usual, k))
    return {k: "none" if v is None else written(v) for k, v in plain}


def options(record: Setting, usual: Setting, names: tuple[str, ...] = ()) -> str:
    """The same as options of a verb; of the fields named, or of all."""
    parts: list[str] = []
    for name, text in words_of(record, usual).items():
        if names and name not in names:
            continue
        flag = "--" + name.replace("_", "-")
        value = getattr(record, name)
        parts += [flag] if value is True else [f"--no-{flag[2:]}"] if value is False else [flag, text]
    return shlex.join(parts)


def arguments(record: Setting, usual: Setting, names: tuple[str, ...] = ()) -> str:
    """The same as arguments of Python: ``beta=9.0, n=64``."""
    kept = [k for k in words_of(record, usual) if not names or k in names]
    return ", ".join(f"{k}={getattr(record, k)!r}" for k in kept)


class Sheet:
    """What a person has set on a page, and the fields that set it."""

    def __init__(
        self, name: str, usual: Setting, asked: Mapping[str, str], ranges: Mapping[str, Range] | None = None
    ) -> None:
        self.name, self.usual, self.problem = name, usual, ""
        try:
            self.record = record_of(usual, asked)
        except PathlinesError as error:
            self.record, self.problem = usual, str(error)
        self.controls = Controls(self.change, ranges)
        self.client = ui.context.client
        self.rebuild: Callable[[], None] | None = None

    @property
    def query(self) -> str:
        """The address of what is set."""
        return urlencode(words_of(self.record, self.usual))

    @property
    def first(self) -> str:
        """What the page fetches at once."""
        return f"/data/{self.name}?{self.query}"

    @contextmanager
    def stage(self, title: str, lead: str, label: str = "figure") -> Iterator[None]:
        """The place of the figures, under a title and a sentence."""
        with box("section", "stage-box", aria_label=label):
            words(title, "h1")
            mathematics(lead, "p", "lead")
            self.message = words(self.problem, "p", "error banner", role="alert")
            with box(id="sheet", classes="sheet", data_start=self.query):
                yield
            words("The first numbers are being computed.", "p", "small early", role="status")

    def panel(self, fill: Callable[[Sheet], None]) -> None:
        """The settings beside the stage; ``fill`` draws them anew when others are chosen."""
        side = box("aside", "panel", aria_label="settings")

        def rebuild() -> None:
            side.clear()
            with side:
                fill(self)

        self.rebuild = rebuild
        rebuild()

    def group(self, legend: str, *names: str) -> None:
        """Fields under a heading."""
        with box("fieldset"):
            words(legend, "legend")
            self.controls.of(self.record, list(names), self.usual)

    def again(self, *, figures: bool = True) -> None:
        """The lines that give the same numbers elsewhere, and the buttons that save the figures."""
        with box("section", "again", aria_label="the same numbers elsewhere"):
            with box(classes="presets"):
                for kind, hint in SAVED if figures else ():
                    made = words(kind.upper(), "button", type="button", title=hint)
                    made.on("click", js_handler=f"() => window.pathlines.save('{kind}')")
            code_line("", "as command", "command")
            code_line("", "as Python", "python")

    def presets(self, known: Mapping[str, dict[str, str]], legend: str = "What you will see") -> None:
        """Records by what one will see in them."""
        with box("fieldset"):
            words(legend, "legend")
            with box(classes="presets"):
                for name, asked in known.items():
                    pressed = record_of(self.usual, asked) == self.record
                    button(name, lambda a=asked: self.choose(a), aria_pressed="true" if pressed else "false")

    def choose(self, asked: Mapping[str, str]) -> None:
        """A record in place of the one that is shown."""
        self.record = record_of(self.usual, asked)
        if self.rebuild is not None:
            self.rebuild()
        self.show()

    def change(self, name: str, text: str) -> None:
        """What a person did to one field; what is refused leaves the figures as they are."""
        try:
            if len(text) > LONGEST_VALUE:
                raise ArgumentError(f"Setting `{name}` may have {LONGEST_VALUE} letters, but has {len(text)}.")
            self.record = with_word(self.record, name, text)
        except PathlinesError as error:
            self.controls.complain(name, str(error))
            return
        self.controls.complain(name, "")
        self.show()

    def show(self) -> None:
        """Have the page's script fetch and draw what is set now."""
        self.client.run_javascript(f"window.pathlines.show({json.dumps({'query': self.query})})")
