"""A state of the page: read from an address, refused where it must be, and the same numbers from its lines."""

import re
import shlex

import numpy as np
import pytest
from typer.testing import CliRunner

import pathlines as pl
from pathlines.foundation.errors import PathlinesError
from pathlines.view.site.presets import PRESETS, USUAL, usual
from pathlines.view.site.runs import check_work, command, frames_of, python, run_of
from pathlines.view.site.state import State, moment_of, state_of, with_values

SMALL = {"n": "8", "until": "1", "seed": "3"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"n": "10000"}, "an integer ≥ 2 and ≤ 2000"),
        ({"beta": "nan"}, "a number ≥ 0"),
        ({"beta": "NaN"}, "a number ≥ 0"),
        ({"beta": "-1"}, "a number ≥ 0"),
        ({"beta": "1e999"}, "a finite number ≥ 0"),
        ({"until": "inf"}, "Setting `until`"),
        ({"frames": "1000000"}, "≤ 501"),
        ({"model": "nope"}, "There is no model `nope`"),
        ({"model": "s" * 10_000}, "There is no model"),
        ({"nope": "1"}, "has no setting `nope`"),
        ({"mask": "/etc/passwd.npy"}, "files are for the command line"),
        ({"mask": "x.NPY "}, "files are for the command line"),
        ({"n": "[1,2]"}, "an integer"),
        ({"beta": "<script>alert(1)</script>"}, "a number ≥ 0"),
        ({"query": "[" * 3000}, "`query`"),
        ({"query": '{"a": 1}'}, "`query`"),
        ({"query": "1," * 4000}, "4000 letters"),
        ({str(k): "1" for k in range(100)}, "may hold 40 settings"),
        ({"start": "nowhere"}, "start"),
        ({"mask": "nothing:3"}, "There is no mask"),
    ],
)
def test_hostile_addresses_get_one_line(words, said):
    with pytest.raises(PathlinesError) as error:
        state_of(words).checked()
    assert said in str(error.value) and len(str(error.value)) < 500


def test_work_beyond_the_limit_is_refused_before_it_is_done():
    with pytest.raises(PathlinesError, match="a page computes at most"):
        check_work(state_of({"n": "2000", "frames": "501"}))
    check_work(state_of({"n": "500"}))


@pytest.mark.parametrize("words", [p.words for p in PRESETS] + [usual(name) for name in USUAL])
def test_an_address_is_that_of_its_state(words):
    state = state_of(words)
    assert state_of(state.words) == state
    assert "model=" in state.query


def test_what_is_usual_is_not_in_the_address():
    assert state_of({"beta": "4", "n": "100"}).words == {"model": "sa"}
    assert state_of({"beta": "9"}).changed("beta", "4").words == {"model": "sa"}
    assert state_of({"query": "[[1,0],[0,1]]", "d": "2"}).words["query"] == "[[1,0],[0,1]]"


def test_moments():
    assert moment_of({"t": "7.5"}) == 7.5
    assert moment_of({"t": "x"}) is moment_of({}) is moment_of({"t": "nan"}) is None


STATES = [
    {**SMALL, "beta": "9", "frames": "7"},
    {**SMALL, "beta": "2", "value": "[[0,-1,0],[1,0,0],[0,0,1]]", "mask": "causal"},
    {**SMALL, "model": "leader", "d": "2", "start": "cube:2"},
    {"model": "transported-measure", "n": "6", "d": "2", "layers": "4", "seed": "1"},
    {"model": "pre-ln", "n": "6", "layers": "5", "step": "0.1", "start": "clusters:2,0.2"},
]


@pytest.mark.parametrize("words", STATES, ids=lambda w: w.get("model", w.get("mask", "sa")))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_lines_of_python_give_the_same_numbers(words):
    state = state_of(words).checked()
    shown, space = run_of(state), {}
    exec(python(state), space)
    for name in shown.data.data_vars:
        assert np.array_equal(shown.data[name].values, space["run"].data[name].values, equal_nan=True), name


@pytest.mark.parametrize("words", STATES[1:], ids=lambda w: w.get("model", w.get("mask", "sa")))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_command_gives_the_same_numbers(words, tmp_path, monkeypatch):
    from pathlines.cli.program import app

    monkeypatch.chdir(tmp_path)
    state = state_of(words).checked()
    done = CliRunner().invoke(app, [*shlex.split(command(state))[1:], "--out", "run.nc"])
    assert done.exit_code == 0, done.output
    shown, again = run_of(state), pl.open_run("run.nc")
    for name in shown.data.data_vars:
        assert np.array_equal(shown.data[name].values, again.data[name].values, equal_nan=True), name


def test_the_picture_shows_the_tokens_of_the_flow():
    state = state_of({**SMALL, "beta": "9"}).checked()
    data = frames_of(state)
    run = pl.flow(
        pl.SelfAttention(9.0, summation="dense"),
        pl.Sphere(3).uniform(__import__("jax").random.key(3), 8),
        until=1.0,
        record=["tokens", "mean_overlap"],
        form="tokens",
    )
    stored = np.frombuffer(__import__("base64").b64decode(data["positions"]), "<i2")
    scale, offset = np.array(data["scale"]), np.array(data["offset"])
    places = offset + scale * stored.reshape(len(data["times"]), 8, 3)
    assert np.allclose(places, run.data["tokens"], atol=2 * scale.max())
    curve = next(c for c in data["curves"] if c["name"] == "mean_overlap")
    assert np.allclose(curve["values"], run.data["mean_overlap"], rtol=1e-12)


def test_a_diverging_run_shows_what_it_has_and_why_it_stopped():
    blows = next(p.words for p in PRESETS if p.name == "It blows up")
    with pytest.warns(UserWarning, match="diverged"):
        data = frames_of(state_of({**blows, "n": "10"}).checked())
    assert re.search(r"diverged at t = [\d.]+", data["outcome"]) and 1 < len(data["times"]) < 101


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("name", ["step", "until", "beta"])
def test_numbers_that_are_none_are_refused_and_not_left_out(name, value):
    with pytest.raises(PathlinesError):
        with_values(State(), {name: value}).checked()
