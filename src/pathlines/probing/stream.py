"""The residual stream of a torch module, layer by layer, caught where the layers hand it on."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from pathlines.foundation.errors import PathlinesError
from pathlines.probing.libraries import torch_and_transformers


class Stream(msgspec.Struct, frozen=True):
    """Hidden states before the first layer and after each, (L + 1, n, d), and attention, (L, heads, n, n)."""

    hidden: np.ndarray
    attention: np.ndarray


def residual_stream(module: Any, inputs: dict[str, np.ndarray]) -> Stream:
    """Run one input and return what flows between layers.

    ``hidden_states`` of the library end after the final norm in models that normalise before each branch, so the
    stream is taken by hooks: the input of the first layer, then the output of every call of a layer. A layer that is
    shared is called many times, which gives its iterates.
    """
    torch, _ = torch_and_transformers()
    caught: list[Any] = []

    def catch(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        if not caught:
            caught.append(args[0] if args else kwargs["hidden_states"])
        caught.append(output[0] if isinstance(output, tuple) else output)

    hooks = [layer.register_forward_hook(catch, with_kwargs=True) for layer in layers_of(module)]
    try:
        with torch.no_grad():
            given = {name: torch.as_tensor(value)[None] for name, value in inputs.items()}
            output = module(**given, output_attentions=True)
    finally:
        for hook in hooks:
            hook.remove()
    depth = module.config.num_hidden_layers
    if len(caught) != depth + 1 or len(output.attentions or ()) != depth:
        raise PathlinesError(
            f"`{type(module).__name__}` has {depth} layers, but {len(caught) - 1} calls and "
            f"{len(output.attentions or ())} attention matrices were seen: its layers are not understood."
        )
    hidden = np.stack([h[0].numpy().astype(np.float64) for h in caught])
    return Stream(hidden, np.stack([a[0].numpy().astype(np.float64) for a in output.attentions]))


def layers_of(module: Any) -> list[Any]:
    """The members of the outermost lists of modules: the layers, each once even if it is called often."""
    torch, _ = torch_and_transformers()
    found: list[Any] = []
    for child in module.children():
        found += list(child) if isinstance(child, torch.nn.ModuleList) else layers_of(child)
    return found
