"""pathlines misassignment: a sentence, JSON, a picture, and one line for what cannot be."""

import json

import pytest
from typer.testing import CliRunner

from pathlines.cli.program import app
from pathlines.foundation.errors import ArgumentError

RUN = CliRunner()


def test_sentence_and_numbers(tmp_path):
    file = tmp_path / "wrong.png"
    said = RUN.invoke(app, ["misassignment", "--figure", str(file)])
    assert said.exit_code == 0 and "0.251% of the tokens end at the wrong pole" in said.output
    assert file.stat().st_size > 0
    found = json.loads(RUN.invoke(app, ["misassignment", "--beta", "1e8", "--json"]).stdout)
    assert found["leading_order"] * 1e8 == pytest.approx(0.1600756522, rel=1e-9) and found["rate"] == pytest.approx(
        0.35
    )
    none = RUN.invoke(app, ["misassignment", "--mean", "90"]).output
    assert "no mass goes to the wrong pole" in none
    same = json.loads(RUN.invoke(app, ["misassignment", "--value", "1,0,0,0.3", "--json"]).stdout)
    assert same["misassigned"] == pytest.approx(0.0025135881, rel=1e-8)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--value", "1"], "two eigenvalues or four entries"),
        (["--value", "1,2,3,4"], "`value` must be symmetric"),
        (["--value=-1,-2"], "a positive eigenvalue"),
        (["--beta", "0"], "`beta` must be a finite number"),
        (["--kappa=-1"], "`kappa` must be a finite number"),
        (["--simulate", "--n", "3"], "`n` must be between 200"),
    ],
)
def test_what_cannot_be_is_one_line(words, message):
    with pytest.raises(ArgumentError, match=message):
        RUN.invoke(app, ["misassignment", *words], catch_exceptions=False)
