"""Sizes that no machine can afford are refused before any work, with the limit named; --force insists."""

import json
import time

import pytest

from pathlines.architecture.record import divisors_near
from pathlines.foundation.bounds import enlarged
from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.setting import Setting


@pytest.fixture
def files(tmp_path):
    many = [0.001 * k for k in range(4000)]
    (tmp_path / "neurons.toml").write_text(f"angles = {many}\nstrengths = {many}\n")
    wide = [[float(i == j) for j in range(300)] for i in range(300)]
    (tmp_path / "wide.json").write_text(json.dumps({"value": wide}))
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        "landscape --beta 1e12",
        "landscape --neurons {files}/neurons.toml",
        "gaussian {files}/wide.json",
        "tradeoff --n 1000000000000",
        "probe {files}/nowhere --seeds 1000000000",
        "probe {files}/nowhere --layers 1000000000000",
        "verify homogenized/C09 --set n=1000000000",
        "figure clustering/precision --n 1000000000 --figure {files}/p.pdf",
        "run sa --n 100000000",
        "run circle-density --degree 1000000000",
        "run random --d 4 --heads 1000000000",
        "animate metastability/life-of-clusters --n 1000000000 --animate {files}/film.gif",
    ],
)
def test_absurd_sizes(pathlines, files, line):
    began = time.process_time()
    code, _, said = pathlines(*line.format(files=files).split())
    assert (code, said.count("\n")) == (2, 1) and "but the limit is" in said and "--force insists" in said
    assert time.process_time() - began < 10


def test_insisting(pathlines, files):
    """The bound is gone; what comes next is that there is no such model."""
    code, _, said = pathlines("probe", files / "nowhere", "--seeds", "1000000000", "--force")
    assert code == 2 and "limit" not in said


class Usual(Setting):
    n: int = 10
    sizes: tuple[int, ...] = (5, 20)
    seed: int = 3
    beta: float = 1.0
    exact: bool = True


def test_whole_numbers_of_a_setting_multiply():
    enlarged("It", 60.0, Usual(), Usual(seed=10**9, beta=1e9, n=1, sizes=(20, 4)))
    enlarged("It", 60.0, Usual(), Usual(n=100, sizes=(2000, 1)))
    with pytest.raises(ArgumentError, match=r"It at this setting would take 33 hours, but the limit is 24"):
        enlarged("It", 60.0, Usual(), Usual(n=200, sizes=(2000, 1)))
    enlarged("It", 60.0, Usual(), Usual(n=10**9), force=True)


def test_divisors_of_a_huge_width_are_found_at_once():
    assert divisors_near(768, 10) == [8, 12]
    assert divisors_near(10**9, 12) == [8, 10]


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes")])
def test_not_enough_memory_is_no_bug(pathlines, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr("pathlines.cli.patterns._sentences", fail)
    code, _, said = pathlines("patterns", "--beta", "9")
    assert (code, said) == (71, "pathlines: There is not enough memory for this size on this machine.\n")
