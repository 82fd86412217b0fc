"""`pathlines context`: a sentence, numbers, a picture."""

import json

import pytest
import typer
from typer.testing import CliRunner

from pathlines.cli import context
from pathlines.foundation.errors import ArgumentError, PathlinesError

APP = typer.Typer()
context.register(APP)
APP.callback()(lambda: None)  # a second entry keeps the verb's name


def said(*words):
    result = CliRunner().invoke(APP, ["context", *map(str, words)])
    if isinstance(result.exception, PathlinesError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_both_directions():
    found = json.loads(said("--query-norm", 1.2, "--error", 0.05, "--json"))
    assert found["gaussian_n"] == pytest.approx(9184, rel=1e-3) and found["n"] == pytest.approx(9140, rel=1e-3)
    back = json.loads(said("--query-norm", 1.2, "--n", 9140, "--json"))
    assert back["error"] == pytest.approx(0.05, rel=1e-3)
    assert "few keys decide" in " ".join(said("--query-norm", 3, "--error", 0.1).split())


def test_blunt_queries_and_few_keys():
    """At q = 0 the law is exact; keys are whole."""
    assert "holds here" in " ".join(said("--query-norm", 0).split())
    found = json.loads(said("--query-norm", 0, "--error", 1.09, "--json"))
    assert (found["n"], found["regime"], found["ratio"]) == (4, "gaussian", pytest.approx(1))
    assert "a single key" in " ".join(said("--query-norm", 3, "--error", 100).split())


def test_drawn_contexts_and_picture(tmp_path):
    picture = tmp_path / "context.png"
    found = json.loads(said("--query-norm", 1, "--n", 200, "--simulate", "--json", "--figure", picture))
    drawn = found["simulated"]
    assert abs(drawn["error"] - found["error"]) < 5 * drawn["standard_error"]
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--query-norm", -1), "`query_norm` must be a finite number"),
        (("--error", 0), "`error` must be a finite number > 0"),
        (("--n", 0), "`n` must be an integer ≥ 1"),
        (("--n", 5, "--error", 0.1), "give one of them"),
        (("--query-norm", 5, "--simulate"), "but the limit is"),
    ],
)
def test_refusals(words, message):
    with pytest.raises(ArgumentError, match=message):
        said(*words)
