"""Ctrl-C, sent to real processes: one message, exit code 130, within two seconds, in every verb there is."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.main import get_command

from pathlines.cli.interrupt import CODE, GRACE, MESSAGE
from pathlines.cli.program import app

VERBS = sorted(get_command(app).commands)
HEARING = """
import runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv[0] = "pathlines"
runpy.run_module("pathlines", run_name="__main__")
"""
PROGRAM = [sys.executable, "-c", HEARING]
ENOUGH = 2.0

STUCK = """
import hashlib, pathlib
pathlib.Path(%r).touch()
hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)  # some twenty minutes that Python cannot interrupt
"""
SWALLOWED = """
import gc, pathlib, time
def lost(phase, info):
    gc.callbacks.remove(lost)
    pathlib.Path(%r).touch()
    time.sleep(5)
gc.callbacks.append(lost)
gc.collect()
time.sleep(60)
"""
LONG = {
    "run": "run sa --n 400 --d 3 --until 100000 --rtol 1e-12 --beta 9",
    "verify": "verify clustering --fresh",
    "figure": "figure clustering/* --figure {folder}",
    "advise": "advise 768 12 12 1024 3072 0.02 --simulate --seeds 1000",
    "animate": "animate metastability/life-of-clusters --full --animate {folder}/film.gif",
    "bench": "bench",
    "collapse": "collapse --n 256 --confirm 256",
    "gaussian": "gaussian line --kind sinkhorn --rtol 1e-12",
    "landscape": "landscape --beta 40000 --neurons 0:1,1:-2,2:-.7,3:1,4:-1,5:-2,6:-.3 --figure {folder}/atoms.pdf",
    "modes": "modes --n 100000 --beta 1000 --runs 20000",
    "patterns": "patterns --beta 200000",
    "retrieval": "retrieval --n 4000 --mask window:9 --simulate --prompts 4000 --force",
    "probe": "probe rxnmapper --iterate 3000 --seeds 64",
    "staircase": "staircase --n 150 --d 40 --beta 400 --kind sa",
    "tradeoff": "tradeoff --n 3000 --logit-scale 3 --qk-dim 7",
}
"""Commands that work for a while; the other verbs are over before a key is pressed."""


def start(words):
    """A process that hears SIGINT even where the tests themselves run in the background, which ignores it."""
    return subprocess.Popen(
        [*PROGRAM, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def interrupt(process):
    """(seconds until the process ended after Ctrl-C, its stderr)."""
    began = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    return ended(process, began)


def ended(process, began):
    try:
        _, shown = process.communicate(timeout=20)
    finally:
        process.kill()
    return time.monotonic() - began, shown


def wait_for(flag, process):
    deadline = time.monotonic() + 120
    while not Path(flag).exists():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def words_of(verb):
    """The verb (of a group: its first) with a word for each argument that has no default."""
    command, words = get_command(app).commands[verb], [verb]
    for name, inner in list(getattr(command, "commands", {}).items())[:1]:  # the first verb of a group
        command, words = inner, [verb, name]
    kinds = [p for p in command.params if p.param_type_name == "argument"]
    return [*words, *("sa" for p in kinds if p.required or p.default is None)]


def loading(tmp_path, name, text):
    flag, file = tmp_path / f"{name}.flag", tmp_path / f"{name}.py"
    file.write_text(text % str(flag))
    return flag, ["--load", str(file)]


@pytest.mark.parametrize("batch", [VERBS[i::3] for i in range(3)], ids=["a", "b", "c"])
def test_every_verb_ends_in_time_even_when_stuck_in_compiled_code(batch, tmp_path):
    started = {}
    for verb in batch:
        flag, load = loading(tmp_path, verb, STUCK)
        started[verb] = (flag, start([*load, *words_of(verb)]))
    for flag, process in started.values():
        wait_for(flag, process)
    began = time.monotonic()
    for _, process in started.values():
        os.killpg(process.pid, signal.SIGINT)
    for verb, (_, process) in started.items():
        seconds, shown = ended(process, began)
        assert (verb, process.returncode, shown.strip()) == (verb, CODE, MESSAGE)
        assert seconds < ENOUGH, verb


def test_an_interrupt_that_the_garbage_collector_loses_comes_again(tmp_path):
    flag, load = loading(tmp_path, "swallowed", SWALLOWED)
    process = start([*load, "list", "papers"])
    wait_for(flag, process)
    seconds, shown = interrupt(process)
    assert (process.returncode, shown.strip()) == (CODE, MESSAGE)
    assert seconds < GRACE


SLOW_STUDY = """
import time
import pathlines as pl

def slow(x: float) -> float:
    time.sleep(0.15)
    return x * x

mine = pl.study(slow, {"x": "0:59:60"})
"""


def test_an_interrupted_sweep_says_what_is_kept_and_goes_on_from_there(tmp_path, pathlines):
    """Ctrl-C in the verb: exit code 130; the same line again computes the rest alone, to the same numbers."""
    import json
    import re

    import xarray as xr

    script = tmp_path / "slow_study.py"
    script.write_text(SLOW_STUDY)
    process = start(["sweep", str(script), "--on", "serial", "--json"])
    for line in process.stdout:
        if json.loads(line)["event"] == "standing" and json.loads(line)["computed"] >= 10:
            break
    _, shown = interrupt(process)
    assert process.returncode == CODE and "Traceback" not in shown
    code, out, _ = pathlines("sweep", script, "--on", "serial", "--json", "--out", tmp_path / "s.nc")
    told = json.loads(out.splitlines()[-1])
    assert code == 0 and 10 <= told["recalled"] < 60 and told["recalled"] + told["computed"] == 60
    assert xr.load_dataset(tmp_path / "s.nc")["slow"].values.tolist() == [float(x * x) for x in range(60)]
    script.write_text(SLOW_STUDY.replace("0:59:60", "0:99:100"))
    process = start(["sweep", str(script), "--on", "serial"])
    time.sleep(6)
    _, shown = interrupt(process)
    assert process.returncode == CODE
    if found := re.search(r"(\d+) of 100 runs are kept", shown):
        assert int(found[1]) >= 0


def test_an_interrupted_run_keeps_its_checkpoint(results_folder, monkeypatch):
    monkeypatch.setenv("PATHLINES_CHECKPOINT_SECONDS", "0")
    process = start(LONG["run"].split())
    deadline = time.monotonic() + 120
    while not list(results_folder.glob("*-partial.nc")) and time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    seconds, shown = interrupt(process)
    assert process.returncode == CODE
    assert shown.strip().endswith(MESSAGE)
    assert "Traceback" not in shown
    assert seconds < ENOUGH
    assert list(results_folder.glob("*-partial.nc"))


@pytest.mark.slow
@pytest.mark.parametrize("after", [1.5, 2.0, 3.0, 6.0, 12.0])
@pytest.mark.parametrize("verb", LONG)
def test_work_ends_in_time_whenever_it_is_interrupted(verb, after, tmp_path):
    process = start(LONG[verb].format(folder=tmp_path).split())
    time.sleep(after)
    if process.poll() is not None:
        pytest.fail(f"{LONG[verb]} ended before it could be interrupted: {process.communicate()}")
    seconds, shown = interrupt(process)
    assert process.returncode == CODE, shown
    assert shown.strip().endswith(MESSAGE)
    assert "Traceback" not in shown
    assert seconds < ENOUGH
