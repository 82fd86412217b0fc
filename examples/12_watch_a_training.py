"""Watch a 6-layer decoder learn the characters of this repository's own documentation, 300 steps.

What you will see: the first curve lies near the prediction (one seed of width 128 scatters by 0.05); training pulls
the tokens apart again, in the upper layers last. Needs torch and transformers (``pip install 'pathlines[probe]'``); a
minute on one core. Writes ``training.nc`` (`pathlines show training.nc`) and ``training.png`` here.
"""

from pathlib import Path

import numpy as np
import torch
import transformers

from pathlines.probing.watch import Watch

text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.parent.glob("*.md")))
symbols = sorted(set(text))
ids = torch.tensor([symbols.index(letter) for letter in text])

torch.manual_seed(0)
model = transformers.LlamaForCausalLM(
    transformers.LlamaConfig(
        hidden_size=128, num_attention_heads=4, num_key_value_heads=4, num_hidden_layers=6, intermediate_size=256,
        vocab_size=len(symbols), max_position_embeddings=128, initializer_range=0.05,
        bos_token_id=None, eos_token_id=None,
    ),
)  # fmt: skip
watch = Watch(model, every=50)
optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
draw = np.random.default_rng(0)
for step in range(301):
    places = draw.integers(0, len(ids) - 97, 8)
    batch = torch.stack([ids[p : p + 96] for p in places])
    loss = model(input_ids=batch, labels=batch).loss
    optimiser.zero_grad()
    loss.backward()
    seen = watch.step()
    optimiser.step()
    if seen is not None:
        cosines = "  ".join(f"{c:.2f}" for c in seen.mean_cosine)
        print(f"step {step:3d}: loss {float(loss.detach()):.2f}, mean cosine by layer {cosines}")
print("predicted before the first step:       " + "  ".join(f"{c:.2f}" for c in watch.predicted[0]))

watch.save("training.nc")
watch.plot().savefig("training.png")
