"""Two directives for the pages of papers: ``claims KEY`` (every claim of a paper) and ``picture NAME`` (a figure).

Statements are put on the page as they are, with indices and powers set as such: no other markup is looked for in them,
so Unicode mathematics survives.
"""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import pathlines
from pathlines.foundation.marks import standing
from pathlines.foundation.setting import fields
from pathlines.foundation.typeset import MARK, parts


def anchor(name: str) -> str:
    """The address of a claim on its page."""
    return nodes.make_id(name)


def box(kind: str, *content: nodes.Node) -> nodes.container:
    """A block with a class of its own."""
    return nodes.container("", *content, classes=kind.split())


def plain(text: str, kind: str) -> nodes.paragraph:
    """A paragraph of mathematics and words."""
    return nodes.paragraph("", "", *codes(text), classes=[kind])


def codes(text: str) -> list[nodes.Node]:
    """Words with `code` in them."""
    parts = re.split(r"`([^`]+)`", text)
    return [nodes.literal("", p) if k % 2 else nodes.Text(p) for k, p in enumerate(parts) if p]


def typeset(text: str) -> list[nodes.Node]:
    """Words in which e^{…}, x_{…}, R^d and E_β are as they would be written by hand; all else as it is."""
    kinds = {"^": nodes.superscript, "_": nodes.subscript}
    return [kinds[sign]("", "", *typeset(part)) if sign else nodes.Text(part) for sign, part in parts(text)]


def typeset_all(app: Sphinx, doctree: nodes.document) -> None:
    """Indices and powers everywhere but in code and names; arguments and their meaning are told apart by a colon."""
    kept = (nodes.literal, nodes.literal_block, nodes.raw, nodes.comment, addnodes.desc_signature, addnodes.toctree)
    for text in list(doctree.findall(nodes.Text)):
        if text == " -- ":
            text.parent.replace(text, nodes.Text(": "))
            continue
        above, inside = text.parent, False
        while above is not None and not inside:
            above, inside = above.parent, isinstance(above, kept)
        if not inside and MARK.search(text.astext()):
            text.parent.replace(text, typeset(text.astext()))


class Claims(SphinxDirective):
    """Statement, place in the paper, verdict, tolerances and setting of every claim of a paper."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """One section for each claim; an erratum stands in the section of its correction, if that is of this paper."""
        self.paper = next(p for _, p in pathlines.PAPERS.items() if p.key == self.arguments[0])
        mine = {i: c for i, c in pathlines.CLAIMS.items() if c.paper == self.paper and not c.alias_of}
        beside = {i for i, c in mine.items() if c.expected == "refuted" and c.corrected_by in mine}
        errata = {i: [mine[e] for e in mine if e in beside and mine[e].corrected_by == i] for i in mine}
        return [self.section(c, errata[i]) for i, c in mine.items() if i not in beside]

    def section(self, claim: Any, errata: list[Any]) -> nodes.section:
        """A claim, with its errata to the left of it."""
        name = f"{claim.id.split('/')[1]}: {claim.label}"
        part = nodes.section("", nodes.title("", name), ids=[anchor(claim.id)], names=[claim.id])
        statements = [*(self.statement(e, "as printed: ") for e in errata), self.statement(claim)]
        part += box("claims beside" if errata else "claims", *statements)
        part += self.details(claim)
        return part

    def statement(self, claim: Any, lead: str = "") -> nodes.container:
        """Verdict, place and words of one claim."""
        chip = nodes.inline("", claim.expected, classes=["verdict", claim.expected])
        head = nodes.paragraph("", "", nodes.strong("", lead + claim.id), nodes.Text(" "), chip, classes=["claim-head"])
        parts = [head, plain(claim.statement, "statement"), plain(f"Where: {claim.where}", "where")]
        if also := [i for i, c in pathlines.CLAIMS.items() if c.alias_of == claim.id]:
            parts.append(
                nodes.paragraph("", "Also: " + ", ".join(also), classes=["where"], ids=list(map(anchor, also)))
            )
        if words := standing(claim.marks, claim.convention):
            parts.append(plain(words, "where"))
        if claim.corrected_by and pathlines.CLAIMS[claim.corrected_by].paper != self.paper:
            parts.append(self.elsewhere(claim.corrected_by))
        if claim.note:
            parts.append(plain(claim.note, "note"))
        here = [anchor(claim.id)] if lead else []
        return nodes.container("", *parts, classes=["claim", claim.expected], ids=here)

    def elsewhere(self, name: str) -> nodes.paragraph:
        """A link to the correction on the page of another paper."""
        key = pathlines.CLAIMS[name].paper.key
        link = nodes.reference("", name, refuri=f"{key}.html#{anchor(name)}", internal=True)
        return nodes.paragraph("", "What holds instead: ", link, classes=["where"])

    def details(self, claim: Any) -> list[nodes.Node]:
        """Folded: what is compared and how closely, the setting at both sizes, the command."""
        compared = [(q, f"{t.kind} {t.value:g}", t.reason) for q, t in claim.within.items()]
        rows = [self.field(f, claim) for f in fields(type(claim.quick))]
        costs = [f"{cost} at {size} size" for size in ("quick", "full") if (cost := claim.cost(size)) is not None]
        return [
            nodes.raw("", "<details><summary>What is compared, at which setting</summary>", format="html"),
            nodes.literal_block("", f"pathlines verify {claim.id}", language="console"),
            *([nodes.paragraph("", "Cost: " + ", ".join(costs))] if costs else []),
            table(("quantity", "tolerance", "why"), compared),
            table(("--set", "symbol", "meaning", "allowed", "quick", "full"), rows),
            nodes.raw("", "</details>", format="html"),
        ]

    @staticmethod
    def field(f: Any, claim: Any) -> tuple[str, ...]:
        """A row of the table of settings; the full size only where it differs."""
        quick, full = (json.dumps(getattr(s, f.name), ensure_ascii=False) for s in (claim.quick, claim.full))
        meaning = f.meaning + (f" ({f.unit})" if f.unit else "")
        return f.name, f.symbol, meaning, f.allowed, quick, "" if full == quick else full


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> nodes.Node:
    """A table of plain words; nothing if it has no rows."""
    if not rows:
        return nodes.Text("")
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in header), cols=len(header))
    group += nodes.thead("", nodes.row("", *(nodes.entry("", nodes.paragraph("", h)) for h in header)))
    group += nodes.tbody("", *map(_row, rows))
    return box("table-wrapper", nodes.table("", group))


def _row(cells: tuple[str, ...]) -> nodes.row:
    """Names are code, all else is words."""
    name, *others = cells
    body = [nodes.paragraph("", "", nodes.literal("", name)), *(nodes.paragraph("", str(c)) for c in others)]
    return nodes.row("", *(nodes.entry("", cell) for cell in body))


class Picture(SphinxDirective):
    """A registered figure as ``docs/pictures.py`` drew it, with its caption and the command that draws it."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """An image with a caption."""
        entry = pathlines.FIGURES[self.arguments[0]]
        image = nodes.image(uri=f"/pictures/{entry.name.replace('/', '-')}.png", alt=self.options["alt"])
        command = nodes.literal("", f"pathlines figure {entry.name}")
        return [nodes.figure("", image, nodes.caption("", "", *codes(entry.caption + " "), command))]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register both, and set indices and powers on every page."""
    app.add_directive("claims", Claims)
    app.add_directive("picture", Picture)
    app.connect("doctree-read", typeset_all)
    return {"parallel_read_safe": True}
