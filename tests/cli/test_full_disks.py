"""A disk that is full costs the file on it and nothing else: one line, an exit code of its own."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pathlines.foundation import files

RUN = ["run", "sa", "--n", "3", "--until", "0.1"]


@pytest.fixture
def full(tmp_path, monkeypatch):
    """A folder on a full disk."""
    folder, honest = tmp_path / "full", files._flush

    def flush(path):
        if folder in path.parents:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        honest(path)

    monkeypatch.setattr(files, "_flush", flush)
    return folder


def test_a_file_that_cannot_be_written_does_not_cost_the_stored_result(full, pathlines):
    code, shown, said = pathlines(*RUN, "--out", full / "run.nc")
    assert (code, said) == (74, f"pathlines: The file {full / 'run.nc'} cannot be written (No space left on device).\n")
    assert "cluster_count" in shown
    assert "stored" in pathlines(*RUN)[1]


def test_a_full_store_does_not_cost_the_file(full, pathlines, tmp_path, monkeypatch):
    monkeypatch.setenv("PATHLINES_STORE", str(full))
    code, _, said = pathlines(*RUN, "--out", tmp_path / "run.nc")
    assert code == 74
    assert said.count("\n") == 1
    assert "PATHLINES_STORE" in said
    assert pathlines("show", tmp_path / "run.nc")[0] == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_output_that_goes_nowhere_is_no_bug():
    with Path("/dev/full").open("w") as nowhere:
        words = [sys.executable, "-m", "pathlines", "cite", "sa"]
        done = subprocess.run(words, stdout=nowhere, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (74, 1)
    assert "No space left" in done.stderr
