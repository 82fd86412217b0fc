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
    assert found["net"] == pytest.approx(found["misassigned"]) and found["w2"] == pytest.approx(found["plateau"])
    none = RUN.invoke(app, ["misassignment", "--mean-angle", "90"]).output
    assert "no mass goes to the wrong pole" in none and "too small" not in none
    same = json.loads(RUN.invoke(app, ["misassignment", "--value", "1,0,0,0.3", "--json"]).stdout)
    assert same["misassigned"] == pytest.approx(0.0025135881, rel=1e-8)


@pytest.mark.parametrize("words", [["--beta", "0.001"], ["--value", "1,0.999999"], ["--beta", "8"]])
def test_no_sentence_where_the_theory_ends(words, tmp_path):
    said = RUN.invoke(app, ["misassignment", *words, "--figure", str(tmp_path / "none.png")]).output
    assert "too small for this theory" in said and "%" not in said
    found = json.loads(RUN.invoke(app, ["misassignment", *words, "--json"]).stdout)
    assert found["reliable"] is False and found["misassigned"] is found["plateau"] is None


def test_a_run_without_a_separatrix_says_so():
    said = RUN.invoke(app, ["misassignment", "--beta", "0.1", "--simulate", "--n", "200"]).output
    assert "not parted" in said and "nan" not in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--value", "1"], "two eigenvalues or four entries"),
        (["--value", "1,2,3,4"], "`value` must be symmetric"),
        (["--value=-1,-2"], "a positive eigenvalue"),
        (["--beta", "0"], "`beta` must be a finite number"),
        (["--kappa=-1"], "`kappa` must be a finite number"),
        (["--kappa", "450"], "`kappa` must be a finite number"),
        (["--simulate", "--n", "3"], "`n` must be between 200"),
    ],
)
def test_what_cannot_be_is_one_line(words, message):
    with pytest.raises(ArgumentError, match=message):
        RUN.invoke(app, ["misassignment", *words], catch_exceptions=False)
