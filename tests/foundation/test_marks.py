"""Marks and conventions of claims and models, and that they reach the reader."""

import json

import msgspec
import pytest

from pathlines.claim import CLAIMS, evaluate
from pathlines.cli.show import _claim, _model
from pathlines.cli.verdicts import print_json
from pathlines.draw.report import write_report
from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.marks import check_marks, standing
from pathlines.model import MODELS

MARKED = "followups/D1"


def test_words():
    assert standing(()) == ""
    assert standing(("derived",)) == "[derived] derived here, not in the paper"
    assert standing(("assumed",), "β outside.").endswith("Our convention: β outside.")


@pytest.mark.parametrize(("marks", "word"), [(("guessed",), "marks"), (("assumed",), "convention")])
def test_unknown_marks_and_silent_assumptions_are_refused(marks, word):
    with pytest.raises(ArgumentError, match=f"`{word}`"):
        check_marks(marks, "")


def test_a_convention_reaches_the_reader(tmp_path, capsys):
    claim, outcome = CLAIMS[MARKED], evaluate(CLAIMS[MARKED])
    words = standing(claim.marks, claim.convention)
    assert ("standing", words) in _claim(claim)
    page = write_report(tmp_path / "r.html", [outcome]).read_text(encoding="utf-8")
    assert claim.convention.split(",")[0] in page
    assert "[assumed]" in page
    print_json([outcome], [])
    (said,) = json.loads(capsys.readouterr().out)
    assert said["marks"] == list(claim.marks)
    assert said["convention"] == claim.convention


def test_models_say_it_too():
    known = msgspec.structs.replace(MODELS["sa"], marks=("assumed",), convention="softmax.")
    assert ("standing", standing(("assumed",), "softmax.")) in _model(known)
