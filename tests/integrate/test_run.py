"""Where a run came from, in words that every process would use."""

import functools
import json
import re

import jax
import numpy as np
import pytest

import pathlines as pl
from pathlines.integrate.run import describe


class Opaque:
    pass


@pytest.mark.parametrize(
    "thing",
    [
        functools.partial(np.add, 1.0),
        functools.partial(functools.partial(max, 2), key=lambda x: x),
        lambda key: key,
        pl.Sphere(3).uniform,
        Opaque(),
        {"law": Opaque()},
        [np.sin, jax.numpy.tanh],
    ],
)
def test_descriptions_hold_no_memory_address(thing):
    text = json.dumps(describe(thing))
    assert not re.search(r"0x[0-9a-f]+", text), text


def test_functions_are_described_by_where_they_are_defined():
    assert describe(describe) == "pathlines.integrate.run.describe"
    assert describe(functools.partial(describe, 3.0)) == {
        "name": "partial",
        "of": describe(describe),
        "with": [3.0, {}],
    }


def test_the_start_of_an_ensemble_is_in_its_setting():
    law = functools.partial(lambda number, key: pl.Sphere(3).sines(4), 2)
    run = pl.ensemble(pl.SelfAttention(2.0), law, runs=2, key=jax.random.key(0), times=[1.0], record=["mean_overlap"])
    assert "0x" not in json.dumps(run.setting)
    assert run.setting["start"]["of"].endswith("<lambda>")
