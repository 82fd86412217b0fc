"""pathlines bench as a user meets it, at a tiny size and without peers."""

import json
import sys

import pytest

from pathlines.cli import main
from pathlines.sweep.bench import case, report
from pathlines.sweep.bench.machine import Machine


@pytest.fixture
def alone(monkeypatch):
    """No peers, no peaks."""
    rates = {"float32": 8.0, "float64": 2.0}
    monkeypatch.setattr(case, "installed", lambda module: False)
    monkeypatch.setattr(report, "machine", lambda: Machine("a processor", 1, {}, rates, rates, {}, 1.0, 1.0))


def pathlines(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["pathlines", *map(str, words)])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code


def test_writes_numbers_figure_and_page(alone, monkeypatch, capsys, tmp_path):
    numbers, figure, page = tmp_path / "b.json", tmp_path / "pictures" / "b.png", tmp_path / "b.md"
    words = ["--only", "drift/n=32,d=3/float64", "--quick", "--out", numbers, "--figure", figure, "--page", page]
    assert pathlines(monkeypatch, "bench", *words) == 0
    shown = capsys.readouterr()
    assert "left out: PyTorch, KeOps, FINUFFT, torchdiffeq, diffrax" in shown.err
    assert "pip install 'pathlines[bench]'" in shown.err
    assert "drift/n=32,d=3/float64" in shown.out
    assert "PyTorch SDPA: PyTorch is not installed" in shown.out
    found = json.loads(numbers.read_text())
    assert [r["case"] for r in found["results"]] == ["drift/n=32,d=3/float64"]
    assert all(t["error"] < 1e-14 for r in found["results"] for t in r["timings"])
    assert "](pictures/b.png)" in page.read_text()
    assert figure.stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--only", "drfit"], "No bench case matches `drfit`"),
        (["--out", "/proc/nowhere/b.json"], "cannot be written"),
        (["--page", "/proc/nowhere/b.md"], "cannot be written"),
        (["--figure", "b.txt"], "must end in .pdf, .svg or .png"),
    ],
)
def test_bad_input_is_one_line(words, says, alone, monkeypatch, capsys):
    assert pathlines(monkeypatch, "bench", *words) == 2
    shown = capsys.readouterr().err
    assert says in shown
    assert len(shown.strip().splitlines()) == 1
