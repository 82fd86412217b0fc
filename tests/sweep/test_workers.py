"""Workers: a group stays together, a death costs one item, nothing is imported from the current folder."""

import os
import signal
import subprocess
import sys
import time
from multiprocessing.context import SpawnProcess
from pathlib import Path

import pytest

from pathlines.foundation.errors import PathlinesError
from pathlines.sweep.workers import Aside, Lost, spread


def double(item):
    if item == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if item == "leave":
        os._exit(3)
    return os.getpid() if item == "who" else 2 * item


def double_or_sleep(item):
    return time.sleep(600) if item == "sleep" else double(item)


def sleep_long(folder):
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(600)


def first_folder(_):
    return sys.path[0], sys.flags.safe_path


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


def test_a_worker_killed_before_it_has_begun_is_started_again(monkeypatch):
    honest, left = SpawnProcess.start, [2]

    def start(self):
        if left[0]:
            left[0] -= 1
            raise BrokenPipeError
        honest(self)

    monkeypatch.setattr(SpawnProcess, "start", start)
    assert list(spread(double, [[4]], 1)) == [(4, 8)]
    left[0] = 1000
    with pytest.raises(PathlinesError, match="killed as soon as they start"):
        list(spread(double, [[4]], 1))


def test_a_group_is_done_by_one_worker_in_order():
    begun = []
    results = list(spread(double, [["who", "who", "who"], ["who"]], 2, begun.append))
    pids = [pid for _, pid in results]
    assert len(begun) == 4
    assert max(pids.count(p) for p in set(pids)) >= 3


def test_workers_do_not_outlive_a_killed_parent(tmp_path):
    """The parent is a process that spreads an endless item and is killed once that is begun."""
    code = f"import test_workers as t; list(t.spread(t.sleep_long, [[{str(tmp_path)!r}]], 1))"
    path = os.pathsep.join([str(Path(__file__).parent), os.environ["PYTHONPATH"]])
    parent = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path})
    wait_for(lambda: list(tmp_path.iterdir()))
    parent.kill()
    parent.wait()
    wait_for(lambda: not any(running(int(f.name)) for f in tmp_path.iterdir()))


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def running(pid):
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("said", [None, ""])
def test_nothing_is_imported_from_the_current_folder(tmp_path, monkeypatch, said):
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    if said is not None:
        monkeypatch.setenv("PYTHONSAFEPATH", said)
    (tmp_path / "struct.py").write_text("raise SystemExit('planted')")
    monkeypatch.chdir(tmp_path)
    ((_, (folder, safe)),) = spread(first_folder, [["x"]], 1)
    assert safe
    assert folder not in ("", str(tmp_path))


def test_groups_may_have_processes_of_their_own():
    def told(apart):
        return [result for _, result in spread(double, [["who", "who"], ["who"], ["who"]], 1, apart=apart)]

    assert len(set(told(apart=False))) == 1
    first, same, *others = told(apart=True)
    assert first == same
    assert len({first, *others}) == 3


def test_an_item_aside_that_takes_too_long_or_dies_costs_nothing_but_itself(tmp_path):
    aside = Aside(double_or_sleep)
    try:
        assert aside.ask(4, 60.0) == 8
        same = aside.ask("who", 60.0)
        assert aside.ask("who", 60.0) == same
        assert aside.ask("sleep", 0.5) == Lost("it took longer than 0.5 s")
        assert isinstance(aside.ask("die", 60.0), Lost)
        assert aside.ask("who", 60.0) != same
    finally:
        aside.close()
