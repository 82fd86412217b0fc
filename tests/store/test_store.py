"""Results survive, are never half written and never trusted blindly."""

import errno
import gc
import json
import os

import msgspec
import numpy as np
import pytest
import xarray as xr

import pathlines as pl
from pathlines.foundation.errors import ArgumentError, PathlinesWarning, StoreError
from pathlines.store import Store, address, results, runs
from pathlines.store.results import bytes_dataset, dataset_bytes

DATA = xr.Dataset({"p": (("beta", "time"), np.arange(6.0).reshape(2, 3))}, attrs={"n": 3})


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    run = pl.flow(pl.SelfAttention(2.0), pl.Sphere(3).sines(4), times=[0.0, 1.0], record=["energy", "leaders"])
    return pl.save_run(run, tmp_path_factory.mktemp("runs") / "run.nc")


def test_round_trip(tmp_path):
    store = Store(tmp_path)
    store.put("a", DATA)
    xr.testing.assert_equal(store.get("a"), DATA)
    assert store.get("b") is None
    assert not list(tmp_path.glob(".writing-*"))


def test_documents_round_trip(tmp_path):
    store = Store(tmp_path)
    store.put("doc", bytes_dataset(b'{"a": 1}'))
    assert dataset_bytes(store.get("doc")) == b'{"a": 1}'


@pytest.mark.parametrize("damage", ["truncated", "garbage", "altered"])
def test_damaged_files_are_recomputed_with_a_warning(tmp_path, damage):
    store = Store(tmp_path)
    path = store.put("a", DATA)
    if damage == "altered":
        changed = xr.load_dataset(path, engine="h5netcdf")
        changed["p"][0, 0] = 99.0
        changed.to_netcdf(path, engine="h5netcdf")
    else:
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2] if damage == "truncated" else b"not a result")
    with pytest.warns(PathlinesWarning, match="not trusted"):
        assert store.get("a") is None


def test_hdf5_never_looks_at_bytes_that_are_not_those_written(tmp_path, monkeypatch):
    """It can search a damaged file for ever: forty-eight zeros in the description of a run were enough."""

    def never(*_, **__):
        raise AssertionError

    store, random = Store(tmp_path), np.random.default_rng(0)
    path = store.put("a", DATA)
    whole = path.read_bytes()
    monkeypatch.setattr(results, "read_dataset", never)
    monkeypatch.setattr(runs, "read_dataset", never)
    for place in random.integers(whole.rindex(results.SEAL), size=50):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(random.integers(8))
        path.write_bytes(damaged)
        with pytest.warns(PathlinesWarning, match="not trusted: its checksum"):
            assert store.get("a") is None
        with pytest.raises(ArgumentError, match="altered"):
            pl.open_run(path)


def test_files_without_a_seal_are_judged_by_their_content(tmp_path):
    store = Store(tmp_path)
    path = store.put("a", DATA)
    path.write_bytes(path.read_bytes().rpartition(results.SEAL)[0])
    xr.testing.assert_identical(store.get("a"), DATA.assign_attrs(store.get("a").attrs))


def test_every_attribute_counts(tmp_path):
    """A label of a variable is part of a figure's axis."""
    labelled = DATA.assign(p=DATA["p"].assign_attrs(long_name="merged"))
    assert results.content_digest(labelled) != results.content_digest(DATA)


