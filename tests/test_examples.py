"""Every numbered example runs as it stands."""

import ast
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import xarray as xr

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda p: p.stem)
def test_example(script, tmp_path):
    if "import torch" in script.read_text(encoding="utf-8"):
        pytest.importorskip("torch")
    result = subprocess.run([sys.executable, "-W", "error", script], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout


def test_a_study_in_ten_lines_is_interrupted_and_goes_on(tmp_path):
    """Ctrl-C after the first chunk; the same script again keeps its bytes, computes the rest, draws, makes a table."""
    script = next(path for path in EXAMPLES if path.stem == "11_your_own_study")
    tree = ast.parse(script.read_text())
    lines = {node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt)} - {tree.body[0].lineno}
    assert len(lines) == 10
    how = {"cwd": tmp_path, "env": {**os.environ, "PATHLINES_STORE": str(tmp_path / "store")}, "text": True}
    hears = "import runpy, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    words = [sys.executable, "-c", f"{hears} runpy.run_path({str(script)!r}, run_name='__main__')"]
    first = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)
    chunks = lambda: {p: p.read_bytes() for p in (tmp_path / "store").rglob("[!.]*.chunk")}  # noqa: E731
    end = time.monotonic() + 300
    while not chunks() and first.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    first.send_signal(signal.SIGINT)
    _, said = first.communicate(timeout=120)
    assert first.returncode != 0 and "KeyboardInterrupt" in said, said
    kept = chunks()
    assert 1 <= len(kept) < 4 and not (tmp_path / "study.nc").exists()
    again = subprocess.run([sys.executable, "-W", "error", script], capture_output=True, **how)
    assert again.returncode == 0, again.stderr
    assert int(re.search(r"stored=(\d+)", again.stdout)[1]) == 50 * len(kept)
    assert len(chunks()) == 4 and all(chunks()[path] == body for path, body in kept.items())
    assert (tmp_path / "study.pdf").stat().st_size > 1000
    assert xr.load_dataset(tmp_path / "study.nc")["status"].values.sum() == 0
