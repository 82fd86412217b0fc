"""Errors, registries and settings."""

import numpy as np
import pytest

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
