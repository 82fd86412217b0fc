"""Errors, registries and settings."""

import importlib
import sys

import numpy as np
import pytest
import xarray  # noqa: F401  it decides what is spared

from pathlines.foundation import spared
from pathlines.foundation.errors import ArgumentError, UnknownNameError, finite_array, finite_number
from pathlines.foundation.papers import PAPERS
from pathlines.foundation.registry import Registry
from pathlines.foundation.setting import changed_setting


def shelf():
    registry = Registry("fruit", "pathlines.foundation")
    for name in ("family/apple", "family/pear", "other/plum"):
        registry.register(name, name)
    return registry


def test_registry_suggests_the_nearest_name():
    with pytest.raises(UnknownNameError, match="Did you mean `family/apple`"):
        shelf()["family/aple"]


def test_registry_patterns():
    assert shelf().match("family") == ["family/apple", "family/pear"]
    assert shelf().match("*/p*") == ["family/pear", "other/plum"]
    with pytest.raises(UnknownNameError, match="No fruit matches"):
        shelf().match("zzz")


def test_a_name_is_taken_once():
    with pytest.raises(ArgumentError, match="registered already"):
        shelf().register("family/pear", 1)


def test_changed_setting_checks_names_and_kinds():
    base = {"n": 3, "beta": 1.0, "flag": True, "times": [1.0]}
    assert changed_setting("x", base, {"beta": 2})["beta"] == 2.0
    for bad, says in (({"m": 1}, "no setting `m`"), ({"n": 2.5}, "must be a int"), ({"flag": 1}, "must be a bool")):
        with pytest.raises((ArgumentError, UnknownNameError), match=says):
            changed_setting("x", base, bad)


@pytest.mark.parametrize("value", [np.nan, np.inf, -1, "hot", None])
def test_finite_number_refuses(value):
    with pytest.raises(ArgumentError, match="Argument `beta` must be a finite number ≥ 0"):
        finite_number("beta", value, low=0.0)


def test_finite_array_names_shape_and_bad_entries():
    with pytest.raises(ArgumentError, match=r"must have shape \(d, d\), but has shape \(2, 3\)"):
        finite_array("value", np.zeros((2, 3)), ("d", "d"))
    with pytest.raises(ArgumentError, match="1 NaN or infinite of 2"):
        finite_array("x", [1.0, np.nan])


def test_papers_cite_themselves():
    for paper in PAPERS.values():
        assert paper.arxiv in paper.bibtex
        assert paper.title in paper.citation


def test_a_registry_looks_for_one_name_in_the_files_that_mention_it(tmp_path, monkeypatch):
    """One entry costs the import of its own file; a name that is made up as the program runs is found all the same."""
    room = tmp_path / "room_of_entries"
    room.mkdir()
    (room / "__init__.py").write_text("from pathlines.foundation.registry import Registry\n"
                                      "ENTRIES = Registry('entry', 'room_of_entries')\n")  # fmt: skip
    for k in range(3):
        (room / f"file_{k}.py").write_text(
            f"from room_of_entries import ENTRIES\nENTRIES.register('name-{k}', {k})\n"
            + ("ENTRIES.register('na' + 'me-made', 7)\n" if k == 2 else "")
        )
    monkeypatch.syspath_prepend(tmp_path)
    entries = importlib.import_module("room_of_entries").ENTRIES
    assert entries["name-1"] == 1
    assert [m for m in sys.modules if m.startswith("room_of_entries.")] == ["room_of_entries.file_1"]
    assert entries["name-made"] == 7
    assert list(entries) == ["name-0", "name-1", "name-2", "name-made"]


def test_what_is_spared_can_be_used_and_comes_back(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)  # what was there comes back after the test
    monkeypatch.delitem(sys.modules, "dask")
    monkeypatch.setitem(spared.SPARED, "dask", "a loader that is not here")
    with spared.sparing():
        with pytest.raises(ImportError):
            importlib.import_module("dask")
        spared.use("dask")
        assert "dask" not in sys.modules
    with spared.sparing():
        pass
    assert "dask" not in sys.modules


def test_nothing_is_spared_once_its_loader_is_there():
    found = sys.modules.get("dask")
    with spared.sparing():
        assert "xarray" in sys.modules and sys.modules.get("dask") is found
