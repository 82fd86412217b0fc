"""Pages without a browser: addresses, numbers beside the library's, and the lines that repeat them elsewhere."""

import io
import json
import shlex
from contextlib import redirect_stdout

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

pytest.importorskip("nicegui")

import pathlines as pl
from pathlines.cli.program import app
from pathlines.foundation.errors import PathlinesError
from pathlines.view.pages import advise, flows, prompts, retrieval, studies
from pathlines.view.site import shelf
from pathlines.view.site.study_data import parsed

PAGES = {"retrieval": retrieval, "flows": flows, "prompts": prompts, "advise": advise, "studies": studies}
STATES = [
    ("retrieval", {"n": "32", "depth": "2", "mask": "window:8"}),
    ("retrieval", {"n": "16", "simulate": "true", "prompts": "64", "layers": "5"}),
    ("flows", {"pieces": "[[1.5,1,0,0.6],[-2,1,-1,0.5]]", "acted": "1.5"}),
    ("flows", {"d": "2", "pieces": "[[0,1.4,1,0,0,1],[0,1.4,-1,0.5,0,1]]"}),
    ("advise", {"layers": "5", "branches": "-1", "target": "0.3", "n": "16"}),
    ("prompts", {"prompts": "2", "n": "3", "shared": "1"}),
    ("studies", {}),
]


def answered(name, words):
    _, compute = PAGES[name].prepared(words)
    return compute()


def after(lines):
    space = {}
    with redirect_stdout(io.StringIO()):
        exec(lines, space)
    return space


def on_the_command_line(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, shlex.split(line, comments=True)[1:])
    assert done.exit_code in (0, 1) and not (done.exception and done.exit_code != 1), done.output
    return done.output


@pytest.mark.parametrize(("name", "words"), STATES, ids=lambda v: v if isinstance(v, str) else "-".join(v) or "usual")
def test_answers_are_json_and_their_lines_of_python_run(name, words):
    found = answered(name, words)
    json.dumps(found, allow_nan=False)
    after(found["python"])


def test_lines_of_retrieval_give_the_same_profile(tmp_path, monkeypatch):
    for words in (STATES[0][1], STATES[1][1]):
        found = answered("retrieval", words)
        space = after(found["python"])
        np.testing.assert_allclose(found["profile"], space["profile"], rtol=1e-7)
        said = json.loads(on_the_command_line(found["command"] + " --json", tmp_path, monkeypatch))
        np.testing.assert_allclose(found["profile"], said["profile"], rtol=1e-7)
        if "measured" in space:
            line = found["figure"]["lines"][0]
            np.testing.assert_allclose(line["y"], space["measured"]["profile"], rtol=1e-7)
            np.testing.assert_allclose(said["measured"], space["measured"]["profile"], rtol=1e-12)


def test_lines_of_advise_give_the_same_curve_and_changes(tmp_path, monkeypatch):
    words = {"layers": "5", "branches": "-1", "logits": "0.5", "target": "0.3", "n": "16"}
    found, more = answered("advise", words), advise.prepared_more(words)[1]()
    again = after(found["python"])["found"]
    np.testing.assert_allclose(found["mean_cosine"], again.prediction.mean_cosine, rtol=1e-7)
    assert [c[1] for c in more["changes"]] == [c.factor for c in again.changes]
    said = json.loads(on_the_command_line(found["command"] + " --json", tmp_path, monkeypatch))
    np.testing.assert_allclose(found["mean_cosine"], said["prediction"]["mean_cosine"], rtol=1e-7)
    assert said["summary"] == [more["finding"], more["remedy"]]


def test_contributions_add_up_to_the_mean_cosine():
    found = answered("advise", {"layers": "6"})
    total = np.sum([a["values"] for a in found["causes"]["stack"]["areas"]], axis=0)
    np.testing.assert_allclose(total, found["mean_cosine"], atol=1e-6)


def test_the_density_of_pieces_integrates_to_one_and_points_follow_it():
    line = answered("flows", {"pieces": "[[1.2,1,0,0.5],[-2,1,-1,0.5]]"})["density"]
    exact, seen = line["lines"][0], line["lines"][2]
    assert np.trapezoid(exact["y"], exact["x"]) == pytest.approx(1.0, abs=5e-3)  # the grid's step at two jumps
    smooth = np.interp(seen["x"], exact["x"], exact["y"])
    assert np.abs(np.array(seen["y"]) - smooth).mean() < 0.02


def test_points_of_the_shell_are_those_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = answered("flows", {"d": "2", "pieces": "[[0,1.4,1,0,0,1]]"})
    write, sample = found["command"].splitlines()
    (tmp_path / "flow.json").write_text(shlex.split(write)[1])
    on_the_command_line(f"{sample} --out draws.csv", tmp_path, monkeypatch)
    draws = np.loadtxt("draws.csv", delimiter=",")
    assert draws.shape == (1000, 2)
    flow = after(found["python"])["flow"]
    np.testing.assert_allclose(draws, flow.sample(1000, seed=0), rtol=1e-6)


