import json

import pytest
from typer.testing import CliRunner

from pathlines.cli import staircase
from pathlines.foundation.errors import ArgumentError


@pytest.fixture
def run():
    import typer

    app = typer.Typer()
    staircase.register(app)
    app.command(name="other")(lambda: None)
    return lambda *words: CliRunner().invoke(app, ["staircase", *map(str, words)])


def test_table(run):
    result = run("--angles", "0,.5,1.1,2.4", "--beta", 20)
    assert result.exit_code == 0, result.output
    for text in ("2.65633677", "22.8988628", "0.375", "0.25 + 0.25", "rescaled"):
        assert text in result.output


def test_json_and_figure(run, tmp_path):
    path = tmp_path / "steps.svg"
    result = run("--angles", "0,1,2.3", "--masses", "5,3,2", "--beta", 40, "--kind", "sa", "--json", "--figure", path)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert [m["log_time"] for m in document["mergers"]] == pytest.approx([14.268796269, 52.017594747])
    assert document["levels"] == pytest.approx([0.38, 0.68, 1.0])
    assert path.stat().st_size > 1000


def test_random_clusters_in_three_dimensions(run):
    words = ("--n", 4, "--d", 3, "--seed", 7, "--beta", 50, "--merge", "kernel", "--json")
    first, again = run(*words), run(*words)
    assert first.stdout == again.stdout
    assert len(json.loads(first.stdout)["mergers"]) == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--angles", "0,0,1"], "farther apart"),
        (["--angles", "0,1", "--masses", "1,-1"], "must be positive"),
        (["--angles", "0,1", "--masses", "1"], "one entry for each"),
        (["--angles", "0,1", "--beta", "0"], "`beta` must be a finite number > 0"),
        (["--angles", "0,1", "--kind", "soft"], "'usa' or 'sa'"),
        (["--angles", "0,one"], "numbers separated by commas"),
        ([], "either --angles"),
        (["--angles", "0,1", "--n", "3"], "either --angles"),
        (["--n", "0"], "`n` must be an integer ≥ 1"),
        (["--angles", "0,1", "--figure", "steps.jpg"], "must end in .pdf"),
    ],
)
def test_bad_input(run, words, says):
    result = run(*words)
    assert isinstance(result.exception, ArgumentError)
    assert says in str(result.exception)


def test_an_early_end_is_said(run):
    assert "balanced configuration" in run("--angles", "0,3.141592653589793").output
