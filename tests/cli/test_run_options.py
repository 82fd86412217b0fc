"""`pathlines run`: a model's parameters as options, a person's own tokens and weights, laws of starts, films."""

import json

import jax
import numpy as np
import pytest

import pathlines as pl
from pathlines.domain.start import STARTS, starting
from pathlines.foundation.errors import PathlinesError
from pathlines.model.parts.perceptron import Perceptron
from pathlines.weights import FixedWeights

UNTIL, RECORD = 0.5, "mean_overlap"


@pytest.fixture
def own(tmp_path):
    """Files with tokens and matrices of a person."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(5, 3))
    arrays = {"x": x / np.linalg.norm(x, axis=1, keepdims=True), "B": rng.normal(size=(4, 3))}
    arrays |= {name: rng.normal(size=(2, 3, 3)) for name in ("Q", "K", "V")} | {"W": rng.normal(size=(3, 4))}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    return tmp_path, arrays


def test_own_tokens_heads_mask_and_perceptron_are_those_of_the_library(pathlines, own):
    folder, a = own
    words = [
        "run",
        "sa",
        "--beta",
        "3",
        "--mask",
        "causal",
        "--activation",
        "tanh",
        "--until",
        UNTIL,
        "--record",
        RECORD,
        "--json",
    ]
    for option, name in (("tokens", "x"), ("query", "Q"), ("key", "K"), ("value", "V"), ("outer", "W"), ("inner", "B")):
        words += [f"--{option}", folder / f"{name}.npy"]
    code, shown, _ = pathlines(*words)
    assert code == 0
    weights = FixedWeights(a["V"], a["Q"], a["K"])
    model = pl.SelfAttention(
        3.0, weights=weights, perceptron=Perceptron(a["W"], a["B"], activation="tanh"), mask="causal"
    )
    run = pl.flow(model, a["x"], until=UNTIL, record=RECORD)
    assert json.loads(shown)["final"][RECORD] == pytest.approx(float(run[RECORD][-1]), rel=1e-12)
    assert json.loads(shown)["setting"]["tokens"] == a["x"].tolist()


def test_the_same_setting_is_found_again_and_other_tokens_are_not(pathlines, own):
    folder, a = own
    words = ["run", "sa", "--tokens", folder / "x.npy", "--until", "0.1", "--record", RECORD, "--json"]
    assert not json.loads(pathlines(*words)[1])["stored"]
    assert json.loads(pathlines(*words)[1])["stored"]
    np.save(folder / "x.npy", -a["x"][::-1])
    assert not json.loads(pathlines(*words)[1])["stored"]


def test_masks_are_words_and_files_and_found_by_what_they_hold(pathlines, own):
    """A word, the matrix that it stands for, and another matrix in the same file."""
    folder, a = own
    words = ["run", "sa", "--tokens", folder / "x.npy", "--until", "0.3", "--record", RECORD, "--json", "--mask"]
    file, ask = folder / "P.npy", lambda mask: json.loads(pathlines(*words, mask)[1])
    np.save(file, np.asarray(pl.attention.AlibiMask(2.0, strict=False).rows(5)))
    by_word, by_file = ask("alibi:2"), ask(file)
    model = pl.SelfAttention(4.0, mask=pl.attention.AlibiMask(2.0, strict=False))
    last = float(pl.flow(model, a["x"], until=0.3, record=RECORD)[RECORD][-1])
    assert by_word["final"][RECORD] == pytest.approx(last, rel=1e-12)
    assert by_file["final"][RECORD] == pytest.approx(last, rel=1e-9) and not by_file["stored"]
    assert ask(file)["stored"]
    np.save(file, np.eye(5))
    other = ask(file)
    assert not other["stored"]
    assert other["final"][RECORD] != by_file["final"][RECORD]


def test_help_lists_the_parameters_of_the_model_that_is_named(pathlines, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    shown = pathlines("run", "mix-ln", "--help")[1]
    (row,) = (line for line in shown.splitlines() if "--switch" in line)
    assert all(words in row for words in ("NUMBER", "τ: when Mix-LN turns", "depth-time", "≥ 0", "[default: 2.0]"))
    assert "who is heard" not in shown
    assert "who is heard" in pathlines("run", "--form", "gram", "--help")[1]  # gram is a model too, but not here


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["sa", "--gamma", "1"], "o such option: --gamma"),
        (["pre-ln", "--mask", "causal"], "o such option: --mask"),
        (["sa", "--beta", "cold"], "must be a number ≥ 0"),
        (["sa", "--mask", "windw:3"], "There is no mask `windw:3`; a mask is causal, alibi:SLOPE"),
        (["sa", "--mask", "nowhere.npy"], "nowhere.npy cannot be read"),
        (["sinkhorn", "--mask", "causal"], "There is no masked SinkhornAttention"),
        (["causal-decoder", "--mask", "causal:sum"], "Argument `mask` must take means"),
        (["sa", "--space", "torus"], "must be euclidean or sphere, but is 'torus'"),
        (["sa", "--query", "nowhere.npy"], "nowhere.npy cannot be read"),
        (["sa", "--tokens", "nowhere.npy"], "nowhere.npy cannot be read"),
        (["sa", "--value", "[[1,2],[3]]"], "Argument `--value` must be a real numeric array"),
        (["sa", "--value", "many"], "must be a real numeric array"),
        (["sa", "--outer", "[[1],[1],[1]]"], "needs both `outer` (W) and `inner` (B)"),
        (["sa", "--start", "clusters:0"], "Setting `count` of start `clusters` must be an integer ≥ 1, but is 0"),
        (["sa", "--start", "sines:3"], "takes no parameters"),
        (["sa", "--start", "simplex:x"], "Setting `overlap` of start `simplex` must be a number"),
        (["sa", "--start", "nowhere"], "Option --start must be one of uniform, sines"),
        (["sa", "--d", "5", "--animate", "film.gif"], "in two or three dimensions"),
        (["sa", "--runs", "2", "--animate", "film.gif"], "shows one run"),
        (["sa", "--animate", "film.mov"], "--animate must end in .gif or .mp4"),
    ],
)
def test_bad_options_are_one_line(pathlines, words, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, said = pathlines("run", *words)
    assert code == 2 and says in said and len(said.strip().splitlines()) == 1, said


def test_tokens_of_another_shape_or_for_many_runs_are_refused(pathlines, own):
    folder, _ = own
    file = folder / "x.npy"
    assert "do not fit --tokens, which are 5 × 3" in pathlines("run", "sa", "--tokens", file, "--n", "4")[2]
    assert "leave --runs out" in pathlines("run", "sa", "--tokens", file, "--runs", "3")[2]


def test_a_figure_shows_the_tokens_and_a_film_their_way(pathlines, tmp_path):
    words = ["run", "sa", "--n", "4", "--d", "2", "--until", "0.2", "--out", tmp_path / "r.nc"]
    code, shown, _ = pathlines(*words, "--figure", tmp_path / "r.png", "--animate", tmp_path / "frames")
    assert code == 0 and "film: " in shown
    run = pl.open_run(tmp_path / "r.nc")
    assert "tokens" in run.data
    assert len(list((tmp_path / "frames").glob("*.png"))) == len(run.time)


KEY = jax.random.key(3)


@pytest.mark.parametrize("name", list(STARTS))
def test_laws_are_drawn_at_their_defaults(name):
    x = np.asarray(starting(name, 4, 5, "float64", "sa")(KEY))
    assert x.shape == (4, 5) and np.isfinite(x).all()
    assert name in ("cube", "normal") or np.allclose(np.linalg.norm(x, axis=1), 1)


def test_parameters_of_laws_are_theirs():
    """Four points of no spread; a common overlap; a narrow cube; mean cosine I_1(κ)/I_0(κ) on the circle."""
    law = lambda text, n=40, d=3: np.asarray(starting(text, n, d, "float64", "sa")(KEY))  # noqa: E731
    assert len(np.unique(law("clusters:4,0").round(12), axis=0)) == 4
    gram = law("simplex:0.25", 3) @ law("simplex:0.25", 3).T
    assert np.allclose(gram[~np.eye(3, dtype=bool)], 0.25)
    assert 0.4 < np.abs(law("cube:0.5")).max() <= 0.5
    n = 4000
    cosines = law("von-mises-fisher:2", n, 2)[:, 0]
    expected, variance = 0.6977746579640077, 1 - 0.6977746579640077 / 2 - 0.6977746579640077**2
    assert abs(cosines.mean() - expected) < 5 * np.sqrt(variance / n)


def test_a_model_of_space_starts_in_a_cube():
    assert np.abs(np.asarray(starting("uniform", 50, 3, "float64", "rescaled")(KEY))).max() <= 1
    with pytest.raises(PathlinesError):
        starting("cube:-1", 3, 3, "float64", "rescaled")


def test_weights_decide_the_dimension():
    from pathlines.sweep.request import dimension

    matrix = np.eye(7)
    assert dimension(None, None, "sa", {"query": matrix}) == 7
    assert dimension(None, np.ones((4, 2)), "sa", {"query": matrix}) == 2
    assert dimension(5, None, "sa", {"query": matrix}) == 5
    assert dimension(None, None, "rescaled", {}) == 2
    assert dimension(None, None, "pre-ln", {}) == 3