def test_prompts_reach_their_targets():
    found = answered("prompts", {"prompts": "2", "n": "3", "shared": "1"})
    assert max(c["values"][-1] for c in found["frames"]["curves"]) < 1e-9
    assert found["frames"]["n"] == 6 and found["command"].endswith("--prompts 2 --n 3 --shared 1")


def test_a_claim_has_its_words_and_its_lines():
    claim, setting = shelf.claim_of({"claim": "clustering/CL-43", "set.beta": "2", "set.times": "[1,2]"})
    assert shelf.command(claim, setting) == "pathlines verify clustering/CL-43 --set beta=2 --set 'times=[1.0,2.0]'"
    found = shelf.stored(claim, setting)
    assert found["html"] == "" and found["tolerances"]
    assert after(shelf.python(claim, setting))["done"].outcome.verdict == "holds"
    assert "card" not in shelf.stored(claim, setting)["html"] and shelf.stored(claim, setting)["verdict"] == "holds"


def test_every_claim_is_listed_with_its_erratum_beside_it():
    found = {e["id"]: e for e in shelf.entries()}
    assert set(found) == set(pl.claim.CLAIMS)
    assert "clustering/ER-01" in found[found["clustering/ER-01"]["corrected_by"]]["printed"]
    assert not any("<script" in e["statement"] for e in found.values())


def test_a_claim_that_takes_too_long_is_refused_before_it_runs():
    claim, setting = shelf.claim_of({"claim": "clustering/CL-43", "set.n1": "1000000"})
    with pytest.raises(PathlinesError, match="a page waits"):
        shelf.check_cost(claim, setting)


def netcdf(data):
    return bytes(data.to_netcdf(engine="h5netcdf"))


def test_files_are_read_as_numbers_over_axes_and_nothing_else():
    hostile = "<img src=x onerror=alert(1)>"
    values = np.arange(24.0).reshape(2, 3, 4)
    data = xr.Dataset(
        {hostile: (("repeat", "beta", "scheme"), values), "words": ("beta", ["a", "b", "c"])},
        {"beta": [1.0, 2, 4], "scheme": ["pre", "post", "mix", "peri"]}, {"title": hostile},
    )  # fmt: skip
    found = parsed(netcdf(data))
    assert list(found.variables) == [hostile] and found.axes["scheme"].words == ["pre", "post", "mix", "peri"]
    np.testing.assert_array_equal(found.variables[hostile].values, values)
    assert found.origin is None


@pytest.mark.parametrize("body", [b"", b"PK\x03\x04 zip", b"\x89HDF\r\n\x1a\n" + b"\0" * 200, netcdf(xr.Dataset())])
def test_what_is_no_study_is_said_in_one_line(body):
    found = parsed(body)
    assert isinstance(found, str) and "\n" not in found


def test_repetitions_are_averaged_with_their_errors_and_theory_is_dashed(monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.normal(size=(9, 5))
    data = xr.Dataset(
        {"y": (("repeat", "beta"), y), "y_theory": ("beta", np.zeros(5))}, {"beta": [1.0, 2, 4, 8, 16]},
        {"pathlines_study": json.dumps({"subject": {"kind": "model", "name": "sa"}, "setting": {"n": 8, "until": 2.0},
                                        "axes": {"beta": {"beta": [1, 2, 4, 8, 16]}}})},
    )  # fmt: skip
    study = parsed(netcdf(data))
    monkeypatch.setattr(studies.SHELF, "get", lambda name: study)
    found = answered("studies", {"study": "x"})
    line, theory = found["figure"]["lines"]
    np.testing.assert_allclose(line["y"], y.mean(axis=0), rtol=1e-7)
    half = (np.array(line["upper"]) - np.array(line["lower"])) / 4
    assert (half >= 0.99 * y.std(axis=0, ddof=1) / 3).all()
    assert theory["kind"] == "dashed" and found["figure"]["x"]["scale"] == "log"
    assert found["play"] == {
        "base": {"model": "sa", "n": "8", "until": "2"}, "axes": {"beta": {"beta": ["1", "2", "4", "8", "16"]}}
    }  # fmt: skip


HOSTILE = [
    ("flows", {"pieces": "[[1,2]]"}, "must be 4 numbers"),
    ("flows", {"pieces": "[[60,1,0,1]]"}, "up to 50"),
    ("flows", {"d": "2"}, "must be 6 numbers"),
    ("advise", {"layers": "1000", "n": "1024"}, "a page waits"),
    ("advise", {"record": '{"width": -1, "heads": 1, "layers": 1}'}, "is none"),
    ("retrieval", {"n": "20000", "mask": "window:9"}, "the limit is"),
    ("prompts", {"n": "4", "shared": "4"}, "must be less than n"),
    ("studies", {"study": "/etc/passwd"}, "open its file again"),
]


@pytest.mark.parametrize(("name", "words", "said"), HOSTILE)
def test_what_cannot_be_shown_is_said_before_it_is_computed(name, words, said):
    with pytest.raises(PathlinesError, match=said):
        PAGES[name].prepared(words)
