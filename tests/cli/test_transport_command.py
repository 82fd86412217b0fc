"""pathlines transport interpolate and check, as a person would call them."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from pathlines.cli.program import app
from pathlines.foundation.errors import ArgumentError

RUN = CliRunner()


@pytest.fixture
def folders(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("inputs", "targets"):
        (tmp_path / name).mkdir()
        shared = rng.standard_normal((1, 4))
        for k in range(2):
            x = np.vstack([shared, rng.standard_normal((2, 4))])
            np.save(tmp_path / name / f"{k}.npy", x / np.linalg.norm(x, axis=1, keepdims=True))
    return tmp_path


def test_interpolate_then_check(folders):
    inputs, targets, out = (str(folders / n) for n in ("inputs", "targets", "s.json"))
    made = RUN.invoke(
        app, ["transport", "interpolate", inputs, targets, "--out", out, "--json"], catch_exceptions=False
    )
    assert max(json.loads(made.stdout)["w2"]) < 1e-9
    words = ["transport", "check", out, "--inputs", inputs, "--targets", targets, "--within", "1e-9", "--json"]
    found = RUN.invoke(app, words, catch_exceptions=False)
    assert found.exit_code == 0
    assert max(json.loads(found.stdout)["w2"]) < 1e-9
    wrong = RUN.invoke(app, ["transport", "check", out, "--inputs", targets, "--targets", inputs, "--within", "1e-9"])
    assert wrong.exit_code == 1


def test_nothing_is_written_when_a_fit_fails(folders):
    np.save(folders / "targets" / "1.npy", np.eye(4)[:2])
    out = folders / "s.json"
    with pytest.raises(ArgumentError, match="best groups leave"):
        words = ["transport", "interpolate", str(folders / "inputs"), str(folders / "targets"), "--out", str(out)]
        RUN.invoke(app, words, catch_exceptions=False)
    assert not out.exists()


def test_rows_that_are_no_numbers_are_named(folders):
    table = np.eye(4)
    table[2, 0] = np.nan
    np.save(folders / "inputs" / "0.npy", table)
    with pytest.raises(ArgumentError, match="row 2"):
        words = ["transport", "interpolate", str(folders / "inputs"), str(folders / "targets")]
        RUN.invoke(app, words, catch_exceptions=False)
