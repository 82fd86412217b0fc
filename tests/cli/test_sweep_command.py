"""pathlines sweep: what it says, its exit codes, and what it refuses before any run."""

import json

import pytest
import xarray as xr

STUDY = """
import numpy as np
import pathlines as pl

def wave(x: float, k: int = 1, seed: int = 0) -> dict:
    if x > 2.5:
        raise ValueError("x is too large")
    return {"y": np.sin(k * x) + np.random.default_rng([seed, k]).normal()}

mine = pl.study(wave, {"x": "0:3:4", "k": [1, 2]}, repeat=2)
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "my_study.py"
    file.write_text(STUDY)
    return file


def events(text):
    return [json.loads(line) for line in text.splitlines()]


def test_a_script_is_swept_and_its_failures_are_told(pathlines, script):
    code, out, _ = pathlines("sweep", script, "--on", "serial", "--out", "s.nc", "--figure", "s.png")
    assert code == 1 and "4 × ValueError: x is too large" in out and "--retry-failed" in out
    data = xr.load_dataset("s.nc")
    assert data.status.sum() == 4 and dict(data.sizes) == {"x": 4, "k": 2, "repeat": 2}
    code, out, _ = pathlines("sweep", script, "--on", "serial", "--json")
    told = events(out)
    assert [e["event"] for e in told] == ["planned", "running", "standing", "finished"]
    assert told[-1]["recalled"] == 16 and told[-1]["computed"] == 0 and told[-1]["failed"] == 4


def test_worker_processes_read_the_script(pathlines, script):
    script.write_text(STUDY + "\nmine.run('processes')\n")  # read as far as this
    code, out, _ = pathlines("sweep", script, "--workers", "1", "--json")
    assert code == 1 and events(out)[-1]["computed"] == 16


def test_a_table_is_a_study_too(pathlines, script, tmp_path):
    table = 'target = "my_study.py:wave"\nrepeat = 2\n[axes]\nx = "0:1:3"\n[setting]\nk = 2\n'
    (tmp_path / "study.toml").write_text(table)
    code, out, _ = pathlines("sweep", tmp_path / "study.toml", "--on", "serial", "--json")
    assert code == 0 and events(out)[0]["runs"] == 6


def test_a_dry_run_runs_nothing(pathlines, results_folder):
    code, out, _ = pathlines("sweep", "sa", "--axis", "beta=1:9:9", "--axis", "n=16,32", "--repeat", 20, "--dry-run")
    assert code == 0 and "360 runs" in out and "2 programs" in out and "GB" in out
    assert not results_folder.exists()


def test_a_model_is_swept(pathlines, tmp_path):
    words = ["sweep", "sa", "--axis", "beta=1,2", "--n", "4", "--until", "0.5", "--record", "mean_overlap"]
    code, out, _ = pathlines(*words, "--out", tmp_path / "s.nc")
    assert code == 0 and "2 of 2 runs" in out
    assert xr.load_dataset(tmp_path / "s.nc").mean_overlap.shape == (2,)
    code, _, error = pathlines(*words[:2], "--axis", "beta=3", *words[4:], "--out", tmp_path / "s.nc")
    assert code == 2 and "--extend" in error
    code, out, _ = pathlines(*words[:2], "--axis", "beta=3", *words[4:], "--out", tmp_path / "s.nc", "--extend")
    assert code == 0 and xr.load_dataset(tmp_path / "s.nc").beta.values.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("sa --axis bta=1:2:3", "Did you mean `beta`"),
        ("sa --axis beta=1:2:0", "has no values"),
        ("sa --axis beta=1 --axis beta=2", "given twice"),
        ("sa --axis beta=-1:1:3 --axis n=0,4", "`beta` = -1.0 (allowed: number ≥ 0); `n` = 0"),
        ("sa --axis beta", "takes NAME=VALUES"),
        ("sa --record clustercount", "Did you mean `cluster_count`"),
        ("saa --axis beta=1", "Did you mean `sa`"),
        ("sa --on nowhere", "Argument `on` must be"),
        ("nothing.py", "There is no file"),
        ("empty.py", "defines no study"),
        ("empty.toml", "defines no study"),
        ("wrong.toml", "Did you mean `axes`"),
        ("broken.toml", "cannot be read"),
        ("empty.py --axis x=1", "stands in it"),
        ("sa --n 100000000", "--force insists"),
    ],
)
def test_what_is_refused_in_one_line(pathlines, tmp_path, monkeypatch, results_folder, words, said):
    monkeypatch.chdir(tmp_path)
    for name, text in (("empty.py", "x = 1"), ("empty.toml", ""), ("wrong.toml", "axs = 1"), ("broken.toml", "= 1")):
        (tmp_path / name).write_text(text)
    code, _, error = pathlines("sweep", *words.split())
    assert code == 2 and said in error and len(error.strip().splitlines()) == 1
    assert not list(results_folder.glob("studies/*/*"))
