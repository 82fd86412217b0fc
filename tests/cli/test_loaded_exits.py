"""Code of the user that ends the program is an error, whichever verb runs it."""

import sys

import pytest

from pathlines.claim import CLAIMS, Evidence, absolute, claim
from pathlines.draw import FIGURES
from pathlines.draw.gallery import Picture
from pathlines.draw.style import new_figure
from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting


def leave(_):
    sys.exit(0)


def test_a_claim_that_exits_has_failed(pathlines, monkeypatch):
    monkeypatch.setattr(CLAIMS, "_entries", {name: CLAIMS[name] for name in CLAIMS})
    within = {"x": absolute(1.0, "one")}
    one = lambda s: Evidence({"x": 1.0})  # noqa: E731
    claim(
        "test/exits", PERSPECTIVE, "", "", models=("sa",), quick=Setting(), within=within, simulate=leave, predict=one
    )
    code, shown, _ = pathlines("verify", "test/exits", "--jobs", 1)
    assert code == 1
    assert "SystemExit" in shown


def test_a_figure_that_exits_is_bad_input(pathlines, monkeypatch, tmp_path):
    monkeypatch.setattr(
        FIGURES, "_entries", {"test/exits": Picture("test/exits", PERSPECTIVE, "", Setting(), Setting(), leave)}
    )
    monkeypatch.setattr(FIGURES, "_filled", True)
    code, _, said = pathlines("figure", "test/exits", "--figure", tmp_path / "a.pdf")
    assert (code, said.count("\n")) == (2, 1)


def test_brackets_in_the_name_of_a_figure_are_no_markup(pathlines, monkeypatch, tmp_path):
    picture = Picture("test/[/x]", PERSPECTIVE, "", Setting(), Setting(), lambda s: new_figure()[0])
    monkeypatch.setattr(FIGURES, "_entries", {"test/[/x]": picture})
    monkeypatch.setattr(FIGURES, "_filled", True)
    code, shown, said = pathlines("figure", "test", "--figure", tmp_path / "a.pdf")
    assert code == 0, said
    assert shown.startswith("test/[/x]: ")


def test_settings_of_a_figure_are_a_record():
    with pytest.raises(ArgumentError, match="`quick` must be a record of settings"):
        Picture("test/dict", PERSPECTIVE, "", {}, Setting(), leave)
