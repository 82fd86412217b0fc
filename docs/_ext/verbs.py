"""The directive ``verbs``: every verb of the program with its words, arguments and options, as ``--help`` has them."""

from __future__ import annotations

import inspect
from typing import Any

import typer
from claim_pages import codes, table
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def described(parameter: Any) -> tuple[str, str, str]:
    """Names, help and default of an argument or option."""
    names = ", ".join(parameter.opts) if parameter.opts[0].startswith("-") else parameter.metavar or parameter.name
    default = parameter.default
    shown = "" if default in (None, False, (), []) or callable(default) else str(default)
    return names, getattr(parameter, "help", None) or "", shown


def inner(name: str, verb: Any) -> list[tuple[str, Any]]:
    """Verbs of a group, such as `transport check`."""
    return [(f"{name} {word}", command) for word, command in getattr(verb, "commands", {}).items()]


class Verbs(SphinxDirective):
    """A section for each verb, in the order of the help."""

    def run(self) -> list[nodes.Node]:
        """Read the program itself."""
        from pathlines.cli.program import app

        verbs = typer.main.get_command(app).commands.items()
        return [self.section(*one) for name, verb in verbs for one in ((name, verb), *inner(name, verb))]

    def section(self, name: str, command: Any) -> nodes.section:
        """What a verb does, its examples and its options."""
        part = nodes.section("", nodes.title("", name), ids=[f"verb-{name.replace(' ', '-')}"], names=[f"verb {name}"])
        for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
            part += nodes.paragraph("", "", *codes(" ".join(paragraph.split())))
        part += table(("name", "meaning", "default"), [described(p) for p in command.params])
        return part


def setup(app: Sphinx) -> dict[str, Any]:
    """Register it."""
    app.add_directive("verbs", Verbs)
    return {"parallel_read_safe": True}
