"""pathlines transport fit and sample, on files."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from pathlines.cli.program import app
from pathlines.foundation.errors import ArgumentError
from pathlines.transport.schedule import read_schedule

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 1))
DATA = np.column_stack([X[:, 0], np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=400)])


def run(*words):
    found = CliRunner().invoke(app, ["transport", *map(str, words)], catch_exceptions=False)
    return found.exit_code, found.output


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".parquet"])
def test_fit_then_sample(tmp_path, suffix):
    file, flow = tmp_path / f"samples{suffix}", tmp_path / "flow.json"
    frame = pd.DataFrame(DATA, columns=["x", "y"])
    {
        ".npy": lambda: np.save(file, DATA),
        ".csv": lambda: frame.to_csv(file, index=False),
        ".parquet": lambda: frame.to_parquet(file),
    }[suffix]()
    code, text = run("fit", file, "--out", flow, "--json")
    assert code == 0 and json.loads(text)["pieces"] == read_schedule(flow).count
    code, text = run("sample", flow, "-n", 200, "--given", "0.3")
    drawn = np.array([[float(v) for v in line.split(",")] for line in text.split()])
    assert code == 0 and drawn.shape == (200, 2) and (drawn[:, 0] == 0.3).all()
    assert abs(drawn[:, 1].mean() - np.sin(0.6)) < 0.3  # smoothing moves it by less than the noise of y
    assert run("sample", flow, "-n", 50, "--out", tmp_path / "draws.npy")[0] == 0
    assert np.load(tmp_path / "draws.npy").shape == (50, 2)


def test_one_cloud_to_another(tmp_path):
    one, other, flow = tmp_path / "one.npy", tmp_path / "other.npy", tmp_path / "flow.json"
    np.save(one, X)
    np.save(other, 2 * RNG.normal(size=(300, 1)) + 5)
    assert run("fit", one, "--to", other, "--pieces", 12, "--out", flow)[0] == 0
    code, text = run("sample", flow, "--points", one)
    moved = np.array([float(v) for v in text.split()])
    assert code == 0 and abs(moved.mean() - 5) < 0.5 and abs(moved.std() - 2) < 0.3


def test_a_missed_target_writes_nothing(tmp_path):
    file, flow = tmp_path / "samples.npy", tmp_path / "flow.json"
    np.save(file, DATA)
    with pytest.raises(ArgumentError, match="`error` = 1e-06 was not met with 400 samples: KL is estimated"):
        run("fit", file, "--error", 1e-6, "--out", flow)
    assert not flow.exists()


def test_an_error_that_is_met(tmp_path):
    file, flow = tmp_path / "samples.npy", tmp_path / "flow.json"
    np.save(file, DATA)
    code, text = run("fit", file, "--error", 0.9, "--out", flow, "--json")
    said = json.loads(text)
    assert code == 0 and said["kl"] + 2 * said["kl_error"] <= 0.9
    assert read_schedule(flow).count == said["pieces"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("1,2\n3,nan\n5,6\n", "row 1"),
        ("a,b\nc,d\n", "cannot be read as numbers"),
        ("1,1\n" * 40, "singular covariance"),
    ],
)
def test_bad_tables_get_one_line(tmp_path, content, words):
    file, flow = tmp_path / "samples.csv", tmp_path / "flow.json"
    file.write_text(content)
    with pytest.raises(ArgumentError, match=words):
        run("fit", file, "--out", flow)
    assert not flow.exists()


def test_what_cannot_be_conditioned(tmp_path):
    flow = tmp_path / "flow.json"
    from pathlines.transport.euclid.affine import rotation_schedule

    rotation_schedule(0.5).save(flow)
    with pytest.raises(ArgumentError, match="not triangular"):
        run("sample", flow, "--given", "1")
    with pytest.raises(ArgumentError, match="first 1 of 2"):
        run("sample", flow, "--given", "1,2")
