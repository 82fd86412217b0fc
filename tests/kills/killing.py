"""Processes that start at once, because everything is imported before they are forked, and are killed at any moment."""

import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    ["pathlines.cli.program", "pathlines.sweep.request", "pathlines.sweep.verify", "pathlines.draw", "pathlines.advice"]
)
PATIENCE = 300.0


class Attempt:
    """A function in a process of its own, with its output in a file."""

    def __init__(self, folder, work, *arguments, **environment):
        self.output = Path(folder) / f"output-{time.monotonic_ns()}.txt"
        self.process = CONTEXT.Process(target=_child, args=(self.output, environment, work, arguments))
        self.began = time.monotonic()
        self.process.start()

    def finish(self):
        """(exit code, seconds) of a process that is left alone."""
        self.process.join(PATIENCE)
        assert self.process.exitcode is not None, f"it hangs: {self.text}"
        return self.process.exitcode, time.monotonic() - self.began

    def wait_until(self, condition):
        """Seconds until the condition holds or the process ends."""
        while self.process.is_alive() and not condition():
            time.sleep(0.005)
        return time.monotonic() - self.began

    def kill_after(self, seconds, number):
        """Whether it was still alive; what it had started, processes, is returned too."""
        self.process.join(max(0.0, seconds - (time.monotonic() - self.began)))
        children = descendants(self.process.pid)
        alive = self.process.is_alive()
        if alive:
            os.kill(self.process.pid, number)
        self.process.join(PATIENCE)
        return alive and self.process.exitcode == -number, children

    @property
    def text(self):
        return self.output.read_text(errors="replace") if self.output.exists() else ""


def _child(output, environment, work, arguments):
    with Path(output).open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ.update(environment)
    work(*arguments)


def program(*words):
    """``pathlines …`` in this process."""
    from pathlines.cli import main

    sys.argv = ["pathlines", *map(str, words)]
    main()


def descendants(pid):
    """Processes that a process has started, Python's own helpers left out."""
    try:
        found = [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        found = [p for p in found if b"resource_tracker" not in Path(f"/proc/{p}/cmdline").read_bytes()]
    except OSError:
        return []
    return [q for p in found for q in (p, *descendants(p))]


def gone(pids, seconds=PATIENCE):
    """Whether all of them end."""
    deadline = time.monotonic() + seconds
    while any(_runs(p) for p in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kills(count, seed, trial):
    """Call ``trial(moment, signal)`` until ``count`` processes were killed; it says whether one was.

    ``moment`` is uniform in [0, 1.05]: a share of the time that the whole work takes.
    """
    random, done, tried = np.random.default_rng(seed), 0, 0
    while done < count:
        tried += 1
        assert tried <= 4 * count + 20, f"only {done} of {tried} were alive when they should be killed"
        number = (signal.SIGKILL, signal.SIGTERM)[int(random.integers(2))]
        done += bool(trial(float(random.uniform(0.0, 1.05)), number))
    return {"kills": done, "tried": tried}
