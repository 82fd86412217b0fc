"""`pathlines gaussian`: classes from files and examples, and errors in one line."""

import json

import pytest
import typer
from typer.testing import CliRunner

from pathlines.cli import gaussian
from pathlines.cli.gaussian import judge, read_problem
from pathlines.foundation.errors import ArgumentError, UnknownNameError

app = typer.Typer()
gaussian.register(app)


def written(tmp_path, text, name="weights.toml"):
    file = tmp_path / name
    file.write_text(text)
    return str(file)


def test_json_of_a_file(tmp_path):
    """V = I and the reference A, Σ_0: T* = 0.967210227575; a small cloud is trusted, a strong one is not."""
    file = written(
        tmp_path, "value = [[1, 0], [0, 1]]\nscore = [[0.5, 0.2], [-0.3, 0.4]]\ncovariance = [[1, 0.3], [0.3, 0.7]]\n"
    )
    result = CliRunner().invoke(app, [file, "--json", "--n", "100000"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.output)
    assert document["fate"]["kind"] == "blow-up"
    assert document["fate"]["blow_up_time"] == pytest.approx(0.967210227575, rel=1e-8)
    assert document["trust"]["verdict"] == "yes"
    assert 0 < document["trust"]["ends"] < document["fate"]["blow_up_time"]
    assert judge(read_problem(file, None) | {"scale": 4.0}, 1000, 0.1, 1e6, 1e-8)["trust"]["verdict"] == "no"


def test_text_of_an_example():
    result = CliRunner().invoke(app, ["blow-up"])
    assert result.exit_code == 0, result.output
    assert "class        blow-up" in result.output and "T*           0.70234049" in result.output
    assert "finite n" in result.output


def test_json_files_and_other_kinds(tmp_path):
    file = written(
        tmp_path, json.dumps({"value": [[1, 0], [0, 1]], "query": [[1, 0]], "key": [[-1, 0]], "kind": "l2"}), "w.json"
    )
    problem = read_problem(file, None)
    assert problem["kind"] == "l2" and problem["covariance"] == [[1, 0], [0, 1]]
    assert read_problem(file, "sinkhorn")["kind"] == "sinkhorn"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("score = [[1.0]]", "must give the value matrix"),
        ("value = [[1, 2, 3], [4, 5, 6]]", r"`value` must be a square matrix, but has shape \(2, 3\)"),
        ("value = [[1, 0], [0, 1]]\nquery = [[1, 0, 0]]\nkey = [[1, 0, 0]]", "must both be p × 2"),
        ("value = [[1, 0], [0, 1]]\nquery = [[1, 0]]\nkey = [[1, 0], [0, 1]]", "1 × 2 and 2 × 2"),
        ("value = [[1, 0], [0, 1]]\ncovariance = [[1, 0], [0, -0.5]]", "has the eigenvalue -0.5"),
        ("value = [[1]]\nscore = [[1]]\nquery = [[1]]\nkey = [[1]]", "not both"),
        ("value = [[1]]\nscore = [[1]]\nkind = 'l2'", "needs `query` and `key`"),
        ("value = [[1]]\ntemperature = 2", "has temperature; allowed are"),
        ("value = [[1]]\nkind = 'sigmoid'", "run gaussian-sigmoid"),
        ("value = [[", "cannot be read"),
    ],
)
def test_refusals(tmp_path, text, message):
    with pytest.raises(ArgumentError, match=message):
        read_problem(written(tmp_path, text), None)


def test_refusals_of_the_model(tmp_path):
    file = written(tmp_path, "value = [[1.0]]\neps = 0.0\nkind = 'sinkhorn'\n")
    with pytest.raises(ArgumentError, match="`eps` must be a finite number > 0"):
        judge(read_problem(file, None), 10, 0.1, 1e6, 1e-8)
    with pytest.raises(UnknownNameError, match="Attention `hardmax` has no Gaussian closure"):
        judge(read_problem(file, "hardmax"), 10, 0.1, 1e6, 1e-8)
    with pytest.raises(ArgumentError, match="There is no example `bow-up`"):
        read_problem("bow-up", None)
    with pytest.raises(ArgumentError, match="There is no file"):
        read_problem("absent.toml", None)


def test_unknown_examples_and_tolerances():
    with pytest.raises(ArgumentError, match=r"there are blow-up, both, .* zero; a file ends in"):
        read_problem("blowup", None)
    with pytest.raises(ArgumentError, match="`rtol` must be"):
        judge(read_problem("zero", None), 100, 0.1, 1e3, 0.0)
