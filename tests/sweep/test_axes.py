"""Axes: what a person writes, what it means, and what is refused before anything runs."""

from typing import Annotated, Any

import msgspec
import numpy as np
import pytest

from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import ArgumentError, UnknownNameError
from pathlines.foundation.setting import Setting, means
from pathlines.sweep.axes import made_axes


class Thing(Setting):
    n: of.Tokens = 8
    beta: of.Beta = 1.0
    share: of.Share = 0.5
    betas: of.Betas = (1.0,)
    kind: of.Kind = "sa"
    steps: Annotated[of.Count | None, means("steps")] = None


def values(text, name="beta"):
    return made_axes("a thing", Thing, {name: text})[0].values[0]


def test_what_the_grammar_means():
    assert values("1:9:9") == tuple(float(k) for k in range(1, 10))
    assert values("8:128:log", "n") == (8, 16, 32, 64, 128)
    assert values("10:100:log", "n") == (10, 20, 40, 80)
    assert values("1:100:log:3") == pytest.approx((1, 10, 100))
    assert values("16,32,64", "n") == (16, 32, 64)
    assert values(".5", "beta") == (0.5,)
    assert values("sa,usa", "kind") == ("sa", "usa")
    assert values("1,2", "betas") == ((1.0,), (2.0,))
    assert values([1, 2.5]) == (1.0, 2.5)
    assert values(np.array([1, 2]), "n") == (1, 2)
    assert values("8:32:4", "steps") == (8, 16, 24, 32)
    assert all(type(x) is int for x in values("1:9:log", "n")) and type(values("1,2")[0]) is float


@pytest.mark.parametrize("how", ["random", "halton", "sobol"])
def test_more_samples_keep_the_first_ones_and_stay_inside(how):
    few, many = values(f"2:3:{how}:10"), values(f"2:3:{how}:1000")
    assert many[:10] == few and min(many) >= 2 and max(many) <= 3
    middle, spread = (np.mean(many), {"random": 5 / np.sqrt(12 * 1000), "halton": 5e-3, "sobol": 2e-3}[how])
    assert abs(middle - 2.5) < spread


def test_seeds_of_random_axes_differ_and_repeat():
    assert values("0:1:random:5:1") == values("0:1:random:5:1") != values("0:1:random:5:2")


def test_sobols_points_are_a_net():
    """63 of them and the origin: one in each of 64 cells of any shape 2^a × 2^b."""
    (axis,) = made_axes("a thing", Thing, {"beta/share": "0:1:sobol:63/0:1:sobol:63"})
    for bins in ((64, 1), (8, 8), (4, 16), (1, 64)):
        counts, *_ = np.histogram2d(*axis.values, bins=bins, range=[[0, 1], [0, 1]])
        counts[0, 0] += 1
        assert (counts == 1).all()


def test_fields_that_go_together_share_a_dimension():
    (axis,) = made_axes("a thing", Thing, {"n/beta": "16,32,64/1:3:3"})
    assert axis.dim == "n_beta" and len(axis) == 3
    assert list(zip(*axis.values)) == [(16, 1.0), (32, 2.0), (64, 3.0)]
    (same,) = made_axes("a thing", Thing, {"n/beta": ([16, 32, 64], [1, 2, 3])})
    assert same == axis


@pytest.mark.parametrize("how", ["halton", "sobol"])
def test_low_discrepancy_samples_of_two_fields_fill_the_square(how):
    (axis,) = made_axes("a thing", Thing, {"beta/share": f"0:1:{how}:64/0:1:{how}:64"})
    counts, *_ = np.histogram2d(*axis.values, bins=4, range=[[0, 1], [0, 1]])
    assert counts.min() >= 2


REFUSED = [
    ({"bta": "1"}, "Did you mean `beta`"),
    ({"beta": ""}, "no values"),
    ({"beta": []}, "no values"),
    ({"beta": "1:2:0"}, "no values"),
    ({"beta": "2:1:3"}, "LOW ≤ HIGH"),
    ({"beta": "0:1:log"}, "LOW ≤ HIGH"),
    ({"beta": "1:2:3.5"}, "LOW ≤ HIGH"),
    ({"beta": "1:2:nan"}, "LOW ≤ HIGH"),
    ({"beta": "1:inf:3"}, "LOW ≤ HIGH"),
    ({"beta": "1:2:uniform:5"}, "LOW ≤ HIGH"),
    ({"beta": "1,1"}, "the value 1.0 twice"),
    ({"beta": [1.0], "n/beta": ([1], [1])}, "`beta` is given twice"),
    ({"n/beta": "1,2/3"}, "as many values each, but have 2 and 1"),
    ({"n/beta": "1,2"}, "separated by /"),
    ({"beta": [float("nan")]}, "does not allow `beta` = nan"),
    ([], "must be a dictionary"),
]


@pytest.mark.parametrize(("axes", "words"), REFUSED)
def test_what_is_refused(axes: Any, words):
    with pytest.raises((ArgumentError, UnknownNameError), match=words) as error:
        made_axes("a thing", Thing, axes)
    assert "\n" not in str(error.value)


def test_all_values_out_of_bounds_are_named_at_once():
    with pytest.raises(ArgumentError) as error:
        made_axes("a thing", Thing, {"beta": "-2:1:4", "n": [0, 4, 2.5], "kind": [3]})
    for words in ("-2.0, -1.0", "allowed: number ≥ 0", "`n` = 0, 2.5", "integer ≥ 1", "`kind` = 3", "nothing was run"):
        assert words in str(error.value)


def test_a_record_without_defaults_has_axes_too():
    class Bare(msgspec.Struct):
        x: float

    assert made_axes("bare", Bare, {"x": "0:1:2"})[0].values == ((0.0, 1.0),)
