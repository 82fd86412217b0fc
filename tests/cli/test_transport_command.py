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


def circle(folders):
    for name in ("inputs", "targets"):
        for k in range(2):
            np.save(folders / name / f"{k}.npy", np.eye(2))


def equal(folders):
    np.save(folders / "inputs" / "1.npy", np.load(folders / "inputs" / "0.npy"))


def unequal(folders):
    np.save(folders / "targets" / "1.npy", np.eye(4)[:2])


def one_target(folders):
    (folders / "targets" / "1.npy").unlink()


def long_tokens(folders):
    np.save(folders / "inputs" / "1.npy", 2 * np.eye(4)[:3])


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (circle, "on the circle"),
        (equal, "`inputs` 0 and 1 are equal"),
        (unequal, "best groups leave W₂ = "),
        (one_target, "as many as inputs"),
        (long_tokens, "row 0 has length 2"),
    ],
)
def test_nothing_is_written_when_a_fit_fails(folders, spoil, words):
    spoil(folders)
    out = folders / "s.json"
    with pytest.raises(ArgumentError, match=words):
        command = ["transport", "interpolate", str(folders / "inputs"), str(folders / "targets"), "--out", str(out)]
        RUN.invoke(app, command, catch_exceptions=False)
    assert not out.exists()


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--method", "magic"), "`method` must be"),
        (("--error", "0"), "`error` must be"),
        (("--pieces", "1"), "`pieces` must be at least"),
        (("--grouping", "none"), "`grouping` must be"),
    ],
)
def test_options_that_cannot_be_met_write_nothing(folders, option, words):
    command = ["transport", "interpolate", str(folders / "inputs"), str(folders / "targets"), *option]
    with pytest.raises(ArgumentError, match=words):
        RUN.invoke(app, [*command, "--out", str(folders / "s.json")], catch_exceptions=False)
    assert not (folders / "s.json").exists()


GATE = '{"t": 1.0, "gate": {"a": [1, 0, 0], "tau": 0, "omega": [0, 1, 0]}}'


@pytest.mark.parametrize(
    ("kind", "pieces", "words"),
    [
        ("magic", GATE, "must be relu-euclid or transformer-sphere"),
        ("transformer-sphere", '{"t": 1.0, "gate": {"a": [1, 0, 0], "tau": 0}}', "no `omega`"),
        ("transformer-sphere", GATE.replace("1.0", "NaN"), "JSON"),
        ("transformer-sphere", GATE.replace("1.0", "1e999"), "JSON|finite"),
        ("transformer-sphere", '{"t": 1.0, "Q": 1}', "unknown field `Q`"),
        ("transformer-sphere", ", ".join(['{"t":1}'] * (10**6 + 1)), "at most 1000000"),
    ],
)
def test_check_refuses_broken_files_in_one_line(tmp_path, kind, pieces, words):
    file = tmp_path / "s.json"
    file.write_text(f'{{"kind": "{kind}", "d": 3, "pieces": [{pieces}]}}')
    with pytest.raises(ArgumentError, match=words) as caught:
        RUN.invoke(app, ["transport", "check", str(file)], catch_exceptions=False)
    assert "\n" not in str(caught.value)


def test_rows_that_are_no_numbers_are_named(folders):
    table = np.eye(4)
    table[2, 0] = np.nan
    np.save(folders / "inputs" / "0.npy", table)
    with pytest.raises(ArgumentError, match="row 2"):
        words = ["transport", "interpolate", str(folders / "inputs"), str(folders / "targets")]
        RUN.invoke(app, words, catch_exceptions=False)
