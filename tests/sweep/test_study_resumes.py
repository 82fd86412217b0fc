"""Studies that were killed, damaged, shared or had no room: the same bits in the end, and nothing finished twice."""

import errno
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest
import xarray as xr
from studied import deadly, drive, watched

import pathlines as pl
from pathlines.foundation import files
from pathlines.foundation.errors import PathlinesWarning, StoreError
from pathlines.sweep import leases

SPAWN = multiprocessing.get_context("spawn")
AXES = {"x": "0:3:31"}
COUNT = 31


def chunks(store):
    return sorted(Path(store).glob("studies/*/[!.]*.chunk"))


def calls(fixed):
    return len(Path(fixed["log"]).read_text().split())


@pytest.fixture
def fixed(tmp_path):
    return {"log": str(tmp_path / "log"), "pause": 0.0}


@pytest.fixture
def whole(tmp_path):
    return pl.study(watched, AXES, log=str(tmp_path / "whole")).run(store=tmp_path / "whole-store")


def same_bits(data, whole):
    names = list(map(str, whole.data_vars))
    return names == list(data.data_vars) and all(data[n].values.tobytes() == whole[n].values.tobytes() for n in names)


def test_a_killed_driver_is_resumed(tmp_path, fixed, whole):
    fixed["pause"] = 0.05
    driver = SPAWN.Process(target=drive, args=(AXES, fixed, tmp_path))
    driver.start()
    while len(chunks(tmp_path)) < 5:
        time.sleep(0.01)
        assert driver.is_alive()
    os.kill(driver.pid, signal.SIGKILL)
    driver.join()
    kept, done = len(chunks(tmp_path)), calls(fixed)
    assert 5 <= kept < COUNT and done <= kept + 1
    seen = []
    data = pl.study(watched, AXES, **fixed).run(store=tmp_path, watch=seen.append)
    assert same_bits(data, whole)
    assert seen[-1].recalled == kept and seen[-1].computed == COUNT - kept and calls(fixed) == done + COUNT - kept
    assert not list(tmp_path.glob("studies/*/*.lease"))


def test_two_drivers_share_the_work(tmp_path, fixed, whole):
    fixed["pause"] = 0.05
    queue = SPAWN.Queue()
    drivers = [SPAWN.Process(target=drive, args=(AXES, fixed, tmp_path, queue)) for _ in range(2)]
    for driver in drivers:
        driver.start()
    computed = [queue.get(timeout=120) for _ in drivers]
    for driver in drivers:
        driver.join()
    assert sum(computed) == COUNT == calls(fixed) and min(computed) > 0
    seen = []
    assert same_bits(pl.study(watched, AXES, **fixed).run(store=tmp_path, watch=seen.append), whole)
    assert seen[-1].computed == 0


def test_a_damaged_chunk_is_computed_again_and_nothing_else(tmp_path, fixed, whole):
    made = pl.study(watched, AXES, **fixed)
    made.run(store=tmp_path)
    for number, harm in enumerate((lambda b: b[: len(b) // 2], lambda b: b[:100] + b"x" + b[101:], lambda b: b"")):
        victim = chunks(tmp_path)[7 * number]
        victim.write_bytes(harm(victim.read_bytes()))
        seen = []
        with pytest.warns(PathlinesWarning, match="is not trusted"):
            data = made.run(store=tmp_path, watch=seen.append)
        assert same_bits(data, whole) and seen[-1].computed == 1 and calls(fixed) == COUNT + number + 1


def test_a_full_disk_stops_the_study_and_keeps_what_was_done(tmp_path, fixed, whole, monkeypatch):
    flush, room = files._flush, [6]

    def full(path):
        room[0] -= 1
        if room[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        flush(path)

    monkeypatch.setattr(files, "_flush", full)
    with pytest.raises(StoreError, match="No space left"):
        pl.study(watched, AXES, **fixed).run(store=tmp_path)
    monkeypatch.undo()
    assert len(chunks(tmp_path)) == 6
    seen = []
    data = pl.study(watched, AXES, **fixed).run(store=tmp_path, watch=seen.append)
    assert same_bits(data, whole) and seen[-1].recalled == 6 and calls(fixed) == COUNT + 1


@pytest.mark.slow
def test_a_worker_that_dies_costs_its_setting_alone(tmp_path):
    seen = []
    made = pl.study(deadly, {"x": [1.0, 3.0, 5.0, 7.0]}, folder=str(tmp_path))
    data = made.run("processes", workers=1, store=tmp_path, watch=seen.append)
    assert data.status.values.tolist() == [0, 1, 0, 0] and "SIGKILL" in data.attrs["errors"]
    assert data.deadly.values[[0, 2, 3]].tolist() == [1, 5, 7]


def test_leases_are_respected_while_their_owner_lives(tmp_path):
    with leases.leased(tmp_path, "a") as first, leases.leased(tmp_path, "a") as second:
        assert first and not second
        with leases.leased(tmp_path, "b") as other:
            assert other
    assert not (tmp_path / "a.lease").exists()


@pytest.mark.parametrize("how", ["gone", "silent", "empty"])
def test_an_abandoned_lease_is_taken(tmp_path, how):
    import msgspec

    path = tmp_path / "a.lease"
    gone = leases.Owner(leases.myself().host, os.getpid(), "17")
    silent = leases.Owner("another machine", 1, "17")
    path.write_bytes(b"" if how == "empty" else msgspec.json.encode(gone if how == "gone" else silent))
    if how != "gone":
        with leases.leased(tmp_path, "a") as taken:
            assert not taken
        past = time.time() - leases.STALE - 1
        os.utime(path, (past, past))
    with leases.leased(tmp_path, "a") as taken:
        assert taken


def test_a_lease_that_is_held_beats(tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "BEAT", 0.02)
    with leases.leased(tmp_path, "a"):
        os.utime(tmp_path / "a.lease", (0, 0))
        time.sleep(0.3)
        assert (tmp_path / "a.lease").stat().st_mtime > 1e9


def test_an_answer_can_be_opened_elsewhere(tmp_path, fixed, whole):
    pl.study(watched, AXES, **fixed).run(store=tmp_path, out=tmp_path / "s.nc")
    with xr.open_dataset(tmp_path / "s.nc") as data:
        assert same_bits(data.load(), whole)
        assert data.to_dataframe().shape[0] == COUNT * 4
