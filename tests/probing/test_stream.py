"""What is caught between layers, against the library's own outputs."""

import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.probing.curves import kept_tokens, massive_tokens, observed, summary
from pathlines.probing.modules import from_fields, random_module
from pathlines.probing.stream import Stream, residual_stream

SIZES = {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 3, "intermediate_size": 32, "vocab_size": 20}
IDS = np.arange(5, 14)


def caught(family):
    import torch

    module = random_module(from_fields({"model_type": family, **SIZES}), 0)
    stream = residual_stream(module, {"input_ids": IDS})
    with torch.no_grad():
        output = module(input_ids=torch.as_tensor(IDS)[None], output_hidden_states=True)
    return module, stream, [h[0].numpy() for h in output.hidden_states]


def test_stream_ends_before_the_final_norm():
    """Llama: hidden_states[-1] is after the final norm, the stream is not; applying the norm joins them."""
    import torch

    module, stream, states = caught("llama")
    np.testing.assert_allclose(stream.hidden[:-1], states[:-1], atol=1e-7)
    assert np.abs(stream.hidden[-1] - states[-1]).max() > 0.1
    with torch.no_grad():
        normed = module.norm(torch.as_tensor(stream.hidden[-1], dtype=torch.float32)).numpy()
    np.testing.assert_allclose(normed, states[-1], atol=1e-5)


def test_stream_of_a_post_norm_model_is_its_hidden_states():
    _, stream, states = caught("bert")
    np.testing.assert_allclose(stream.hidden, states, atol=1e-7)
    assert stream.attention.shape == (3, 2, 9, 9)
    np.testing.assert_allclose(stream.attention.sum(axis=-1), 1, atol=1e-6)


def test_shared_layer_is_caught_at_every_call():
    _, stream, states = caught("albert")
    np.testing.assert_allclose(stream.hidden, states, atol=1e-7)


def test_observables_by_hand():
    """Two orthogonal pairs of equal tokens: mean cosine 1/3, effective rank 2, uniform attention ln 4."""
    hidden = np.array([[[3.0, 0], [5.0, 0], [0, 1.0], [0, 2.0]]] * 2)
    found = observed(Stream(hidden, np.full((1, 2, 4, 4), 0.25)))
    assert found["mean_cosine"] == pytest.approx([1 / 3] * 2)
    assert found["effective_rank"] == pytest.approx([2, 2])
    assert found["residual_rms"] == pytest.approx([np.sqrt(39 / 8)] * 2)
    assert found["attention_entropy"] == pytest.approx([np.log(4)])
    kept = observed(Stream(hidden, np.full((1, 2, 4, 4), 0.25)), np.array([0, 2]))
    assert kept["mean_cosine"] == pytest.approx([0, 0])
    assert kept["attention_entropy"] == pytest.approx([np.log(4)])
    curves = summary([[found, kept], [kept, kept]])
    assert curves["mean_cosine"].mean == pytest.approx([1 / 12] * 2)
    assert curves["mean_cosine"].spread == pytest.approx([np.std([1 / 6, 0], ddof=1)] * 2)


def test_massive_tokens():
    hidden = np.ones((3, 5, 2))
    hidden[1, 0] = 40.0
    found = massive_tokens(Stream(hidden, np.zeros((2, 1, 5, 5))))
    assert found.tolist() == [True, False, False, False, False]
    assert kept_tokens(np.array([0, 1, 0, 0, 0], bool), found).tolist() == [2, 3, 4]
    with pytest.raises(ArgumentError, match="longer text"):
        kept_tokens(np.ones(5, bool), found)
