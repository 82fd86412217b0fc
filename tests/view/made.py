"""Runs made by hand, whose every number is known."""

import numpy as np
import xarray as xr

from pathlines.integrate.run import Run


def run_of(tokens, times=None, outcome="completed", model=None, **records):
    """A run of given tokens (time, token, component) and records over time."""
    times = np.linspace(0.0, 4.0, len(tokens)) if times is None else np.asarray(times, float)
    data = {"tokens": (("time", "token", "component"), np.asarray(tokens, float))}
    data |= {name: ("time", values, {"long_name": name, "symbol": "s"}) for name, values in records.items()}
    setting = {"model": model or {"name": "SelfAttention", "beta": 9.0}, "papers": []}
    return Run(xr.Dataset(data, coords={"time": times}), (), (), outcome, setting, 0.0)


def meeting(n=24, frames=41, seed=0):
    """Tokens of the sphere that gather at three corners; the places and the number of clusters at a reach of δ."""
    rng = np.random.default_rng(seed)
    start = rng.normal(size=(n, 3))
    start /= np.linalg.norm(start, axis=1)[:, None]
    end = np.eye(3)[np.arange(n) % 3]
    s = np.linspace(0, 1, frames)[:, None, None]
    paths = (1 - s) * start + s * end
    return paths / np.linalg.norm(paths, axis=2)[..., None]
