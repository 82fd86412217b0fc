"""What the last position of a decoder depends on: reverse passes vs whole Jacobians, random modules vs theory."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from pathlines.architecture.read import from_config
from pathlines.cli.probe import register
from pathlines.foundation.errors import ArgumentError
from pathlines.limit.architecture.influence import position_influence
from pathlines.probing.jacobian import last_position_squares, require_causal, traced_stream
from pathlines.probing.modules import from_fields, random_module
from pathlines.probing.retrieval import initial_dependence, probe_retrieval, windows_of
from pathlines.probing.retrieval_figure import probed_retrieval_figure

GPT2 = {
    "model_type": "gpt2", "n_embd": 16, "n_head": 2, "n_layer": 2, "vocab_size": 40, "n_positions": 32,
    "initializer_range": 0.15, "bos_token_id": 0, "eos_token_id": 0,
}  # fmt: skip
QWEN2 = {
    "model_type": "qwen2", "hidden_size": 16, "num_attention_heads": 2, "num_key_value_heads": 1,
    "num_hidden_layers": 3, "intermediate_size": 24, "vocab_size": 40, "initializer_range": 0.15,
}  # fmt: skip
WINDOWED = {**QWEN2, "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1}
BERT = {
    "model_type": "bert", "hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 16,
    "vocab_size": 40,
}  # fmt: skip
IDS = np.array([3, 1, 4, 1, 5, 9, 2, 6])


def brute_force(module, ids):
    """Every entry of ∂h_N/∂h_i by autograd.functional.jacobian, the layers called one after the other by the module."""
    import torch

    start, _ = traced_stream(module, ids)
    layers = module.h if hasattr(module, "h") else module.layers

    def last(hidden):
        caught = {}
        hooks = [
            layers[0].register_forward_pre_hook(lambda _, args: (hidden[None], *args[1:])),
            layers[-1].register_forward_hook(
                lambda _, __, out: caught.update(h=out[0] if isinstance(out, tuple) else out)
            ),
        ]
        module(input_ids=torch.as_tensor(ids)[None], use_cache=False)
        for hook in hooks:
            hook.remove()
        return caught["h"].reshape(len(ids), -1)[-1]

    whole = torch.autograd.functional.jacobian(last, start.detach()).numpy().astype(float)  # (d, n, d)
    return np.sum(whole**2, axis=(0, 2)) / whole.shape[0]


@pytest.mark.parametrize("fields", [GPT2, QWEN2, WINDOWED], ids=["gpt2", "qwen2", "windows"])
def test_estimator_vs_the_whole_jacobian(fields):
    module = random_module(from_fields(fields), 0)
    exact = brute_force(module, IDS)
    np.testing.assert_allclose(last_position_squares(module, IDS, 16).mean(axis=0), exact, rtol=1e-4)
    few = np.stack([last_position_squares(module, IDS, 2, seed).mean(axis=0) for seed in range(200)])
    error = few.std(axis=0) / np.sqrt(len(few))
    assert np.all(np.abs(few.mean(axis=0) - exact) < 5 * error)
    assert np.all(error < 0.08 * exact)


def test_windows_of_layers():
    assert windows_of(from_fields(WINDOWED)) == [0, 4, 4]
    assert windows_of(from_fields(QWEN2)) == [0, 0, 0]
    assert windows_of(from_fields(GPT2)) == [0, 0]


@pytest.mark.parametrize("fields", [GPT2, WINDOWED], ids=["gpt2", "windows"])
def test_random_modules_vs_theory(fields):
    """Width 64: five standard errors of 48 modules, and 5 % for O(1/width)."""
    wide = {**fields, "initializer_range": 0.05, "n_embd": 64, "hidden_size": 64, "intermediate_size": 96}
    config = from_fields({k: v for k, v in wide.items() if k in fields})
    found = initial_dependence(config, [IDS], seeds=48, directions=2)
    architecture = from_config({k: v for k, v in wide.items() if k in fields}).architecture
    theory = np.sqrt(position_influence(architecture, IDS, windows=windows_of(config)).squared)
    seen, error = np.array(found.influence), np.array(found.error)
    assert np.all(np.abs(seen - theory) < 5 * error + 0.05 * theory)
    assert np.median(error / seen) < 0.05


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("gpt2")
    random_module(from_fields(GPT2), 7).save_pretrained(place)
    return place


def test_command(folder, tmp_path):
    ids = tmp_path / "ids.txt"
    ids.write_text(" ".join(map(str, IDS)))
    app = typer.Typer()
    register(app)
    arguments = [str(folder), "--retrieval", "--ids", str(ids), "--seeds", "2", "--directions", "4"]
    result = CliRunner().invoke(app, [*arguments, "--json", "--figure", str(tmp_path / "r.svg")])
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert len(found["trained"]["influence"]) == len(found["theory"]) == 8 and found["windows"] == [0, 0]
    assert any(note.startswith("Not comparable") for note in found["notes"])
    assert (tmp_path / "r.svg").stat().st_size > 1000
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0 and "depends least on position" in shown.stdout
    refused = CliRunner().invoke(app, [*arguments, "--drop-special"])
    assert isinstance(refused.exception, ArgumentError)


def test_seed_of_saved_weights_is_found_again(folder):
    """The module that was saved is the random one of seed 7: trained and initial agree where the seed is the same."""
    found = probe_retrieval(str(folder), ids="3 1 4 1 5 9 2 6", seeds=2, seed=7, directions=16)
    module = random_module(from_fields(GPT2), 7)
    np.testing.assert_allclose(found.trained.influence, np.sqrt(brute_force(module, IDS)), rtol=1e-4)
    assert len(probed_retrieval_figure(found).axes) == 2


def test_errors_are_one_line(folder, tmp_path):
    with pytest.raises(ArgumentError, match="at most 32 tokens"):
        probe_retrieval(str(folder), ids=" ".join(["1"] * 33), seeds=2)
    with pytest.raises(ArgumentError, match="between 0 and 39, but go from 1 to 40"):
        probe_retrieval(str(folder), ids="1 2 40", seeds=2)
    with pytest.raises(ArgumentError, match="at least three tokens, but has 2"):
        probe_retrieval(str(folder), ids="1 2", seeds=2)
    with pytest.raises(ArgumentError, match="not both"):
        probe_retrieval(str(folder), ids="1 2 3", lines=["a"], seeds=2)
    with pytest.raises(ArgumentError, match="`directions`"):
        probe_retrieval(str(folder), ids="1 2 3", seeds=2, directions=0)
    with pytest.raises(ArgumentError, match="is not causal"):
        require_causal(random_module(from_fields(BERT), 0), IDS)
    random_module(from_fields(BERT), 0).save_pretrained(tmp_path)
    with pytest.raises(ArgumentError, match="`bert` is not causal"):
        probe_retrieval(str(tmp_path), ids="1 2 3 4", seeds=2)
