"""Malformed calls, of the program and of the package: one clean line, never a traceback, a hang, or a number.

The calls are generated (``malformed_api``, ``malformed_commands``); `make test` tries a seeded sample, and
`pytest -m slow tests/malformed` all of them.
"""

import contextlib
import io
import random
import signal
import subprocess
import sys
import warnings
from collections import Counter

import numpy as np
import pytest
from malformed_api import NO_ARGUMENTS, RECORDS, api_calls, good_calls, public
from malformed_commands import command_lines, good_lines

import pathlines as pl
from pathlines.cli.program import outcome
from pathlines.foundation.errors import PathlinesError

PATIENCE = 3.0
"""Seconds of work after which a call hangs."""
SAMPLE, FULL = 120, 1500


class Hang(BaseException):
    """A call that works for too long."""


@contextlib.contextmanager
def limited():
    """Raise ``Hang`` in a call that takes more than ``PATIENCE`` of processor time."""

    def ring(*_):
        raise Hang

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def fate_of_call(call):
    """ "refused" in one line, or what happened instead."""
    try:
        with limited(), warnings.catch_warnings():
            warnings.simplefilter("error")
            return f"accepted: {call()!r:.60}"
    except PathlinesError as error:
        return "refused" if len(str(error).splitlines()) == 1 else f"several lines: {error}"
    except Hang:
        return "hang"
    except Exception as error:
        return f"escaped: {type(error).__name__}: {error}"


def fate_of_line(words):
    """ "refused" with exit code 2 and one line, or what happened instead."""
    shown, sys.argv = io.StringIO(), ["pathlines", *words]
    try:
        with limited(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(shown):
            code = outcome()
    except SystemExit as left:
        code = left.code
    except Hang:
        return "hang"
    except Exception as error:
        return f"escaped: {type(error).__name__}: {error}"
    text = shown.getvalue().strip()
    clean = code == 2 and len(text.splitlines()) == 1 and "bug" not in text
    return "refused" if clean else f"code {code}: {text}"


def judged(calls, fate):
    """What went wrong, and how many calls there were."""
    fates = [(what, fate(call)) for what, call in calls]
    return [f"{what} -> {end}" for what, end in fates if end != "refused"], Counter(end for _, end in fates)


@pytest.fixture
def lines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    return [(" ".join(words), words) for words in command_lines(tmp_path)]


def test_every_public_name_has_a_good_call():
    observables = set(pl.OBSERVABLES)
    calls = {name for name in pl.__all__ if name not in observables and callable(getattr(pl, name))}
    assert calls - set(good_calls()) == RECORDS | NO_ARGUMENTS
    assert all(callable(public(name)) for name in good_calls())


def test_good_lines_are_understood(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", sys.argv)
    for words in good_lines(tmp_path):
        assert fate_of_line(words).startswith("code 0"), words


def test_a_sample_of_malformed_calls_is_refused():
    calls = random.Random(14).sample(list(api_calls()), SAMPLE)
    wrong, counted = judged(calls, fate_of_call)
    assert not wrong, "\n".join(wrong)
    assert counted["refused"] == SAMPLE


def test_a_sample_of_malformed_lines_is_refused(lines):
    wrong, _ = judged(random.Random(14).sample(lines, SAMPLE), fate_of_line)
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_all_malformed_calls_are_refused():
    wrong, counted = judged(list(api_calls()), fate_of_call)
    assert not wrong, "\n".join(wrong)
    assert counted["refused"] >= FULL


@pytest.mark.slow
def test_all_malformed_lines_are_refused(lines):
    wrong, counted = judged(lines, fate_of_line)
    assert not wrong, "\n".join(wrong)
    assert counted["refused"] >= FULL // 3


@pytest.mark.slow
def test_a_process_of_its_own_says_the_same(lines):
    """Twenty lines in real processes: one line on stderr, nothing on stdout, exit code 2."""
    for what, words in random.Random(20).sample(lines, 20):
        done = subprocess.run([sys.executable, "-m", "pathlines", *words], capture_output=True, text=True, timeout=60)
        said = done.stderr.strip().splitlines()
        assert (done.returncode, done.stdout, len(said)) == (2, "", 1), (what, done)


def test_what_was_accepted_before_is_refused():
    """Nonsense that went through: numbers as words, weights that are none, masses that do not sum to one."""
    circle = np.array([0.0, 1.0, 2.5])
    for call in (
        lambda: pl.SelfAttention(beta="9"),
        lambda: pl.SelfAttention(2.0, weights=5),
        lambda: pl.attention.UnnormalisedAttention(shift=float("nan")),
        lambda: pl.flow(pl.SelfAttention(2.0), np.eye(3), until="5"),
        lambda: pl.flow(None, np.eye(3), until=1.0),
        lambda: pl.flow(pl.SelfAttention(2.0), np.ones((2, 3, 3)), until=1.0),
        lambda: pl.flow(pl.SelfAttention(2.0), [[1.0, 0.0], [1.0]], until=1.0),
        lambda: pl.Sphere(3).uniform(5, 4),
        lambda: pl.evaluate(pl.CLAIMS["clustering/CL-43"], "nope"),
        lambda: pl.integrate.cluster_flow(circle, 9.0, masses=[1.0, 1.0, 1.0]),
        lambda: pl.limit.homogenized.collapse_time(8, 1.0, level=0.0),
    ):
        assert fate_of_call(call) == "refused"


@pytest.mark.parametrize("words", [["--step", "nan"], ["--step", "-inf"], ["--export", "no-such-name"]])
def test_an_export_that_cannot_be_meant_is_refused(words, tmp_path):
    line = ["view", "--export", str(tmp_path / "v.html"), "--n", "4", "--until", "0.1", "--frames", "3", *words]
    assert fate_of_line(line) == "refused"
