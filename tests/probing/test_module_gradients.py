"""Autograd of the library's modules: norms by matrix, joint matrices taken apart, remedies applied by weights."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from pathlines.architecture.read import from_config  # noqa: E402
from pathlines.limit.architecture.gradients import predict_gradients  # noqa: E402
from pathlines.probing.module_gradients import Pass, module_gradients  # noqa: E402
from pathlines.probing.remedied import multiply, tried  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
LLAMA = {
    "model_type": "llama", "hidden_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2,
    "num_hidden_layers": 4, "intermediate_size": 256, "initializer_range": 0.06, "vocab_size": 64,
}  # fmt: skip
PHI3 = {**LLAMA, "model_type": "phi3", "pad_token_id": None, "bos_token_id": None, "eos_token_id": None}
BERT = {**LLAMA, "model_type": "bert", "initializer_range": 0.15}
IDS = {"input_ids": np.arange(3, 19)}


def test_norms_are_those_of_autograd_by_hand():
    """The parameter's own gradient, found by its name."""
    found = Pass(LLAMA, IDS, 0)
    assert len(found.stream) == 5 and np.all(found.stream > 0)
    for kind, name in {"query": "self_attn.q_proj", "mlp_out": "mlp.down_proj"}.items():
        for k, layer in enumerate(found.module.layers):
            parameter = layer.get_submodule(name).weight
            assert found.matrices[kind][k] == pytest.approx(float(parameter.grad.norm()), rel=1e-5)


def test_joint_matrices_are_taken_apart():
    """Phi-3 holds queries, keys and values in one matrix, gate and inner in another: the squares add up."""
    found = Pass(PHI3, IDS, 1)
    kinds = {"query", "key", "value", "output", "mlp_gate", "mlp_in", "mlp_out"}
    assert set(found.matrices) == kinds
    for k, layer in enumerate(found.module.layers):
        joint = sum(found.matrices[kind][k] ** 2 for kind in ("query", "key", "value"))
        assert joint == pytest.approx(float(layer.self_attn.qkv_proj.weight.grad.norm()) ** 2, rel=1e-5)
        rows = layer.self_attn.qkv_proj.weight.grad[:128]
        assert found.matrices["query"][k] == pytest.approx(float(rows.norm()), rel=1e-5)


WINDOWS = {**LLAMA, "model_type": "gemma2", "head_dim": 32, "query_pre_attn_scalar": 32, "sliding_window": 5}
OUTPUT = {**LLAMA, "model_type": "olmo2", "pad_token_id": None}
SQUARES = {**LLAMA, "model_type": "arcee"}


@pytest.mark.parametrize("fields", [LLAMA, WINDOWS, OUTPUT, SQUARES], ids=lambda fields: fields["model_type"])
def test_gradients_of_modules_are_those_predicted(fields):
    """Eight modules of width 128: norms of every kind within a quarter (median over layers), of the stream in a tenth.

    OLMo 2 normalises branches and not their inputs, so that scores move by relative changes of tokens 1/30 in size: its
    stream would be off by 13 % at width 256, did scores take them for absolute ones.
    """
    measured = module_gradients(fields, 16, seeds=8)
    errors = measured.errors(predict_gradients(from_config(fields).architecture, 16))
    assert errors["stream"] < 0.1 and max(errors.values()) < 0.25
    assert measured.model.startswith("modules of transformers")


def test_a_remedy_multiplies_what_it_names_and_nothing_else():
    plain, changed = Pass(BERT, IDS, 0, backward=False), {}

    def change(module):
        before = {name: p.detach().clone() for name, p in module.named_parameters()}
        multiply(module, BERT, {"branches": 0.5, "logits": 3.0})
        for name, p in module.named_parameters():
            ratio = float((p.detach() / before[name])[before[name] != 0].median()) if (before[name] != 0).any() else 1.0
            if ratio != 1:
                changed[name.split("layer.")[-1][2:]] = ratio

    after = Pass(BERT, IDS, 0, change, backward=False)
    wanted = {"attention.output.dense.weight": 0.5, "output.dense.weight": 0.5, "attention.self.query.weight": 3.0}
    assert changed == pytest.approx(wanted)
    assert after.cosine[0] == plain.cosine[0] and after.cosine[-1] != plain.cosine[-1]
    found = tried(BERT, 16, "branches × 0.1", {"branches": 0.1}, 0.9, 4, seeds=3)
    assert found.met == 3 and min(found.before) > max(found.after)
