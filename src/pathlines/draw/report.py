"""The report: one HTML file without network access, for a referee."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from pathlines.claim import CLAIMS, Outcome
from pathlines.claim.base import Axes
from pathlines.claim.evaluate import Check, Line
from pathlines.claim.summary import distance, side
from pathlines.draw.claim_figure import claim_figure, inline_svg
from pathlines.foundation.files import write_whole
from pathlines.foundation.marks import standing
from pathlines.foundation.papers import Paper
from pathlines.foundation.progress import Progress
from pathlines.integrate.run import Certificate, provenance

MARKS = {"holds": "✓", "refuted": "✗", "inconclusive": "?"}
MOST = 8
"""Entries of a quantity that are shown."""


def write_report(
    path: Path, outcomes: list[Outcome], *, failures: list[tuple[str, str]] | None = None, size: str = "quick"
) -> Path:
    """Write statement, citation, setting, figure, numbers, verdict, certificates and versions of every claim."""
    families: dict[str, list[dict[str, Any]]] = {}
    with Progress("report", len(outcomes)) as bar:
        for done, outcome in enumerate(outcomes):
            families.setdefault(outcome.id.split("/")[0], []).append(_card(outcome, lambda id: "#" + anchor(id)))
            bar.update(done + 1)
    text = (
        _environment()
        .get_template("report.html")
        .render(
            families=families,
            counts={v: sum(o.verdict == v for o in outcomes) for v in MARKS},
            odd=[o.id for o in outcomes if not o.as_expected],
            failures=failures or [],
            total=len(outcomes),
            size=size,
            when=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            versions=provenance(),
            seconds=sum(o.seconds for o in outcomes),
        )
    )
    write_whole(path, text.encode())
    return path


def card_html(outcome: Outcome, link: Callable[[str], str]) -> str:
    """What the report says of one outcome, for a page of its own; ``link`` is where a claim of that id is shown."""
    inside: Any = _environment().get_template("claim_card.html").module
    return str(inside.inside(_card(outcome, link)))


def _environment() -> Environment:
    loader = PackageLoader("pathlines.draw")
    environment = Environment(
        loader=loader, autoescape=select_autoescape(), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"] = _number
    return environment


def _card(outcome: Outcome, link: Callable[[str], str]) -> dict[str, Any]:
    claim = CLAIMS[outcome.id]
    return {
        "outcome": outcome,
        "anchor": anchor(outcome.id),
        "paper": claim.paper,
        "link": _link(claim.paper),
        "standing": standing(claim.marks, claim.convention),
        "correction": link(outcome.corrected_by) if outcome.corrected_by else "",
        "figure": inline_svg(claim_figure(outcome, claim.axes)),
        "mark": MARKS[outcome.verdict],
        "rows": [row for check in outcome.checks for row in _rows(check, outcome, claim.axes)],
        "left_out": [words for check in outcome.checks if (words := _left_out(check))],
        "tried": outcome.objections is not None or any(check.notices is not None for check in outcome.checks),
        "setting": json.dumps(outcome.setting, ensure_ascii=False),
        "certificates": _grouped(outcome.certificates),
        "command": f"pathlines verify {outcome.id}" + (" --full" if outcome.size == "full" else ""),
    }


def anchor(name: str) -> str:
    """The id of a claim's card on the page."""
    return name.replace("/", "-")


def _link(paper: Paper) -> str:
    return f"https://arxiv.org/abs/{paper.arxiv}"


def _rows(check: Check, outcome: Outcome, axes: Axes) -> list[dict[str, Any]]:
    """Entries of a compared quantity, each with its name in words and its reason."""
    names = _names(check, outcome, axes)
    return [
        {
            "quantity": names[i],
            **{k: _pick(getattr(check, k), i) for k in ("measured", "expected", "uncertainty")},
            "side": side(check.kind),
            "distance": distance(check.kind, _pick(check.error, i), _pick(check.tolerance, i)),
            "kind": check.kind,
            "reason": check.reason,
            "notices": _notices(check, (outcome.objections or {}).get(check.quantity)),
        }
        for i in _shown(check)
    ]


def _pick(value: Any, i: int) -> Any:
    return value[i] if isinstance(value, list) else value


def _count(check: Check) -> int:
    return len(check.measured) if isinstance(check.measured, list) else 1


def _shown(check: Check) -> list[int]:
    """All entries; of many those nearest to or furthest beyond their tolerance."""
    count = _count(check)
    if count <= MOST or check.error is None:
        return list(range(count))
    margin = [(_pick(check.error, i) or 0.0) / ((_pick(check.tolerance, i) or 0.0) + 1e-300) for i in range(count)]
    return sorted(sorted(range(count), key=lambda i: -margin[i])[:MOST])


def _left_out(check: Check) -> str:
    count, shown = _count(check), len(_shown(check))
    words = f"{_words(check.quantity)}: the {shown} of {count} entries with the largest error over tolerance."
    return words if shown < count else ""


def _words(quantity: str) -> str:
    return quantity.replace("_", " ")


def _names(check: Check, outcome: Outcome, axes: Axes) -> list[str]:
    """Names of the entries: where on the claim's curves they lie, if those show these very numbers; the curves' labels,
    if there is one entry for each and for each value of one setting; else their place.
    """
    word, count = _words(check.quantity), _count(check)
    if count == 1:
        return [word]
    curves = [c for c in outcome.lines if c.role == "simulation"]
    labels = [", ".join(filter(None, (c.label, c.panel))) for c in curves]
    for curve in curves:
        if curve.y == check.measured:
            return _places(word, [curve], [""], axes)
    if [y for c in curves for y in c.y] == check.measured:
        return _places(word, curves, labels, axes)
    varied = sum(isinstance(v, list | tuple) and len(v) == count for v in outcome.setting.values())
    if len(set(labels)) == len(labels) == count and all(labels) and varied == 1:
        return [f"{word}, {label}" for label in labels]
    return [f"{word}, {i + 1} of {count}" for i in range(count)]


def _places(word: str, curves: list[Line], labels: list[str], axes: Axes) -> list[str]:
    at = f"{axes.x} = " if axes.x else ""
    return [f"{word}, {at}{x:.4g}" + (f", {label}" if label else "") for c, label in zip(curves, labels) for x in c.x]


def _notices(check: Check, objection: str | None) -> str:
    if check.notices is None:
        return objection or ""
    return "any factor passes" if math.isinf(check.notices) else f"{100 * check.notices:.2g} %"


def _grouped(certificates: list[Certificate]) -> list[dict[str, Any]]:
    """The worst certificate of each name over all runs of a claim."""
    groups: dict[str, list[Certificate]] = {}
    for certificate in certificates:
        groups.setdefault(certificate.name, []).append(certificate)
    result = []
    for name, members in groups.items():
        worst = max(members, key=lambda c: c.value)
        states = {c.passed for c in members}
        state = "failed" if False in states else "passed" if True in states else "reported"
        result.append({"name": name, "worst": worst, "runs": len(members), "state": state})
    return result


def _number(value: Any, digits: int = 10) -> str:
    return "–" if value is None else f"{value:.{digits}g}" if isinstance(value, float) else str(value)
