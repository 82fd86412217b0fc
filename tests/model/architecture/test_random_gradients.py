"""The reverse pass of the module, written out, against differences of its loss."""

import numpy as np
import pytest

from pathlines.architecture import Architecture, Deviations
from pathlines.model.architecture.random_gradients import GradientModule, GradientSample

COMMON = {"width": 12, "heads": 4, "layers": 2, "mlp_width": 16, "deviations": Deviations.equal(0.4)}
VARIANTS = {
    "post": {"placement": "post", "mask": "full"},
    "sandwich": {"placement": "sandwich", "norm": "rms", "norm_epsilon": 0.1},
    "parallel": {"placement": "parallel", "activation": "tanh", "skip": 0.7, "attention_residual": 1.3},
    "gated": {"gated": True, "activation": "silu", "kv_heads": 2, "positions": "rope", "head_dim": 4},
    "sharp": {"qk_norm": True, "logit_cap": 1.0, "positions": "alibi", "window": 3, "activation": "relu"},
    "shared": {"shared": True, "placement": "post", "activation": "erf"},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_reverse_pass_vs_differences(name):
    fields = COMMON | VARIANTS[name]
    if fields.get("gated"):
        fields["deviations"] = Deviations.equal(0.4, mlp_gate=0.5)
    architecture = Architecture(**fields)
    rng = np.random.default_rng(1)
    module = GradientModule(architecture, rng, np.float64)
    h, top = rng.standard_normal((5, 12)), rng.standard_normal((5, 12))
    loss = lambda: float(np.sum(top * module.forward(h)[-1]))  # noqa: E731
    loss()
    stream = module.backward(top)[0]
    for matrix, gradient in [(h, stream)] + [(m.weight, m.gradient) for m in module.layers[0].values()]:
        direction, before = rng.standard_normal(matrix.shape), matrix.copy()
        ends = []
        for step in (1e-6, -1e-6):
            matrix[:] = before + step * direction
            ends.append(loss())
        matrix[:] = before
        assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(np.sum(direction * gradient), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("tied", [True, False])
def test_cross_entropy_vs_differences(tied):
    """The embedding's gradient through the stack and, where they are one, through the head."""
    architecture = Architecture(**COMMON, vocabulary=7, tied=tied, embedding_norm=True, positions="none")
    labels = np.array([1, 3, -100, 0, 1])
    sample = GradientSample(architecture, [0, 1, 4, 1, 6], 3, "cross-entropy", labels, dtype=np.float64)
    inner = sample.module
    head = sample.embedding if tied else inner.normal(0.4, 7, 12)
    if not tied:  # the head that the sample drew is not kept: its own gradient is enough
        assert sample.head.shape == (7, 12)
        return

    def loss():
        rows = sample.embedding[[0, 1, 4, 1, 6]]
        x = inner.normed(inner.forward(inner.normed(rows)[0])[-1])[0]
        logits = x @ head.T
        log = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return -np.mean([log[i, y] for i, y in enumerate(labels) if y >= 0])

    direction = np.zeros((7, 12))
    direction[[0, 1, 4, 6]] = np.random.default_rng(0).standard_normal((4, 12))
    sample.embedding += 1e-6 * direction
    up = loss()
    sample.embedding -= 2e-6 * direction
    assert (up - loss()) / 2e-6 == pytest.approx(np.sum(direction[[0, 1, 4, 6]] * sample.table), rel=1e-6)
