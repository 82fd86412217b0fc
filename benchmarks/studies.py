"""Studies against a loop over `pl.flow` and joblib's processes; Dask against processes; plans of a million; refinement.

    python benchmarks/studies.py

200 settings × 20 repetitions of n = 32, d = 3, until 15 at rtol = 1e-6. The loop and joblib run a part of them, scaled
to all. Processor seconds are compared, because machines are shared; wall seconds stand beside them. All programs are
compiled before the clock starts, but for the line that says so. Writes benchmarks/results/studies.json.
"""

import json
import os
import platform
import shutil
import tempfile
import time
from pathlib import Path

import jax
import joblib
import numpy as np
import xarray as xr
from scipy.interpolate import LinearNDInterpolator, RegularGridInterpolator

import pathlines as pl
from pathlines.store.results import file_bytes
from pathlines.sweep.phase import merged_shares

HERE = Path(__file__).parent
BETAS, REPEAT, UNTIL, RTOL = np.linspace(0.5, 9.0, 200), 20, 15.0, 1e-6
PART, TASKS = 200, 12
DIAGRAM = {"d": 512, "n": 32, "samples": 64}


def clock(work):
    """Wall seconds, processor seconds (children that ended included) and the result."""
    wall, before = time.perf_counter(), os.times()
    result = work()
    after = os.times()
    return time.perf_counter() - wall, sum(after[:4]) - sum(before[:4]), result


def one(beta, seed):
    tokens = pl.Sphere(3).uniform(jax.random.key(seed), 32)
    return pl.flow(pl.SelfAttention(beta), tokens, times=[UNTIL], record="cluster_count", rtol=RTOL, progress=False)


def some(betas):
    """A share of the loop in a process of joblib's, with the processor seconds of the part that is not compiling."""
    pl.enable_float64()
    one(1.0, 0)
    return clock(lambda: [float(one(float(b), k)["cluster_count"][-1]) for k, b in enumerate(betas)])[:2]


def busy(x: float, seconds: float = 1.0) -> float:
    """A second of waiting: what engines add to it does not depend on who shares the machine."""
    time.sleep(seconds)
    return x


def ensembles(folder):
    study = pl.study("sa", {"beta": BETAS}, repeat=REPEAT, record="cluster_count", n=32, d=3, until=UNTIL, rtol=RTOL)
    cold = clock(lambda: study.run(store=folder / "cold"))
    warm = clock(lambda: study.run(store=folder / "warm"))
    one(1.0, 0)
    share = BETAS[:: len(BETAS) // PART]
    loop = [t * len(BETAS) * REPEAT / len(share) for t in clock(lambda: [one(float(b), 0) for b in share])[:2]]
    parts = joblib.Parallel(n_jobs=2)(joblib.delayed(some)(share[k::2]) for k in range(2))
    spread = [max(p[0] for p in parts), sum(p[1] for p in parts)]
    spread = [t * len(BETAS) * REPEAT / len(share) for t in spread]
    return {
        "runs": len(BETAS) * REPEAT,
        "study, compiled before": {"wall": warm[0], "processor": warm[1]},
        "study, compiling": {"wall": cold[0], "processor": cold[1]},
        "loop over pl.flow": {"wall": loop[0], "processor": loop[1]},
        "joblib, 2 processes": {"wall": spread[0], "processor": spread[1]},
        "loop over study, processor": loop[1] / warm[1],
        "loop over study, wall": loop[0] / warm[0],
        "joblib over study, wall": spread[0] / warm[0],
        "target": "wall, quiet, 2 cores: 20 times the loop, 5 times joblib",
    }


def engines(folder):
    """The same tasks of a second by processes and by Dask, engines that are up already not counted in either."""
    found = {}
    for on in ("processes", "dask"):
        seen = []
        study = pl.study(busy, {"x": [float(k) for k in range(TASKS)]})
        study.run(on, workers=2, store=folder / on, watch=lambda s: seen.append(time.perf_counter()))  # noqa: B023
        found[on] = (seen[-1] - seen[2]) / (TASKS - 2)  # from the first two results on: both workers have started
    return {**found, "overhead of dask": found["dask"] / found["processes"] - 1, "target": "< 10 %"}


def million(folder):
    study = pl.study("sa", {"beta": "0:9:1000"}, repeat=1000, n=8, until=1.0, record="mean_overlap")
    planning = clock(lambda: sum(len(chunk.where) for chunk in study.plan().chunks()) and study.predict(folder))
    values = np.random.default_rng(0).random((1000, 1000))
    data = xr.Dataset({"mean_overlap": (("beta", "repeat"), values), "status": (("beta", "repeat"), values > 2)})
    (folder / "million.nc").write_bytes(file_bytes(data.astype(float)))
    opening = clock(lambda: xr.load_dataset(folder / "million.nc", engine="h5netcdf"))
    memory = pl.foundation.peak_memory() / 1e6
    return {"planning seconds": planning[1], "opening seconds": opening[1], "peak MB of all of this": memory}


def merged_by(beta: float, time: float) -> float:
    """p(β, t): one point of a phase diagram as a run of its own."""
    return float(merged_shares(beta, times=(0.0, time), **DIAGRAM)["p"][0, -1])


def refinement(folder):
    """p(β, t) from a grid, from a tenth as many points that were chosen, and from a tenth that are even."""
    betas, times = np.linspace(0.1, 9.0, 120), np.linspace(0.0, 30.0, 241)
    truth = merged_shares(betas, times=times.tolist(), **DIAGRAM)["p"].values
    wanted = np.stack(np.meshgrid(betas, times, indexing="ij"), axis=-1)
    scale = np.array([8.9, 30.0])

    def away(points, values):
        found = LinearNDInterpolator(points / scale, values)(wanted / scale)
        return float(np.sqrt(np.nanmean((found - truth) ** 2)))

    def on(many):
        b, t = np.linspace(0.1, 9.0, many), np.linspace(0.0, 30.0, many)
        rows = RegularGridInterpolator((betas, times), truth)(np.stack(np.meshgrid(b, t, indexing="ij"), axis=-1))
        return away(np.stack(np.meshgrid(b, t, indexing="ij"), axis=-1).reshape(-1, 2), rows.ravel())

    found = {f"{k}² even points": on(k) for k in (14, 20, 30, 44)}
    for runs in (196,):
        data = pl.study(merged_by, {"beta": "0.1:9:2", "time": "0.01:30:2"}).refine(runs, store=folder)
        found[f"{runs} chosen points"] = away(np.stack([data.beta, data.time], axis=1), data.merged_by.values)
    return {**found, "unit": "root mean square error of p"}


def main():
    pl.enable_float64()
    folder = Path(tempfile.mkdtemp())
    found = {"machine": {"processor": platform.machine(), "cores": os.cpu_count(), "load": os.getloadavg()[0]}}
    for name, measure in (
        ("million", million),
        ("ensembles", ensembles),
        ("refinement", refinement),
        ("engines", engines),
    ):
        found[name] = measure(folder)
        print(name, json.dumps(found[name], indent=1, ensure_ascii=False))
    (HERE / "results" / "studies.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
