"""Workers: a group stays together, a death costs one item, nothing is imported from the current folder."""

import os
import signal
import sys

import pytest

from pathlines.sweep.workers import Lost, spread


def double(item):
    if item == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if item == "leave":
        os._exit(3)
    return os.getpid() if item == "who" else 2 * item


def first_folder(_):
    return sys.path[0], "PYTHONSAFEPATH" in os.environ


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(p for p in sys.path if p))


def test_a_killed_worker_costs_its_item_only():
    found = list(spread(double, [[1, "die", 2], [3], ["leave"], [4]], 2))
    results = {str(item): result for item, result in found}
    assert {k: results[k] for k in "1234"} == {"1": 2, "2": 4, "3": 6, "4": 8}
    assert isinstance(results["die"], Lost)
    assert "SIGKILL (out of memory?)" in results["die"].reason
    assert "exit code 3" in results["leave"].reason
    assert len(found) == 6


def test_a_group_is_done_by_one_worker_in_order():
    begun = []
    results = list(spread(double, [["who", "who", "who"], ["who"]], 2, begun.append))
    pids = [pid for _, pid in results]
    assert len(begun) == 4
    assert max(pids.count(p) for p in set(pids)) >= 3


def test_nothing_is_imported_from_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "struct.py").write_text("raise SystemExit('planted')")
    monkeypatch.chdir(tmp_path)
    ((_, (folder, safe)),) = spread(first_folder, [["x"]], 1)
    assert safe
    assert folder not in ("", str(tmp_path))
