"""Four hundred damaged files: outcomes, checkpoints, parts of diagrams and runs are what was written, or refused."""

import warnings

import numpy as np
import pytest
import xarray as xr

import pathlines as pl
from pathlines.foundation.errors import ArgumentError
from pathlines.store import Store
from pathlines.store.results import bytes_dataset
from pathlines.sweep.request import _packed

pytestmark = pytest.mark.slow

COUNT = 100


def damaged(content, random):
    """One bit, twenty bits or a line of zeros anywhere, or an early end."""
    content, place = bytearray(content), int(random.integers(len(content)))
    how = random.choice(["bit", "bits", "zeros", "end"])
    if how == "end":
        return bytes(content[:place])
    if how == "zeros":
        content[place : place + 64] = bytes(len(content[place : place + 64]))
    for where in random.integers(len(content), size={"bit": 1, "bits": 20, "zeros": 0}[how]):
        content[where] ^= 1 << int(random.integers(8))
    return bytes(content)


def stored_things(random):
    checkpoint = {"state": random.normal(size=(20, 3)), "t": np.array(1.5), "fresh": np.array(True)}
    part = xr.Dataset(
        {"p": (("beta", "time"), random.random((4, 30)), {"long_name": "merged"})}, {"beta": np.arange(4.0)}
    )
    return {"outcome": bytes_dataset(random.bytes(3000)), "checkpoint": _packed(checkpoint), "part": part}


@pytest.mark.parametrize("kind", ["outcome", "checkpoint", "part"])
def test_results(tmp_path, kind):
    random, store = np.random.default_rng(1), Store(tmp_path)
    path = store.put(kind, stored_things(random)[kind])
    whole, right = path.read_bytes(), store.get(kind)
    for _ in range(COUNT):
        path.write_bytes(damaged(whole, random))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = store.get(kind)
        assert len(said) == (found is None)
        assert found is None or found.identical(right)


def test_documents(tmp_path):
    """What a damaged file may still say is what was written, bit for bit."""
    random, store = np.random.default_rng(3), Store(tmp_path)
    numbers = random.normal(size=40).tolist()
    right = {"verdict": "holds", "measured": numbers, "words": "β ≤ ½", "far": [float("inf"), None]}
    path = store.put_document("claim", right)
    whole = path.read_bytes()
    for _ in range(COUNT):
        path.write_bytes(damaged(whole, random))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = store.get_document("claim")
        assert len(said) == (found is None)
        assert found in (None, right)


def test_runs(tmp_path):
    random = np.random.default_rng(2)
    run = pl.flow(pl.SelfAttention(2.0), pl.Sphere(3).sines(6), times=[0.0, 1.0], record=["energy", "tokens"])
    path = pl.save_run(run, tmp_path / "run.nc")
    whole, right = path.read_bytes(), pl.open_run(path)
    for _ in range(COUNT):
        path.write_bytes(damaged(whole, random))
        try:
            found = pl.open_run(path)
        except ArgumentError as error:
            assert "\n" not in str(error)
        else:
            assert found.data.identical(right.data)
            assert all(getattr(found, n) == getattr(right, n) for n in ("certificates", "setting", "forms", "outcome"))
