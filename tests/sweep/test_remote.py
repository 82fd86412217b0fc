"""Stores at URLs: the same numbers as in a folder, nothing computed twice, damage seen, errors in one line."""

import threading
import time

import numpy as np
import pytest
import xarray as xr
from studied import noisy

import pathlines as pl
from pathlines.foundation.errors import ArgumentError
from pathlines.sweep import remote
from pathlines.sweep.chunks import study_root
from pathlines.sweep.remote import RemoteStore, leased_there

fsspec = pytest.importorskip("fsspec")
AXES = {"x": [0.0, 1.0, 2.0, 3.0], "k": [1, 2]}


@pytest.fixture(params=["memory", "local"])
def url(request, tmp_path):
    """Memory of this process; a folder that is reached by fsspec alone, without our own files and locks."""
    if request.param == "local":
        return f"local://{tmp_path}/bucket"
    fsspec.filesystem("memory").store.clear()
    return "memory://bucket"


def counted(study, url, on="serial", **how):
    seen = []
    return study.run(on, store=url, watch=seen.append, **how), seen[-1]


def test_a_study_at_a_url_is_that_in_a_folder_and_goes_on_where_it_stopped(url, tmp_path):
    study = pl.study(noisy, AXES, repeat=2)
    there = study.run(store=tmp_path / "folder")
    data, last = counted(study, url)
    xr.testing.assert_equal(data, there)
    assert (last.computed, last.recalled) == (16, 0)
    again, last = counted(study, url)
    xr.testing.assert_equal(again, there)
    assert (last.computed, last.recalled) == (0, 16)
    more, last = counted(pl.study(noisy, {**AXES, "x": [0.0, 0.5, 1.0]}, repeat=2), url)
    assert (last.computed, last.recalled) == (4, 8)
    np.testing.assert_array_equal(more.y.sel(x=1.0), there.y.sel(x=1.0))
    xr.testing.assert_equal(study.collect(url), there)


def test_half_an_object_is_no_result(url):
    study = pl.study(noisy, {"x": [0.0, 1.0]})
    whole = study.run(store=url)
    store = study._chunks(url).store
    names = store.names(".chunk")
    name = min(names)
    store.write(f"{name}.chunk", store.read(f"{name}.chunk")[:-40])
    with pytest.warns(UserWarning, match="checksum"):
        data, last = counted(study, url)
    xr.testing.assert_equal(data, whole)
    assert last.computed == 2 // len(names)


def test_worker_processes_keep_their_chunks_at_a_url(tmp_path):
    study = pl.study(noisy, AXES)
    data, last = counted(study, f"local://{tmp_path}/bucket", "processes", workers=1)
    assert last.computed == 8 and not list((tmp_path / "bucket").rglob("*.lease"))
    xr.testing.assert_equal(data, study.run(store=tmp_path / "folder"))


def test_a_lease_is_held_while_its_heart_beats(url, monkeypatch):
    monkeypatch.setattr(remote, "BEAT", 0.05)
    monkeypatch.setattr(remote, "STALE", 1.0)
    store = RemoteStore(f"{url}/leases")
    with leased_there(store, "a") as first:
        time.sleep(1.3)
        with leased_there(store, "a") as second, leased_there(store, "b") as other:
            assert (first, second, other) == (True, False, True)
    with leased_there(store, "a") as free:
        assert free
    store.write("dead.lease", b"of a process that was killed")
    with leased_there(store, "dead") as taken:
        assert not taken
    time.sleep(1.2)
    with leased_there(store, "dead") as taken:
        assert taken


def test_two_drivers_at_one_url_share_the_work(tmp_path):
    url, found = f"local://{tmp_path}/bucket", []
    study = pl.study(noisy, {"x": "0:2:8"})

    def drive():
        found.append(counted(study, url))

    threads = [threading.Thread(target=drive) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    xr.testing.assert_equal(found[0][0], found[1][0])
    assert sum(last.computed for _, last in found) == 8


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nobody://bucket", "There is no kind of store nobody://"),
        ("s3://bucket/folder", "needs a package that is not installed"),
    ],
)
def test_what_cannot_be_reached_is_said_in_one_line_before_anything_runs(url, said):
    if url.startswith("s3"):
        try:
            import s3fs  # noqa: F401
        except ImportError:
            pass
        else:
            pytest.skip("s3fs is installed here")
    with pytest.raises(ArgumentError, match=said) as error:
        pl.study(noisy, {"x": [0.0]}).run(store=url)
    assert "\n" not in str(error.value)


def test_memory_is_of_this_process_alone():
    with pytest.raises(ArgumentError, match="in this process alone"):
        pl.study(noisy, {"x": [0.0]}).run("processes", store="memory://x")


def test_the_root_of_studies(monkeypatch, tmp_path):
    monkeypatch.setenv("PATHLINES_STORE", "s3://bucket/x")
    assert study_root(None) == "s3://bucket/x" and study_root(tmp_path) == str(tmp_path)
    assert study_root(f"file://{tmp_path}") == str(tmp_path)
    from pathlines.foundation.files import default_root

    assert "s3:" not in str(default_root())
