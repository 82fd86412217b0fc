"""Functions and models that tests study; processes find them in this file."""

import os
import signal
import time
from pathlib import Path

import numpy as np

import pathlines as pl
from pathlines.foundation.setting import Setting


class Wave(Setting):
    x: float = 1.0
    k: int = 1


def wave(s: Wave) -> float:
    return float(np.sin(s.k * s.x))


def noisy(x: float, k: int = 1, seed: int = 0) -> dict:
    if x > 2.5:
        raise ValueError("x is too\nlarge")
    return {"y": np.sin(k * x) + np.random.default_rng([seed, k]).normal(), "curve": np.arange(k) * x}


def many_waves(x, k: int = 1):
    return {"y": np.sin(k * x), "z": np.outer(x, np.arange(3))}


def deadly(x: float, folder: str = "") -> float:
    """Kills its process at x = 3, always, and at x = 5 the first time."""
    mark = Path(folder) / "killed"
    if x == 3 or (x == 5 and not mark.exists()):
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def gentle(beta: float = 1.0) -> pl.Model:
    return pl.SelfAttention(beta / 2)


def watched(x: float, log: str = "", pause: float = 0.0) -> dict:
    """Numbers of x, and a line in a file for each call, after a pause."""
    time.sleep(pause)
    with Path(log).open("a") as file:
        file.write(f"{x}\n")
    return {"sine": np.sin(x), "powers": x ** np.arange(4)}


def drive(axes, fixed, store, queue=None):
    """A driver in a process of its own."""
    last = []
    pl.study(watched, axes, **fixed).run(store=store, watch=last.append)
    if queue is not None:
        queue.put(last[-1].computed)
