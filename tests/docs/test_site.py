"""The site builds without a warning, holds every claim with its mathematics, and needs no network."""

import html
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pathlines
from pathlines.claim import CLAIMS
from pathlines.draw import FIGURES
from pathlines.foundation.papers import PAPERS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", DOCS, out]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return out


def words(page: Path) -> str:
    """What a reader sees, without spaces: indices and powers are elements of their own."""
    return re.sub(r"\s", "", html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8"))))


def bare(text: str) -> str:
    """Without the marks of code, indices and powers."""
    return re.sub(r"[\s{}^_`]", "", text)


def test_every_claim_stands_on_the_page_of_its_paper_with_its_mathematics(site):
    pages = {p.key: bare(words(site / "papers" / f"{p.key}.html")) for _, p in PAPERS.items() if _has_claims(p)}
    for name, claim in CLAIMS.items():
        shown = pages[claim.paper.key]
        for text in (name, claim.statement, claim.where, claim.convention):
            assert bare(text) in shown, (name, text)


def _has_claims(paper):
    return any(c.paper == paper for _, c in CLAIMS.items())


def test_errata_stand_beside_their_corrections(site):
    text = (site / "papers" / "karagodin2025normalization.html").read_text(encoding="utf-8")
    section = text[text.index('id="clustering-cl-12"') : text.index('id="clustering-er-05b"')]
    assert "clustering/ER-05c" in section
    assert "refuted" in section


def test_nothing_is_loaded_from_elsewhere(site):
    """Links may leave the site; fonts, styles, scripts and pictures may not."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|source|video)\b[^>]*\bsrc=[\"']([^\"']+)", text)
        loaded += re.findall(r"<link\b[^>]*\bhref=[\"']([^\"']+)", text)
        remote = [u for u in loaded if re.match(r"(https?:)?//", u)]
        assert not remote, (page.name, remote)
    for style in site.rglob("*.css"):
        found = re.findall(r"(?:@import|url\()\s*[\"']?((?:https?:)?//[^\"')]+)", style.read_text(encoding="utf-8"))
        assert not found, (style.name, found)


def test_mathematics_of_docstrings_survives(site):
    shown = words(site / "api" / "top.html") + words(site / "api" / "model.html")
    for name in ("SelfAttention", "RandomTransformer", "GaussianHeads", "flow"):
        paragraph = inspect.getdoc(getattr(pathlines, name)).split("\n\n")[0]
        assert bare(paragraph) in bare(shown)


def test_every_example_is_shown():
    page = (DOCS / "learn" / "examples.md").read_text(encoding="utf-8")
    assert set(re.findall(r"examples/(\w+\.py)", page)) == {p.name for p in (DOCS.parent / "examples").glob("*.py")}


def test_pictures_are_small_and_all_of_them_are_drawn():
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("pictures", DOCS / "pictures.py")
    pictures = module_from_spec(spec)
    spec.loader.exec_module(pictures)
    assert set(pictures.FIGURES) <= set(FIGURES)
    wanted = {f"{n.replace('/', '-')}.png" for n in (*pictures.FIGURES, *pictures.EXAMPLES, *pictures.PAGES)}
    assert {p.name for p in (DOCS / "pictures").iterdir()} == wanted
    assert all(p.stat().st_size <= pictures.MOST for p in (DOCS / "pictures").iterdir())
