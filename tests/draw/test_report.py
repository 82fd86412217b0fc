"""The report as a referee reads it: contents, words, reasons; search and filters tried in a browser."""

import re
import shutil
import subprocess

import msgspec
import pytest

from pathlines.claim import CLAIMS
from pathlines.claim.base import Axes
from pathlines.claim.evaluate import Check, Line, Outcome
from pathlines.draw.claim_figure import claim_figure
from pathlines.draw.report import write_report

CURVES = [
    Line(label, role, "", [1.0, 2.0], y, None)
    for role, label, y in (
        ("simulation", "N = 10", [0.1, 0.2]), ("simulation", "N = 20", [0.3, 0.4]),
        ("theory", "N = 10", [0.1, 0.2]), ("theory", "N = 20", [0.3, 0.4]),
    )
]  # fmt: skip


def check(quantity, measured):
    size = len(measured)
    error, tolerance = [0.1 * (i + 1) for i in range(size)], [1.0] * size
    return Check(
        quantity, measured, measured, [0.0] * size, error, tolerance, "absolute", f"digits of {quantity}", "holds"
    )


def outcome(id, verdict, checks, setting=None):
    claim = CLAIMS[id]
    known = {f.name: None for f in msgspec.structs.fields(Outcome)}
    return Outcome(**known | {
        "id": id, "paper": claim.paper.citation, "label": claim.label, "where": claim.where,
        "statement": f"Statement of {id}", "verdict": verdict, "expected_verdict": claim.expected, "quantity": "mean",
        "seconds": 1.0, "size": "quick", "setting": setting or {}, "checks": checks, "source": "closed form",
        "lines": CURVES, "certificates": [], "forms": [], "warnings": [], "corrected_by": claim.corrected_by,
        "note": "", "versions": {},
    })  # fmt: skip


@pytest.fixture
def page(tmp_path):
    checks = [check("log_mean", [5.0, 6.0]), check("curve_value", [0.1, 0.2, 0.3, 0.4]), check("other", [0.0] * 12)]
    first = outcome("clustering/CL-43", "holds", checks, {"sizes": [10, 20], "until": 3.0})
    return write_report(tmp_path / "r.html", [first, outcome("clustering/ER-01", "refuted", [check("mean", [1.0])])])


def cells(text):
    return [re.sub(r"<[^>]+>", "", c) for c in re.findall(r"<tr><td><b>(.*?)</b>", text)]


def test_entries_have_names_in_words_and_every_row_a_reason(page):
    text = page.read_text()
    names = cells(text)
    assert names[:2] == ["log mean, N = 10", "log mean, N = 20"]
    assert (
        names[2]
        == "curve value, "
        + (f"{CLAIMS['clustering/CL-43'].axes.x} = " if CLAIMS["clustering/CL-43"].axes.x else "")
        + "1, N = 10"
    )
    assert names[6:14] == [f"other, {i} of 12" for i in range(5, 13)]
    assert "the 8 of 12 entries with the largest error over tolerance" in text
    assert not re.search(r"\w \[\d+\]", " ".join(names))
    reasons = re.findall(r'data-label="why">(.*?)</td>', text)
    assert len(reasons) == len(names) and all(r.startswith("absolute: digits of") for r in reasons)


def test_the_page_needs_no_network_and_has_a_table_of_contents(page):
    text = page.read_text()
    assert not re.search(r'(src|href)="(?!#|https://arxiv)', text)
    assert {"clustering-CL-43", "clustering-ER-01"} == set(re.findall(r'data-of="([\w-]+)"', text))
    assert "prefers-color-scheme: dark" in text and "max-width: 640px" in text


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no browser")
@pytest.mark.parametrize(
    ("act", "left"),
    [
        ('document.querySelector("button[data-verdict=refuted]").click()', {"clustering-ER-01"}),
        ('const w = document.getElementById("words"); w.value = "cl-43 STATEMENT"; w.dispatchEvent(new Event("input"))',
         {"clustering-CL-43"}),
        ('document.querySelector("button[data-verdict=unexpected]").click()', set()),
    ],
)  # fmt: skip
def test_filters_and_search_hide_the_others(page, tmp_path, act, left):
    tried = tmp_path / "tried.html"
    tried.write_text(page.read_text().replace("</body>", f"<script>{act}</script></body>"))
    options = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    options += " --disable-component-update --disable-sync --dump-dom"
    words = ["chromium", *options.split(), f"--user-data-dir={tmp_path / 'profile'}", tried.as_uri()]
    seen = subprocess.run(words, capture_output=True, text=True, timeout=120).stdout
    shown = {id for kind, id in re.findall(r'<details class="(card[^"]*)" id="([^"]+)"', seen) if "hidden" not in kind}
    assert shown == left
    assert f"{len(left)} shown" in seen


def test_a_legend_says_everything_once():
    figure = claim_figure(outcome("clustering/CL-43", "holds", []), Axes("x", "y"))
    (legend,) = [a.get_legend() for a in figure.axes]
    assert [t.get_text() for t in legend.get_texts()] == ["N = 10", "N = 20", "theory"]
