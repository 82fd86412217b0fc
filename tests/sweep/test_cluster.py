"""Dask clusters: workers that are killed, schedulers that do not answer, versions that differ, files that are sent."""

import logging
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from studied import noisy, watched

import pathlines as pl
from pathlines.foundation.errors import ArgumentError, PathlinesError
from pathlines.sweep import cluster
from pathlines.sweep.cluster import DaskCluster, is_cluster
from pathlines.sweep.verify import Job, verify_jobs

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")
AXES, COUNT = {"x": "0:3:31"}, 31


@pytest.fixture(scope="module")
def local():
    """A cluster of one worker, which is replaced when it dies."""
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
    ) as found:
        yield found


def test_a_killed_worker_loses_nothing(local, tmp_path):
    whole = pl.study(watched, AXES, log=str(tmp_path / "whole")).run(store=tmp_path / "whole-store")
    log, seen, killed = tmp_path / "log", [], []

    def kill():
        """SIGKILL to the worker by its id, while a chunk is in flight."""
        with distributed.Client(local, set_as_default=False) as client:
            while not log.exists() or len(log.read_text().split()) < 6:
                time.sleep(0.01)
            for pid in client.run(os.getpid).values():
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    killer = threading.Thread(target=kill)
    killer.start()
    made = pl.study(watched, AXES, log=str(log), pause=0.05)
    data = made.run(local.scheduler_address, store=tmp_path, watch=seen.append)
    killer.join()
    assert killed and all(data[n].values.tobytes() == whole[n].values.tobytes() for n in ("sine", "powers", "status"))
    assert COUNT <= len(log.read_text().split()) <= COUNT + len(killed)
    assert seen[-1].done == COUNT and seen[-1].failed == 0
    assert len(list(tmp_path.glob("studies/function-watched-*/[!.]*.chunk"))) == COUNT


@pytest.mark.slow
def test_claims_are_verified_on_a_cluster(local, results_folder):
    from pathlines.store import Store

    jobs = [Job("clustering/CL-43", "quick", {"beta": beta}) for beta in (1.0, 3.0)]
    found = list(verify_jobs(jobs, store=Store(), on=local.scheduler_address))
    assert [f.outcome.verdict for f in found] == ["holds", "holds"]
    assert all(f.stored for f in verify_jobs(jobs, store=Store(), on=local.scheduler_address))


CLAIM = """
from pathlines.claim import Evidence, claim, relative
from pathlines.foundation.papers import Paper
from pathlines.foundation.setting import Setting

class Plain(Setting):
    x: float = 1.0

PAPER = Paper("me", "Mine", ("Me",), "0000.00000", 2026)
claim("shipped/seven", PAPER, "seven", "7 x", where="here", models=("sa",), quick=Plain(),
      within={"y": relative(0.01, "exact")}, simulate=lambda s: Evidence({"y": [7 * s.x]}),
      predict=lambda s: Evidence({"y": [7.0 * s.x]}))
"""


@pytest.mark.slow
def test_a_claim_of_a_persons_own_is_sent_to_workers_that_do_not_have_its_file(
    local, results_folder, tmp_path, monkeypatch
):
    """Its file vanishes before the worker looks; the outcome lies where the driver asks."""
    from pathlines.foundation.load import load_file
    from pathlines.store import Store

    mine = tmp_path / "mine.py"
    mine.write_text(CLAIM)
    load_file(mine)
    job = Job("shipped/seven", "quick", {"x": 2.0}, load=(str(mine),))
    where = job.address
    asked = cluster.DaskCluster.spread

    def vanished(self, function, groups, started=None):
        mine.unlink()
        yield from asked(self, function, groups, started)

    monkeypatch.setattr(cluster.DaskCluster, "spread", vanished)
    (found,) = verify_jobs([job], store=Store(), on=local.scheduler_address)
    monkeypatch.setattr(cluster.DaskCluster, "spread", asked)
    assert found.outcome is not None, found.failure
    assert found.outcome.verdict == "holds"
    mine.write_text(CLAIM)
    assert job.address == where
    assert next(verify_jobs([job], store=Store(), on=local.scheduler_address)).stored


def test_workers_with_other_code_are_refused_at_the_start(local, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "engine_code", lambda: str(os.getpid()))
    monkeypatch.setattr(cluster.DaskCluster, "spread", lambda *a: pytest.fail("nothing must run"))
    with pytest.raises(PathlinesError, match="has other code or versions than this driver"):
        pl.study(noisy, {"x": [1.0]}).run(local.scheduler_address, store=tmp_path)


def test_a_scheduler_that_does_not_answer_is_said_in_time(monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT", 0.3)
    with pytest.raises(ArgumentError, match=r"No scheduler answers at tcp://127.0.0.1:9 within 0.3 s"):
        DaskCluster("tcp://127.0.0.1:9")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind = 1", "must be one of SLURM"),
        ("= 1", "cannot be read"),
        ('kind = "SLURM"\n[options]\nnonsense = 1', "not installed|are not those of"),
    ],
)
def test_files_of_clusters_are_checked(tmp_path, text, words):
    (tmp_path / "cluster.toml").write_text(text)
    with pytest.raises(ArgumentError, match=words):
        DaskCluster(str(tmp_path / "cluster.toml"))


def test_what_names_a_cluster():
    assert all(map(is_cluster, ("dask", "tcp://host:8786", "tls://host:1", "cluster.toml")))
    assert not any(map(is_cluster, ("serial", "processes", "dusk")))


def test_files_of_a_person_are_unpacked_by_what_is_in_them(tmp_path):
    mine, beside = tmp_path / "a" / "mine.py", tmp_path / "a" / "beside.py"
    files = ((str(mine), "import beside\n"), (str(beside), "x = 1\n"))
    found = cluster._unpacked(files)
    assert [Path(f).read_text() for f in found] == ["import beside\n", "x = 1\n"]
    assert Path(found[0]).parent == Path(found[1]).parent and not mine.exists()
    mine.parent.mkdir()
    mine.write_text("import beside\n")
    beside.write_text("x = 1\n")
    assert cluster._unpacked(files) == [str(mine), str(beside)]
