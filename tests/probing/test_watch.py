"""A training that is watched: what hooks see is what the module's own outputs say, and the file opens again."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import pathlines as pl  # noqa: E402
from pathlines.foundation.errors import PathlinesError  # noqa: E402
from pathlines.probing.watch import Watch  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def model():
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_attention_heads": 2, "num_hidden_layers": 3, "intermediate_size": 64}
    config = transformers.LlamaConfig(**sizes, vocab_size=50, pad_token_id=None, bos_token_id=None, eos_token_id=None)
    return transformers.LlamaForCausalLM(config)


def train(network, watch, steps):
    optimiser, ids = torch.optim.SGD(network.parameters(), lr=0.1), torch.arange(24).reshape(2, 12)
    for _ in range(steps):
        optimiser.zero_grad()
        network(input_ids=ids, labels=ids).loss.backward()
        if watch is not None:
            watch.step()
        optimiser.step()
    return {name: p.detach().clone() for name, p in network.named_parameters()}


def test_every_third_step_and_the_prediction_first(tmp_path):
    network = model()
    watch = Watch(network, every=3)
    with torch.no_grad():
        hidden = network.model(torch.arange(12)[None], output_hidden_states=True).hidden_states[1][0].numpy()
    trained = train(network, watch, 7)
    assert [seen.step for seen in watch.seen] == [0, 3, 6]
    unit = hidden / np.linalg.norm(hidden, axis=1, keepdims=True)
    cosine = (np.sum(unit @ unit.T) - 12) / (12 * 11)
    assert watch.seen[0].mean_cosine[1] == pytest.approx(cosine, abs=1e-6)
    assert all(g > 0 for g in watch.seen[0].gradient)
    assert len(watch.predicted[0]) == 4 and abs(watch.predicted[0][0] - watch.seen[0].mean_cosine[0]) < 0.2
    alone = train(model(), None, 7)
    assert all(torch.equal(trained[name], alone[name]) for name in alone)  # watching changes no bit
    run = pl.open_run(watch.save(tmp_path / "training"))
    assert run["mean_cosine"].shape == (3, 4) and run.setting["model"]["name"] == "training of LlamaForCausalLM"
    assert len(watch.plot().axes) == 4


def test_between_looks_there_are_no_hooks():
    network = model()
    watch = Watch(network, every=5)
    train(network, watch, 2)
    assert not any(layer._forward_hooks for layer in network.model.layers)
    watch.stop()


def test_entropy_where_layers_return_attention():
    class Layer(torch.nn.Module):
        def forward(self, h):
            weights = torch.full((1, 1, 4, 4), 0.25)
            return h * 1.5, weights

    class Stack(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([Layer(), Layer()])

        def forward(self, h):
            for layer in self.layers:
                h, _ = layer(h)
            return h

    stack = Stack()
    watch = Watch(stack, every=1, tokens=4)
    stack(torch.randn(1, 4, 8, requires_grad=True)).sum().backward()
    seen = watch.step()
    assert seen.attention_entropy == pytest.approx([np.log(4)] * 2)
    assert watch.predicted is None and seen.gradient[2] == pytest.approx(np.sqrt(32))


def test_trainer_callback_looks_before_gradients_go(tmp_path):
    network = model()
    watch = Watch(network, every=1)
    callback = watch.callback()
    assert isinstance(callback, transformers.TrainerCallback)
    ids = torch.arange(24).reshape(2, 12)
    network(input_ids=ids, labels=ids).loss.backward()
    callback.on_pre_optimizer_step(None, None, None)
    callback.on_train_end(None, None, None)
    assert len(watch.seen) == 1 and not any(layer._forward_hooks for layer in network.model.layers)
    with pytest.raises(PathlinesError, match="Nothing was seen"):
        Watch(model()).dataset()
