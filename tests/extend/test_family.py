"""The page "Adding a family", followed to the letter: its files in a copy of the repository are all it takes."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "extend" / "family.md"
FILES = dict(re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL))
LOOK = """
import json, sys
sys.path.insert(0, "src")
import pathlines as pl
assert pl.__file__.startswith(sys.argv[1]), pl.__file__
found = {"lazy": "jax" not in sys.modules and "Moon" in dir(pl.model.tides) and "tides" in dir(pl.limit)}
found["theory"] = float(pl.limit.tides.high_water(0.0, 0.2))
pl.enable_float64()
found["model"] = type(pl.MODELS["moon"].build()) is pl.model.tides.Moon
found["verdict"] = pl.evaluate(pl.CLAIMS["tides/T1"]).verdict
found["figure"] = "tides/spring" in list(pl.FIGURES)
found["paper"] = pl.PAPERS["newton1687tides"].title
sys.path.insert(0, "docs")
import tables
found["tables"] = ["moon" in tables.models(), "tides T1" in tables.papers(), "How long the tide" in tables.benchmarks()]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The repository with the files of the page, none of which was there."""
    folder = tmp_path_factory.mktemp("repository")
    for part in ("src", "docs", "benchmarks"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "_build", "results"))
    for name, text in FILES.items():
        path = folder / name
        assert "tides" in name and not path.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def run(folder, *words):
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_everything_finds_the_family(copy):
    found = json.loads(run(copy, "-c", LOOK, copy).splitlines()[-1])
    assert found == {
        "lazy": True, "theory": pytest.approx(0.2), "model": True, "verdict": "holds", "figure": True,
        "paper": "On the tides", "tables": [True, True, True],
    }  # fmt: skip


def test_its_own_test_passes_and_can_fail(copy):
    name = next(n for n in FILES if n.startswith("tests/"))
    body = f"import sys; sys.path[:0] = ['src', '{Path(name).parent}']; import {Path(name).stem} as t; "
    run(copy, "-c", body + "t.test_high_water_vs_its_equation()")
    wrong = "t.pl.limit.tides.high_water = lambda t, h: t * t * h"
    with pytest.raises(AssertionError, match="Not equal"):
        run(copy, "-c", body + f"{wrong}; t.test_high_water_vs_its_equation()")


def test_stubs_know_it_and_only_written_files_change(copy):
    before = {p: p.read_bytes() for part in ("src", "docs") for p in (copy / part).rglob("*.py*") if p.is_file()}
    write = "runpy.run_path('docs/stubs.py', run_name='__main__')"
    run(copy, "-c", f"import sys, runpy; sys.path.insert(0, 'src'); {write}")
    changed = [p for p, content in before.items() if p.exists() and p.read_bytes() != content and p.suffix != ".pyc"]
    assert changed and all(p.suffix == ".pyi" for p in changed)
    assert "Moon" in (copy / "src/pathlines/model/tides/__init__.pyi").read_text(encoding="utf-8")