def test_unwritable_folder_is_an_error_with_the_remedy(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(StoreError, match="PATHLINES_STORE"):
        Store(blocked / "store").put("a", DATA)


def test_address_depends_on_setting_kind_and_code():
    assert address("claim", {"a": 1, "b": 2}, "x") == address("claim", {"b": 2, "a": 1}, "x")
    assert address("claim", {"a": 1}, "x") != address("claim", {"a": 2}, "x")
    assert address("claim", {"a": 1}, "x") != address("run", {"a": 1}, "x")
    assert address("claim", {"a": 1}, "x") != address("claim", {"a": 1}, "y")


def test_saved_run_opens_again(tmp_path):
    run = pl.flow(pl.SelfAttention(2.0), pl.Sphere(3).sines(4), times=[0.0, 1.0], record=["energy", "leaders"])
    path = pl.save_run(run, tmp_path / "run.nc")
    again = pl.open_run(path)
    np.testing.assert_array_equal(again["energy"].values, run["energy"].values)
    assert again.certificates == run.certificates
    assert again.outcome == "completed"
    assert again.setting["model"]["beta"] == 2.0


def test_the_data_of_a_run_tells_its_story_in_any_netcdf_file(tmp_path):
    run = pl.flow(pl.SelfAttention(2.0), pl.Sphere(3).sines(4), times=[0.0, 1.0], record="energy")
    run.data.to_netcdf(tmp_path / "plain.nc", engine="h5netcdf")
    story = xr.load_dataset(tmp_path / "plain.nc", engine="h5netcdf").attrs
    assert json.loads(story["setting"])["model"]["beta"] == 2.0
    assert json.loads(story["versions"]) == run.setting["versions"]
    assert {c["name"] for c in json.loads(story["certificates"])} == {c.name for c in run.certificates}
    assert "2312.10794" in story["citation"]
    assert (story["outcome"], story["seconds"]) == (run.outcome, run.seconds)
    again = pl.open_run(pl.save_run(run, tmp_path / "run.nc"))
    told = [{k: json.loads(v) if str(v)[0] in "[{" else v for k, v in r.data.attrs.items()} for r in (again, run)]
    assert told[0] == told[1]


def test_versions_of_a_file_are_those_that_computed_it(saved, tmp_path):
    old = xr.load_dataset(saved, engine="h5netcdf").assign_attrs(versions='{"pathlines": "0.0.1"}')
    run = pl.open_run(Store(tmp_path).put("old", old))
    assert run.setting["versions"] == {"pathlines": "0.0.1"}
    assert json.loads(run.data.attrs["versions"]) == {"pathlines": "0.0.1"}


def test_another_outcome_does_not_change_the_story_of_the_first_run():
    run = pl.flow(pl.SelfAttention(2.0), pl.Sphere(3).sines(4), times=[0.0, 1.0], record="energy")
    other = msgspec.structs.replace(run, outcome="stopped")
    assert (run.data.attrs["outcome"], other.data.attrs["outcome"]) == ("completed", "stopped")


def test_an_observable_with_parameters_is_read_back_by_its_plain_name(tmp_path):
    look = pl.OBSERVABLES["p_clustered"]
    run = pl.flow(pl.SelfAttention(2.0), pl.Sphere(3).sines(4), times=[0.0, 1.0], record=look.at(delta=0.5))
    again = pl.open_run(pl.save_run(run, tmp_path / "run.nc"))
    assert again["p_clustered"].name == "p_clustered[delta=0.5]"
    both = [look.at(delta=0.5), look.at(delta=0.1)]
    run = pl.flow(pl.SelfAttention(2.0), pl.Sphere(3).sines(4), times=[0.0, 1.0], record=both)
    with pytest.raises(KeyError):
        run["p_clustered"]


def test_files_have_the_permissions_the_user_asks_for(saved, tmp_path):
    before = os.umask(0o027)
    try:
        paths = [Store(tmp_path).put("a", DATA), Store(tmp_path).put_document("b", {"x": 1})]
        paths.append(pl.save_run(pl.open_run(saved), tmp_path / "run.nc"))
    finally:
        os.umask(before)
    assert [p.stat().st_mode & 0o777 for p in paths] == [0o640] * 3


def test_a_document_is_json_that_anyone_can_read(tmp_path):
    store, document = Store(tmp_path), {"verdict": "holds", "error": 0.1, "notices": float("inf"), "note": "β ≤ ½"}
    path = store.put_document("claim", document)
    assert json.loads(path.read_text())["document"] == document == store.get_document("claim")
    path.write_text(path.read_text().replace("holds", "falls"))
    with pytest.warns(PathlinesWarning, match="checksum does not match"):
        assert store.get_document("claim") is None


def test_opening_something_else_is_an_error(tmp_path):
    (tmp_path / "x.nc").write_bytes(b"hello")
    with pytest.raises(ArgumentError, match="not a Pathlines run"):
        pl.open_run(tmp_path / "x.nc")
    Store(tmp_path).put("phase", DATA)
    with pytest.raises(ArgumentError, match="not a Pathlines run"):
        pl.open_run(tmp_path / "phase.nc")


def test_a_full_disk_is_an_error_and_leaves_no_half_file(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left"):
        Store(tmp_path).put("a", DATA)
    assert list(tmp_path.iterdir()) == []


def test_what_killed_writers_left_is_removed_and_what_is_being_written_stays(tmp_path):
    old, young = tmp_path / ".writing-old.nc", tmp_path / ".writing-young.nc"
    old.write_text("")
    young.write_text("")
    os.utime(old, (0, 0))
    Store(tmp_path).put("a", DATA)
    assert not old.exists()
    assert young.exists()


def test_damaged_runs_are_one_line_and_leave_nothing_behind(saved, tmp_path):
    """Half-made objects of the reader complain when they are collected, which fails a test here."""
    whole, draw = saved.read_bytes(), np.random.default_rng(0)
    for number in range(60):
        content = np.frombuffer(whole, np.uint8).copy()
        at = draw.integers(0, len(content), 30)
        content[at] = draw.integers(0, 256, len(at))
        path = tmp_path / f"damaged{number}.nc"
        path.write_bytes(content.tobytes())
        try:
            opened = pl.open_run(path)
        except ArgumentError as error:
            assert len(str(error).splitlines()) == 1
        else:
            assert opened["energy"].equals(pl.open_run(saved)["energy"])
    gc.collect()


@pytest.mark.parametrize(
    "attributes",
    [
        {"setting": "[1, 2]"},
        {"setting": '{"model": "sa", "papers": []}'},
        {"setting": '{"model": {}, "papers": 5}'},
        {"setting": '{"model": {}, "papers": [], "derived": {"alpha": {}}}'},
        {"certificates": '[{"name": 3}]'},
        {"forms": "{}"},
        {"seconds": "soon"},
    ],
)
def test_forged_runs_are_one_line(saved, tmp_path, attributes):
    """A file with a right checksum is still not a run if it does not hold what runs hold."""
    forged = xr.load_dataset(saved, engine="h5netcdf").assign_attrs(attributes)
    path = Store(tmp_path).put("forged", forged)
    with pytest.raises(ArgumentError, match="is not a Pathlines run"):
        pl.open_run(path)


@pytest.mark.parametrize("change", [{"time": ("token", np.arange(4.0))}, {"time": ("time", ["a", "b"])}])
def test_forged_times_are_one_line(saved, tmp_path, change):
    forged = xr.load_dataset(saved, engine="h5netcdf").drop_vars("time").assign(change)
    path = Store(tmp_path).put("forged", forged)
    with pytest.raises(ArgumentError, match="is not a Pathlines run"):
        pl.open_run(path)
