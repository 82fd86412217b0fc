"""A claim is shown with its settings in words, and its schema is JSON."""

import json

import pytest

from pathlines.cli.show import show
from pathlines.foundation.errors import ArgumentError


def test_a_claim_is_shown_with_a_table_of_its_settings(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    show("homogenized/C06")
    shown = capsys.readouterr().out
    assert "§2.3.4, theorem on the simplex" in shown
    (row,) = (line for line in shown.splitlines() if line.split()[:2] == ["heads", "H"])
    assert row.split("  ")[0].strip() == "heads"
    assert all(words in row for words in ("heads per layer", "integer ≥ 1", " 2 ", " 4 "))
    (row,) = (line for line in shown.splitlines() if line.strip().startswith("b "))
    assert "standard deviation of a logit" in row


def test_the_schema_of_a_claim_has_bounds_meanings_and_both_sizes(capsys):
    show("homogenized/C06", schema=True)
    schema = json.loads(capsys.readouterr().out)
    (record,) = schema["$defs"].values()
    assert record["properties"]["heads"] == {
        "title": "H", "description": "heads per layer", "type": "integer", "minimum": 1, "default": 2,
    }  # fmt: skip
    assert [setting["heads"] for setting in schema["examples"]] == [2, 4]


def test_figures_and_models_have_a_schema_and_what_has_no_setting_has_none(capsys):
    show("clustering/phase-diagram", schema=True)
    schema = json.loads(capsys.readouterr().out)
    (record,) = schema["$defs"].values()
    assert record["properties"]["betas"]["minimum"] == 1
    assert [setting["samples"] for setting in schema["examples"]] == [32, 2048]
    show("sa", schema=True)
    assert json.loads(capsys.readouterr().out)["examples"][0]["beta"] == 4.0
    with pytest.raises(ArgumentError, match="`mean_overlap` has none"):
        show("mean_overlap", schema=True)


def test_models_and_figures_are_shown_with_their_options(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    show("mix-ln")
    (row,) = (line for line in capsys.readouterr().out.splitlines() if "--switch" in line)
    assert all(words in row for words in ("τ", "when Mix-LN turns", "depth-time", "number ≥ 0", "2.0"))
    show("homogenized/overlap-curves")
    (row,) = (line for line in capsys.readouterr().out.splitlines() if "--frames" in line)
    assert row.split() == ["--frames", "recorded", "times,", "evenly", "spaced", "integer", "≥", "1", "161", "641"]
