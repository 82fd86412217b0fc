"""Whatever architecture a person may write down is predicted: no error, no number that cannot be."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pathlines.advice import Target, advise
from pathlines.architecture import Architecture, Deviations
from pathlines.architecture.read import from_config
from pathlines.architecture.record import ACTIVATIONS, MASKS, NORMS, PLACEMENTS, POSITIONS, SCORES
from pathlines.limit.architecture.predict import predict

FIELDS = {
    "placement": PLACEMENTS, "norm": NORMS, "mask": MASKS, "positions": POSITIONS, "activation": ACTIVATIONS,
    "gated": (False, True), "qk_norm": (False, True), "embedding_norm": (False, True), "shared": (False, False, True),
    "mlp_width": (0, 1, 16, 64), "window": (0, 1, 2, 100), "logit_cap": (0.0, 1e-3, 50.0), "types": (0, 2),
    "embedding_width": (0, 4), "patch_inputs": (0, 0, 12), "class_token": (False, True), "skip": (1.0, 1e-3, 3.0),
    "attention_residual": (1.0, 0.0, 0.3), "mlp_residual": (1.0, 0.0, 4.0), "norm_gain": (1.0, 0.1),
    "norm_epsilon": (0.0, 1e-5, 1.0), "rope_fraction": (1.0, 0.0, 0.3), "logit_multiplier": (0.0, 1e-3, 10.0),
    "embedding_scale": (1.0, 30.0), "value_dim": (0, 1, 8), "sinks": (False, True), "gate_shift": (0.0, 1.0),
    "experts": (0, 0, 4), "active_experts": (1, 2, 4), "expert_score": SCORES, "expert_shares": (False, True),
    "shared_width": (0, 8),
}  # fmt: skip
STDS = st.sampled_from((0.0, 1e-6, 0.02, 0.1, 0.5, 3.0))


@st.composite
def architectures(draw):
    heads = draw(st.sampled_from((1, 2, 4)))
    sizes = {name: draw(STDS) for name in Deviations.__struct_fields__}
    sizes |= {name: max(sizes[name], 1e-6) for name in ("embedding", "projection")}  # tokens have to start somewhere
    fields = {name: draw(st.sampled_from(values)) for name, values in FIELDS.items()}
    varied = draw(
        st.sampled_from(({}, {"window": (2, 0)}, {"positions": ("none", "rope", "rope"), "mlp_width": (8, 0)}))
    )
    return Architecture(
        by_layer={} if fields["shared"] else varied,
        width=draw(st.sampled_from((4, 8, 32))),
        heads=heads,
        kv_heads=draw(st.sampled_from([k for k in (1, 2, 4) if heads % k == 0])),
        layers=draw(st.integers(1, 6)),
        deviations=Deviations(**sizes),
        **fields,
    )


def check(architecture, n):
    found = predict(architecture, n)
    for name in ("mean_cosine", "spread", "effective_rank", "residual_rms", "logit_std", "attention_entropy", "causes"):
        assert np.all(np.isfinite(getattr(found, name))), name
    assert np.all(np.abs(found.mean_cosine) <= 1 + 1e-9) and np.all(found.spread >= 0)
    assert np.all(found.effective_rank <= n * (1 + 1e-9)) and np.all(found.residual_rms > 0)
    assert np.all((found.attention_entropy >= 0) & (found.attention_entropy <= np.log(n + architecture.sinks) + 1e-9))


FEW = settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@FEW
@given(architectures(), st.integers(2, 9))
def test_some_architectures(architecture, n):
    check(architecture, n)


@pytest.mark.slow
@settings(FEW, max_examples=int(os.environ.get("ARCHITECTURES", 500)))
@given(architectures(), st.integers(2, 9))
def test_many_architectures(architecture, n):
    check(architecture, n)


@pytest.mark.slow
@settings(FEW, max_examples=40)
@given(architectures(), st.integers(2, 5), st.floats(-0.2, 1.0))
def test_advice_on_any_architecture(architecture, n, cosine):
    advice = advise(architecture, n, Target(cosine, architecture.layers))
    assert all(change.factor > 0 for change in advice.changes if change.factor is not None)


BERT = {"model_type": "bert", "hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 12,
        "intermediate_size": 3072}  # fmt: skip
LARGE = {"hidden_size": 1024, "num_attention_heads": 16, "num_hidden_layers": 24, "intermediate_size": 4096}


@pytest.mark.parametrize(
    "changes",
    [
        {"initializer_range": 0.06},
        {"initializer_range": 0.1},
        {"initializer_range": 0.04, "num_hidden_layers": 48},
        {"model_type": "roberta", "initializer_range": 0.05, **LARGE},
    ],
)
def test_collapsed_models(changes):
    """Tokens that are one to rounding: their similarity no longer fluctuates."""
    architecture = from_config({**BERT, **changes}).architecture
    check(architecture, 16)
    found = predict(architecture, 16)
    assert found.mean_cosine[-1] > 0.9999 and found.spread[-1] < 1e-3
