"""Programs on disk: found by the next process, bounded, private, and never a reason to fail."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pathlines.foundation import kept_programs
from pathlines.foundation.kept_programs import keep_programs

CODE = """
import pathlines as pl
folder = pl.keep_programs()
import jax, jax.numpy as jnp
print(folder)
print(float(jax.jit(lambda x: jnp.sin(x) @ jnp.cos(x))(jnp.linspace(0, 3, 64))).hex())
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in (kept_programs.FOLDER, *kept_programs.SETTINGS, "jax_enable_compilation_cache"):
        monkeypatch.delenv(name.upper(), raising=False)
    return tmp_path


def fresh_process(code=CODE, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.split(), done.stderr


def programs(folder):
    return {f.name: f.stat().st_mtime_ns for f in folder.iterdir() if f.name.endswith("-cache")}


def test_the_next_process_compiles_nothing_and_computes_the_same_bits(cache):
    (named, first), _ = fresh_process()
    folder = next((cache / "pathlines").glob("programs-*"))
    kept = programs(folder)
    assert str(folder) == named and kept
    (_, second), _ = fresh_process()
    assert programs(folder) == kept and second == first


def test_damaged_programs_are_compiled_again(cache):
    (_, first), _ = fresh_process()
    for file in next((cache / "pathlines").glob("programs-*")).glob("*-cache"):
        file.write_bytes(file.read_bytes()[:40])
    (_, second), _ = fresh_process()
    assert second == first


def test_folders_of_the_user_and_folders_that_others_write_to(cache, monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(cache / "mine"))
    assert keep_programs() == cache / "mine" and not (cache / "pathlines").exists()
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    (named, _), _ = fresh_process()
    Path(named).chmod(0o777)
    (none, _), _ = fresh_process()
    assert none == "None"


def test_the_oldest_go_first(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_programs, "MOST_BYTES", 1000)
    for k, when in enumerate(np.random.default_rng(0).permutation(12)):
        file = tmp_path / f"{k}-cache"
        file.write_bytes(bytes(100))
        os.utime(file, (when, when))
    kept_programs._bound(tmp_path)
    assert sorted(f.stat().st_mtime for f in tmp_path.iterdir()) == [7, 8, 9, 10, 11]
