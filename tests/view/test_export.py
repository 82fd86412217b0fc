"""One file that plays: small, closed to the network, with every word of ours or theirs escaped."""

import base64
import hashlib
import html
import re

import numpy as np
import pytest
from made import meeting, run_of

import pathlines as pl
from pathlines.foundation.errors import ArgumentError
from pathlines.view.export import MODULES, page, player_script
from pathlines.view.frames import frames

HOSTILE = """</script><script>alert(1)</script><img src=x onerror="alert('2')">&amp;\u2028"""


def test_500_tokens_in_240_frames_take_less_than_two_megabytes(tmp_path):
    run = run_of(meeting(500, 240), level=np.linspace(0, 1, 240))
    assert pl.export_page(run, tmp_path / "talk.html").stat().st_size < 2_000_000


def test_the_page_talks_to_nobody():
    text = page(frames(run_of(meeting())))
    assert re.findall(r"https?://[^\"' )<]+", text) == ["http://www.w3.org/2000/svg"] * 2  # the name of a language
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text).group(1)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy and "http" not in policy
    script = re.search(r'<script type="module">(.*?)</script>', text, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|import\()", script)


def test_every_word_is_escaped(tmp_path):
    run = run_of(meeting(), outcome=HOSTILE, model={"name": HOSTILE, "beta": 1.0}, **{HOSTILE: np.ones(41)})
    words = dict.fromkeys(("title", "subtitle", "command", "python"), HOSTILE)
    overlays = [{"kind": "centre", "points": [[0, 0, 0]], "label": HOSTILE}]
    text = pl.export_page(run, tmp_path / "hostile", **words, overlays=overlays).read_text()
    assert text.count("<script") == 3
    assert text.count("</script>") == 3
    assert "<img" not in text
    assert f"<title>{html.escape(HOSTILE)}</title>" in text


def test_the_same_run_is_the_same_file(tmp_path):
    one, other = (run_of(meeting()).export(tmp_path / name) for name in ("one.html", "other.html"))
    assert one.read_bytes() == other.read_bytes()


def test_the_name_gets_an_ending_and_the_folder_is_made(tmp_path):
    assert pl.export_page(run_of(meeting()), tmp_path / "new" / "talk") == tmp_path / "new" / "talk.html"


def test_frames_can_be_exported_as_they_are(tmp_path):
    run = run_of(meeting())
    assert pl.export_page(frames(run), tmp_path / "a").read_bytes() == run.export(tmp_path / "b").read_bytes()


@pytest.mark.parametrize("thing", [None, {"format": "other"}, 3])
def test_what_is_no_run_is_refused(thing, tmp_path):
    with pytest.raises(ArgumentError, match="Argument `run` must be a run"):
        pl.export_page(thing, tmp_path / "talk.html")


def test_a_notebook_shows_the_player_in_a_box_of_its_own():
    shown = run_of(meeting())._repr_html_()
    assert shown.startswith('<iframe sandbox="allow-scripts allow-downloads"')
    inside = html.unescape(re.search(r'srcdoc="([^"]*)"', shown).group(1))
    assert inside.startswith("<!DOCTYPE html>")
    assert len(run_of(meeting(1000, 240))._repr_html_()) < 1_200_000


def test_a_notebook_shows_text_where_there_is_nothing_to_draw():
    run = run_of(meeting())
    blind = pl.Run(run.data.drop_vars("tokens").assign(level=("time", np.ones(41))), (), (), "completed", {}, 0.0)
    assert blind._repr_html_() is None


def test_all_modules_are_in_the_page_once():
    from importlib.resources import files

    static = files("pathlines.view") / "static"
    ours = {f.name.removesuffix(".js") for f in static.iterdir() if f.name.endswith(".js")}
    assert set(MODULES) <= ours
    assert "import " not in re.sub(r"'[^']*'|`[^`]*`", "", player_script())
    assert "export " not in re.sub(r"'[^']*'|`[^`]*`", "", player_script())
