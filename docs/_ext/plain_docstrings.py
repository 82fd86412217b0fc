"""Docstrings are written to be read in an editor: Unicode mathematics, ``code``, paragraphs, indented equations.

What reStructuredText would take for markup (|x|, x*, m_i) is escaped, and indented equations become literal blocks.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

LITERAL = re.compile(r"(``.+?``|`[^`]+`)", re.DOTALL)
SECTION = re.compile(r"(Args|Arguments|Attributes|Example|Examples|Note|Returns|Raises|Yields):$")


def escaped(text: str) -> str:
    """Everything outside of literals without a meaning of its own; single backticks are code too."""
    parts = [
        f"\\ ``{p.strip('`')}``\\ " if LITERAL.fullmatch(p) else re.sub(r"([\\|*_`])", r"\\\1", p)
        for p in LITERAL.split(text)
    ]
    return re.sub(r"``\\ (?=\s)", "``", "".join(parts))


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """In place, before Google-style sections are read."""
    result: list[str] = []
    section = ""
    for paragraph in re.split(r"\n\s*\n", "\n".join(lines).strip("\n")):
        first = paragraph.split("\n", 1)[0]
        section = first if SECTION.match(first) else section if first.startswith(" ") else ""
        literal = first.startswith(" ") and not section
        result += ["::", "", *paragraph.split("\n")] if literal else escaped(paragraph).split("\n")
        result.append("")
    lines[:] = result


def setup(app: Sphinx) -> dict[str, Any]:
    """Before napoleon, which listens at the default priority of 500."""
    app.connect("autodoc-process-docstring", process, priority=400)
    return {"parallel_read_safe": True}
