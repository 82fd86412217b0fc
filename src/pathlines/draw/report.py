"""The report: one HTML file without network access, for a referee."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from pathlines.claim import CLAIMS, Outcome
from pathlines.claim.evaluate import Check
from pathlines.claim.summary import distance, side
from pathlines.draw.claim_figure import claim_figure, inline_svg
from pathlines.foundation.files import write_whole
from pathlines.foundation.papers import Paper
from pathlines.foundation.progress import Progress
from pathlines.integrate.run import Certificate, provenance

VERDICTS = ("holds", "refuted", "inconclusive")


def write_report(
    path: Path, outcomes: list[Outcome], *, failures: list[tuple[str, str]] | None = None, size: str = "quick"
) -> Path:
    """Write statement, citation, setting, figure, numbers, verdict, certificates and versions of every claim."""
    loader = PackageLoader("pathlines.draw")
    environment = Environment(
        loader=loader, autoescape=select_autoescape(), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"] = _number
    families: dict[str, list[dict[str, Any]]] = {}
    with Progress("report", len(outcomes)) as bar:
        for done, outcome in enumerate(outcomes):
            families.setdefault(outcome.id.split("/")[0], []).append(_card(outcome))
            bar.update(done + 1)
    text = environment.get_template("report.html").render(
        families=families,
        counts={v: sum(o.verdict == v for o in outcomes) for v in VERDICTS},
        odd=[o.id for o in outcomes if not o.as_expected],
        failures=failures or [],
        total=len(outcomes),
        size=size,
        when=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        versions=provenance(),
        seconds=sum(o.seconds for o in outcomes),
    )
    write_whole(path, text.encode())
    return path


def _card(outcome: Outcome) -> dict[str, Any]:
    claim = CLAIMS[outcome.id]
    return {
        "outcome": outcome,
        "anchor": anchor(outcome.id),
        "paper": claim.paper,
        "link": _link(claim.paper),
        "correction": anchor(outcome.corrected_by) if outcome.corrected_by else "",
        "figure": inline_svg(claim_figure(outcome, claim.axes)),
        "rows": [
            row for check in outcome.checks for row in _rows(check, (outcome.objections or {}).get(check.quantity))
        ],
        "setting": json.dumps(outcome.setting, ensure_ascii=False),
        "certificates": _grouped(outcome.certificates),
        "command": f"pathlines verify {outcome.id}" + (" --full" if outcome.size == "full" else ""),
    }


def anchor(name: str) -> str:
    """The id of a claim's card on the page."""
    return name.replace("/", "-")


def _link(paper: Paper) -> str:
    return f"https://arxiv.org/abs/{paper.arxiv}"


def _rows(check: Check, objection: str | None = None, most: int = 8) -> list[dict[str, Any]]:
    """Entries of a compared quantity; of long ones those nearest to or furthest beyond their tolerance."""
    pick = lambda value, i: value[i] if isinstance(value, list) else value  # noqa: E731
    count = len(check.measured) if isinstance(check.measured, list) else 1
    order = list(range(count))
    if count > most and check.error is not None:
        margin = [(pick(check.error, i) or 0.0) / ((pick(check.tolerance, i) or 0.0) + 1e-300) for i in range(count)]
        order = sorted(sorted(range(count), key=lambda i: -margin[i])[:most])
    rows = [
        {
            "quantity": check.quantity + (f" [{i + 1}]" if count > 1 else ""),
            **{k: pick(getattr(check, k), i) for k in ("measured", "expected", "uncertainty")},
            "side": side(check.kind),
            "distance": distance(check.kind, pick(check.error, i), pick(check.tolerance, i)),
            "kind": check.kind,
            "reason": check.reason if i == order[0] else "",
            "notices": _notices(check, objection) if i == order[0] else "",
            "more": "",
        }
        for i in order
    ]
    if count > most:
        rows[-1]["more"] = f"the {most} of {count} entries with the largest error over tolerance"
    return rows


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
