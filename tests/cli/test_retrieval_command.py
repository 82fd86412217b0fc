"""pathlines retrieval: profile, sentences, masks, files, bad input in one line."""

import json

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

from pathlines.cli.program import app
from pathlines.limit.causal.forecast import retrieval_forecast
from pathlines.limit.causal.paths import alibi_matrix
from pathlines.limit.causal.profile import retrieval_profile


def said(*words):
    result = CliRunner().invoke(app, ["retrieval", *words])
    return result


def test_says_what_a_person_can_use():
    result = said("--n", "64")
    assert result.exit_code == 0, result.output
    assert "Regime: U." in result.output
    assert "Recency is lost beyond depth 3.362 (now 1)." in result.output


def test_json_holds_the_profile_and_its_limit():
    found = json.loads(said("--n", "64", "--json").output)
    assert found["closed_form"][31] == pytest.approx(1.2163696930771, rel=1e-12)
    assert found["recency_lost"] == pytest.approx(3.3615486531, rel=1e-10)
    assert len(found["profile"]) == 63


def test_simulation_is_saved_beside_theory(tmp_path):
    path = tmp_path / "profile.nc"
    result = said(
        "--n",
        "12",
        "--depth",
        "0.3",
        "--simulate",
        "--prompts",
        "500",
        "--out",
        str(path),
        "--figure",
        str(tmp_path / "u.png"),
    )
    assert result.exit_code == 0, result.output
    data = xr.load_dataset(path)
    assert np.all(np.abs(data["profile"] - data["paths"]) < 5 * data["error"] + 0.15 * data["paths"])
    assert (tmp_path / "u.png").stat().st_size > 5000
    assert said("--n", "12", "--out", str(tmp_path / "p.csv")).exit_code == 0
    assert (tmp_path / "p.csv").read_text().startswith("position,paths,closed_form\n1,")


def test_measured_warnings_are_said():
    words = ("--n", "8", "--beta", "2", "--simulate", "--prompts", "6")
    assert "6 prompts: errors are 3.1 times the sample's" in said(*words).output
    assert "meaningful below 0.05" in json.loads(said(*words, "--json").output)["measured_warning"]


def test_masks_are_ranked_by_their_worst_position():
    result = said("--n", "48", "--compare", "window:4", "--compare", "causal", "--compare", "sink:1:4", "--json")
    found = json.loads(result.output)
    assert found[0]["mask"] == "causal"
    assert [f["worst"] for f in found] == sorted((f["worst"] for f in found), reverse=True)


def test_forecast_of_a_matrix_has_the_depths_of_the_closed_form():
    matrix = retrieval_forecast(1.0, 2.0, 8, 1.0, 400, mask=alibi_matrix(400, 2.0))
    assert matrix.regime == "U"
    # finite differences of the last two of 400 sources, instead of the slope at the end
    assert matrix.recency_lost == pytest.approx(retrieval_profile(1.0, 2.0, 8, 1.0).recency_lost, rel=0.01)
    assert retrieval_forecast(1.0, 0.0, 8, 1.0, 50, mask=alibi_matrix(50, 0.0)).recency_lost == 0


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--mask", "windw:3"], "There is no mask"),
        (["--n", "1"], "`n`"),
        (["--depth", "0"], "`depth`"),
        (["--vocabulary", "1"], "`vocabulary`"),
        (["--beta", "nan"], "`beta`"),
        (["--slope", "inf"], "`slope`"),
        (["--compare", "causal", "--simulate"], "different questions"),
        (["--out", "x.txt"], ".nc or .csv"),
        (["--n", "100000", "--mask", "window:8"], "--force"),
        (["--simulate", "--prompts", "1"], "`prompts`"),
    ],
)
def test_bad_input_is_one_line(words, part):
    result = said(*words)
    assert result.exit_code != 0
    assert part in str(result.exception) + result.output
