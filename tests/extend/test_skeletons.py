"""A new model, observable or claim is one file: each skeleton, copied as it stands, works."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

SKELETONS = Path(__file__).parents[2] / "docs" / "extend" / "skeletons"


def run(*words):
    result = subprocess.run([sys.executable, "-m", "pathlines", *map(str, words)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr + result.stdout
    return result.stdout


def test_observable_and_model_from_files_of_their_own(tmp_path):
    for name in ("observable", "model"):
        shutil.copy(SKELETONS / f"{name}.py", tmp_path / f"my_{name}.py")
    loads = ("--load", tmp_path / "my_observable.py", "--load", tmp_path / "my_model.py")
    words = ("run", "mean-pull", "--gain", "2", "--n", "6", "--until", "1", "--record", "closest_pair", "--json")
    final = json.loads(run(*loads, *words))["final"]
    assert final["closest_pair"] > 0


def test_claim_from_a_file_of_its_own(tmp_path):
    shutil.copy(SKELETONS / "claim.py", tmp_path / "my_claim.py")
    (item,) = json.loads(run("--load", tmp_path / "my_claim.py", "verify", "mine", "--json"))
    assert (item["id"], item["verdict"]) == ("mine/first", "holds")


def test_a_file_dropped_into_a_room_is_found(tmp_path):
    """The package copied elsewhere with the three skeletons added, and nothing else edited, knows them."""
    package = Path(__file__).parents[2] / "src" / "pathlines"
    copy = tmp_path / "pathlines"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(SKELETONS / "observable.py", copy / "observable" / "closest_pair.py")
    shutil.copy(SKELETONS / "model.py", copy / "model" / "mean_pull.py")
    shutil.copy(SKELETONS / "claim.py", copy / "claim" / "mine.py")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import pathlines;"
        f"assert pathlines.__file__.startswith({str(tmp_path)!r}), pathlines.__file__;"
        "pathlines.enable_float64();"
        "assert 'mean-pull' in list(pathlines.MODELS) and 'closest_pair' in list(pathlines.OBSERVABLES);"
        "print(pathlines.evaluate(pathlines.CLAIMS['mine/first']).verdict)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert result.stdout.strip() == "holds", result.stderr
