"""The command line as a user meets it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pathlines.cli import main
from pathlines.foundation.errors import StoreError
from pathlines.store import Store

PROGRAM = [sys.executable, "-m", "pathlines"]


def in_a_process(*words, env=None):
    result = subprocess.run([*PROGRAM, *map(str, words)], capture_output=True, text=True, env=env, timeout=300)
    assert result.returncode == 0, result.stderr + result.stdout
    return result


@pytest.fixture
def shown(pathlines):
    """Calls the program in this process, checks its exit code and returns what it wrote: to stderr, if that is bad."""

    def call(*words, code=0):
        found, out, err = pathlines(*words)
        assert found == code, err + out
        return out if code == 0 else err

    return call


def test_help_does_not_import_jax():
    code = "import sys, pathlines, pathlines.cli.program; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["verify", "clustering/CL-999"], "Did you mean"),
        (["verify", "clustering/CL-43", "--set", "betta=3"], "no setting `betta`"),
        (["verify", "clustering/CL-43", "--set", "beta=cold"], "must be a number ≥ 0"),
        (["run", "saa"], "Did you mean `sa`"),
        (["run", "sa", "--beta", "-1"], "Setting `beta` of model `sa` must be a number ≥ 0, but is -1"),
        (["run", "sa", "--beta", "NaN"], "must be a number ≥ 0, but is nan"),
        (["run", "sa", "--n", "0"], "Argument `n` must be an integer ≥ 1, but is 0"),
        (["run", "sa", "--d", "0"], "Setting `d` of model `sa` must be an integer ≥ 1, but is 0"),
        (["run", "sa", "--record", "enrgy"], "Did you mean `energy`"),
        (["run", "sa", "--start", "cube:5"], "must have rows of length 1"),
        (["run", "sa", "--form", "span"], "it needs d > n"),
        (["run", "sa", "--method", "rk4"], "give `step`"),
        (["run", "sa", "--out", "/proc/nowhere/run.nc"], "cannot be written"),
        (["figure", "clustering/polytope"], "Did you mean"),
        (["show", "slef-attention"], "Did you mean"),
        (["show", "missing.nc"], "There is no file"),
        (["collapse", "--scheme", "prelnn"], "There is no normalisation scheme"),
        (["collapse", "--n", "1"], "Argument `n` must be an integer ≥ 2, but is 1"),
        (["regime", "--heads", "0"], "Argument `heads` must be an integer ≥ 1, but is 0"),
        (["regime", "--step", "0"], "Argument `step` must be a finite number > 0, but is 0"),
        (["tradeoff", "--n", "1"], "Argument `n` must be an integer ≥ 2, but is 1"),
        (["tradeoff", "--qk-dim", "0.5"], "Argument `p`"),
        (["--load", "nowhere.py", "list", "claims"], "nowhere.py to load"),
        (["list", "modles"], "must be one of models"),
    ],
)
def test_bad_input_is_one_line(words, says, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["pathlines", *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    shown = capsys.readouterr().err
    assert stopped.value.code == 2
    assert says in shown
    assert "Traceback" not in shown
    assert len(shown.strip().splitlines()) == 1


def test_verify_json_has_the_promised_fields(tmp_path, shown):
    report = tmp_path / "report.html"
    result = shown("verify", "clustering/CL-43", "--set", "n1=4", "--json", "--report", report)
    (item,) = json.loads(result)
    promised = {"id", "paper", "statement", "verdict", "expected_verdict", "measured", "expected", "tolerance"}
    promised |= {"error", "seconds", "setting"}
    assert promised <= set(item)
    assert item["setting"]["n1"] == 4
    assert item["verdict"] == "holds"
    assert item["error"] <= item["tolerance"]
    page = report.read_text()
    assert "clustering/CL-43" in page
    assert "<svg" in page
    assert "src=" not in page


def test_verify_tells_a_bad_setting_from_a_bad_verdict(pathlines):
    code, refused, _ = pathlines("verify", "gaussian/C06", "--set", "share=7", "--json")
    assert code == 2
    (claim,) = json.loads(refused)
    assert claim["verdict"] == "error"
    assert "below the blow-up time" in claim["failure"]


def test_verify_at_other_seeds_and_with_mistakes(tmp_path, shown):
    table = tmp_path / "table.md"
    said = shown("verify", "metastability/K1", "clustering/CL-43", "--seeds", "2", "--jobs", "1", "--table", table)
    assert "2 evaluations of 1 seeded claims: 0 unexpected verdicts" in said
    assert "| metastability/K1 | quick | 2 | – |" in table.read_text()
    said = shown("verify", "metastability/K1", "--power", "--table", table)
    assert "1 of 1 two-sided numbers" in said
    assert "metastability/K1 | mean | standard errors |" in table.read_text()
    shown("verify", "metastability/K1", "--table", table, code=2)


def test_verify_reuses_what_is_stored(shown):
    shown("verify", "clustering/CL-43")
    again = shown("verify", "clustering/CL-43")
    assert "stored" in again


def test_run_is_stored_and_can_be_opened_again(tmp_path, shown):
    words = ["run", "sa", "--n", "8", "--d", "3", "--until", "2", "--beta", "2"]
    out, picture = tmp_path / "run.nc", tmp_path / "run.png"
    first = json.loads(shown(*words, "--json", "--out", out, "--figure", picture))
    second = json.loads(shown(*words, "--json", "--figure", picture))
    assert not first["stored"]
    assert second["stored"]
    assert first["final"] == second["final"]
    assert "completed" in shown("show", out)
    assert "2312.10794" in shown("cite", out)
    assert picture.stat().st_size > 1000


def test_killed_run_resumes_to_the_same_bits(tmp_path):
    words = ["run", "sa", "--n", "300", "--d", "3", "--until", "12", "--beta", "9", "--rtol", "1e-11", "--json"]
    whole = json.loads(in_a_process(*words).stdout)
    pathlines_store = tmp_path / "other"
    env = {**os.environ, "PATHLINES_STORE": str(pathlines_store), "PATHLINES_CHECKPOINT_SECONDS": "0"}
    process = subprocess.Popen([*PROGRAM, *words], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not list(Path(pathlines_store).glob("*-partial.nc")) and time.monotonic() < deadline:
        assert process.poll() is None, "the run ended before it could be killed"
        time.sleep(0.02)
    process.kill()
    process.wait()
    resumed = json.loads(in_a_process(*words, env=env).stdout)
    assert resumed["final"] == whole["final"]
    assert resumed["resumed"]


def test_collapse_agrees_with_the_papers_closed_form(shown):
    rows = json.loads(shown("collapse", "--n", "32", "--beta", "4", "--json"))
    post = next(r for r in rows if r["scheme"] == "post")
    assert abs(post["flow_time"] - 6.95350184880807) < 1e-10
    assert abs(post["layer_time"] - 7.439) < 1e-3


def test_list_show_cite(shown):
    listed = json.loads(shown("list", "--json"))
    assert {"models", "claims", "observables", "figures", "animations", "papers", "methods"} == set(listed)
    assert "good values" in shown("show", "sa")
    assert "@misc{karagodin2025normalization" in shown("cite", "pre-ln")


def test_interrupted_verification_keeps_what_it_finished(results_folder):
    words = [*PROGRAM, "verify", "clustering/CL-43", "clustering/CL-06", "clustering/CL-40", "--jobs", "2"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 240
    while not list(results_folder.glob("clustering-*.json")) and time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, shown = process.communicate(timeout=60)
    assert process.returncode in (0, 130)
    assert "Traceback" not in shown
    again = in_a_process("verify", "clustering/CL-43", "clustering/CL-06", "clustering/CL-40")
    assert "stored" in again.stdout


def test_usage_errors_exit_with_two(shown):
    shown("nonsense", code=2)
    shown("run", "--n", "many", code=2)


def test_regime_shows_the_deciding_numbers(shown):
    found = json.loads(shown("regime", "--layers", 1000, "--step", 0.05, "--heads", 8, "--json"))
    assert found["regime"]["label"] == "sde"
    assert set(found["regime"]["numbers"]) == {"ηL", "αηL", "η²L", "η³L"}
    assert found["parameters"]["v"] == pytest.approx(0.05**2 / 8)


def test_tradeoff_is_the_table_of_collapse_times(shown):
    """b = 0 is exactly ln(n + 1); the other number is from the table of collapse times (n = 16, b = 2)."""
    found = json.loads(shown("tradeoff", "--n", 16, "--logit-scale", 2, "--json"))
    assert found["time"] == pytest.approx(2.99253, abs=5e-6)
    assert found["table"]["16"]["0.0"] == pytest.approx(np.log(17))
    assert found["elasticities"]["n"] > 0


def test_brackets_are_printed_as_they_are(shown):
    """`C E[y zᵀ]` is mathematics, and rich would take it for markup."""
    assert "E[y zᵀ]" in shown("show", "gaussian-sigmoid")
    assert "E[y" in shown("list", "models")


def test_a_file_that_exits_is_bad_input(tmp_path, shown):
    file = tmp_path / "leaves.py"
    file.write_text("raise SystemExit(0)")
    said = shown("--load", file, "verify", "clustering/CL-43", code=2)
    assert "could not be loaded: SystemExit" in said


def test_no_seed_to_try_is_bad_input(shown):
    assert "has a seed" in shown("verify", "clustering/CL-43", "--seeds", "2", code=2)


def test_a_full_disk_does_not_take_the_result_away(monkeypatch, capsys):
    def full(self, path, content):
        raise StoreError("The results folder cannot be written (No space left on device).")

    monkeypatch.setattr(Store, "_write", full)
    for words, shown in (
        (["run", "sa", "--n", "3", "--until", "0.1"], "cluster_count"),
        (["verify", "clustering/CL-43"], "holds"),
    ):
        monkeypatch.setattr(sys, "argv", ["pathlines", *words])
        with pytest.raises(SystemExit) as stopped:
            main()
        output = capsys.readouterr()
        assert stopped.value.code == 74
        assert shown in output.out
        assert "No space left" in output.err


def test_a_read_only_store_that_holds_the_result_is_read(monkeypatch, capsys, shown):
    shown("verify", "clustering/CL-43")

    def read_only(self):
        raise StoreError("The results folder cannot be written (Read-only file system).")

    monkeypatch.setattr(Store, "check_writable", read_only)
    monkeypatch.setattr(sys, "argv", ["pathlines", "verify", "clustering/CL-43"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert not stopped.value.code
    assert "stored" in capsys.readouterr().out
