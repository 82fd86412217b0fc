"""`pathlines landscape`: minimisers from the command line."""

import json

import pytest
import typer
from typer.testing import CliRunner

from pathlines.cli import landscape
from pathlines.foundation.errors import ArgumentError, PathlinesError

APP = typer.Typer()
landscape.register(APP)
APP.callback()(lambda: None)  # a second entry keeps the verb's name


def said(*words):
    result = CliRunner().invoke(APP, ["landscape", *map(str, words)])
    if isinstance(result.exception, PathlinesError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_json_has_the_reference_pair():
    found = json.loads(said("--neurons", "0:1,2:-.7", "--beta", 4, "--json"))
    assert found["energy"] == pytest.approx(-0.22814547120268, abs=1e-13) and found["kkt_gap"] < 1e-9
    assert found["angles"] == pytest.approx([2 - 0.2127514471191, 2 + 0.2127514471191], abs=1e-10)
    assert found["maximum"] == pytest.approx(0.625)
    (split,) = found["splitting"]
    assert split["neuron"] == 1 and split["rate"] == pytest.approx(0.3) and split["alone"]


def test_text_names_the_criterion():
    text = said("--neurons", "0:1,2:-1.5", "--beta", 4)
    assert "2.0000000000" in text and "KKT gap" in text and "holds all the mass in one point" in text
    assert "more than two points" in said("--neurons", "0:-.3", "--beta", 4)
    assert "others act there too" in said("--neurons", "0:-.5,1:-.4")


def test_file_on_the_sphere_and_figure(tmp_path):
    file = tmp_path / "neurons.toml"
    file.write_text('directions = [[0, 0, 1]]\nstrengths = [-1.5]\nbiases = [0.0]\nactivation = "relu"\n')
    found = json.loads(said("--neurons", file, "--json"))
    assert found["angles"] is None and found["masses"] == pytest.approx([1.0])
    with pytest.raises(ArgumentError, match="draws the circle"):
        said("--neurons", file, "--figure", tmp_path / "x.png")
    said("--figure", tmp_path / "x.png", "--json")
    assert (tmp_path / "x.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--neurons", "0"], "angle:strength pair"),
        (["--neurons", "a:b"], "with numbers"),
        (["--neurons", ""], "at least one"),
        (["--beta", "0"], "`beta` must be a finite number > 0"),
        (["--neurons", "nowhere.toml"], "cannot be read as TOML"),
        (["--activation", "swish"], "no activation `swish`"),
    ],
)
def test_refusals(words, message):
    with pytest.raises(PathlinesError, match=message):
        said(*words)


def test_file_with_other_keys_is_refused(tmp_path):
    file = tmp_path / "neurons.toml"
    file.write_text("weights = [1.0]\n")
    with pytest.raises(ArgumentError, match="must hold strengths"):
        said("--neurons", file)
