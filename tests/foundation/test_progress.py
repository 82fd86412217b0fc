"""Anything over two seconds is said: as a bar on a terminal, as few lines elsewhere."""

import subprocess
import sys

import pytest

from pathlines.foundation import progress
from pathlines.foundation.progress import PATIENCE, Progress


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test turns."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def lines_of(clock, capsys, seconds, **how):
    with Progress("flow to t = 3", 200, **how) as bar:
        for second in range(seconds):
            clock[0] = float(second)
            bar.update(second, "x")
    return capsys.readouterr().err.splitlines()


def test_two_seconds_are_silent(clock, capsys):
    assert lines_of(clock, capsys, int(PATIENCE)) == []


def test_lines_come_when_the_time_has_doubled(clock, capsys):
    found = lines_of(clock, capsys, 70)
    assert found == [f"flow to t = 3 x: {k / 200:.0%}" for k in (2, 4, 8, 16, 32, 64)]


def test_what_is_done_is_not_said(clock, capsys):
    with Progress("one step", 1) as bar:
        clock[0] = 9.0
        bar.update(1)
    assert capsys.readouterr().err == ""


def test_silence_can_be_asked_for(clock, capsys):
    assert lines_of(clock, capsys, 70, show=False) == []


def test_worker_processes_are_silent():
    code = """
import multiprocessing, time
from pathlines.foundation import progress

def work():
    progress.PATIENCE = -1.0
    with progress.Progress("work", 2) as bar:
        bar.update(1)

if __name__ == "__main__":
    work()
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == ["work: 50%"]
