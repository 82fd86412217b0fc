"""Forward similarity and gradients of the library's own random modules: one pass and its reverse for each seed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from pathlines.advice.gradients import MeasuredGradients
from pathlines.architecture.read import from_config
from pathlines.foundation.errors import PathlinesError, positive_integer
from pathlines.foundation.progress import Progress
from pathlines.limit.architecture.gradients import MATRICES
from pathlines.limit.architecture.start import Tokens
from pathlines.probing.libraries import torch_and_transformers
from pathlines.probing.modules import from_fields, random_module
from pathlines.probing.roles import ELSEWHERE, parts_of
from pathlines.probing.simulate import made_by, shown_to
from pathlines.probing.stream import layers_of

ENCODERS = ("t5", "mt5", "umt5", "bart", "mbart", "plbart", "blenderbot", "blenderbot-small")
"""Encoder-decoders, whose encoder is read."""
_NUMBER = re.compile(r"\.(\d+)\.")


class Pass:
    """One forward and reverse pass: hidden states and gradients between layers, norms of ∂W by kind and layer."""

    def __init__(
        self, fields: dict[str, Any], inputs: dict[str, np.ndarray], seed: int,
        change: Callable[[Any], None] | None = None, *, backward: bool = True,
    ) -> None:  # fmt: skip
        torch, _ = torch_and_transformers()
        self.architecture = from_config(fields).architecture
        module = random_module(from_fields(fields), seed)
        self.module = module.encoder if fields["model_type"] in ENCODERS else module
        if change is not None:
            change(self.module)
        caught: list[Any] = []
        hooks = [layer.register_forward_hook(_catching(caught), with_kwargs=True) for layer in layers_of(self.module)]
        given = {name: torch.as_tensor(value)[None] for name, value in inputs.items()}
        with torch.enable_grad() if backward else torch.no_grad():
            out = self.module(**given).last_hidden_state
        for hook in hooks:
            hook.remove()
        depth = self.architecture.layers
        if len(caught) != depth + 1:
            raise PathlinesError(f"`{type(module).__name__}` has {depth} layers, but {len(caught) - 1} were seen.")
        self.hidden = np.stack([h[0].detach().numpy().astype(np.float64) for h in caught])
        self.stream, self.matrices = np.zeros(0), {}
        if backward:
            noise = torch.randn(out.shape, generator=torch.Generator().manual_seed(seed)) / out.shape[-1] ** 0.5
            (out * noise).sum().backward()
            self.stream = np.array([float(h.grad.norm()) for h in caught])
            self.matrices = _norms(fields["model_type"], self.module, self.architecture)

    @property
    def cosine(self) -> np.ndarray:
        """At every depth."""
        unit = self.hidden / np.linalg.norm(self.hidden, axis=-1, keepdims=True)
        n, total = unit.shape[1], np.sum(np.sum(unit, axis=1) ** 2, axis=-1)
        return np.asarray((total - n) / (n * (n - 1)))


def _catching(caught: list[Any]) -> Any:
    def catch(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        after = output[0] if isinstance(output, (tuple, list)) else output
        for tensor in (*([] if caught else [args[0] if args else kwargs["hidden_states"]]), after):
            if tensor.requires_grad:
                tensor.retain_grad()
            caught.append(tensor)

    return catch


def _norms(family: str, module: Any, architecture: Any) -> dict[str, np.ndarray]:
    """Norms of the gradients of matrices: kind → a number for each layer."""
    squares: dict[str, dict[int, float]] = {}
    layers = architecture.each_layer(architecture.layers)
    for name, parameter in module.named_parameters():
        number = _NUMBER.search(name)
        if number is None or parameter.dim() < 2 or parameter.grad is None or re.search(ELSEWHERE, name):
            continue
        layer = int(number[1])
        if layer >= len(layers):
            continue
        for kind, part in parts_of(family, layers[layer], _NUMBER.sub(".", name), parameter.grad).items():
            found = squares.setdefault(kind, {})
            found[layer] = found.get(layer, 0.0) + float((part.double() ** 2).sum())
    whole = {kind: found for kind, found in squares.items() if len(found) == len(layers)}
    return {kind: np.sqrt([found[k] for k in range(len(layers))]) for kind, found in whole.items()}


def module_gradients(fields: dict[str, Any], tokens: Tokens, *, seeds: int = 8, seed: int = 0) -> MeasuredGradients:
    """Typical gradient norms of the library's modules for a loss that gives every token a gradient of its own.

    Args:
        fields: those of a config.json.
        tokens: token ids, or how many different tokens.
        seeds: random modules to average over.
        seed: of the first.
    """
    positive_integer("seeds", seeds, least=2)
    given, inputs = shown_to(fields, tokens)
    passes = []
    with Progress("gradients of modules", seeds) as bar:
        for k in range(seeds):
            found = Pass(given, inputs, seed + k)
            passes.append((found.stream, found.matrices))
            bar.update(k + 1)
    logs = np.array([np.log(np.maximum(stream, 1e-300)) for stream, _ in passes])
    kinds = [kind for kind in MATRICES if kind in passes[0][1]]
    typical = {
        kind: np.exp(np.mean([np.log(np.maximum(m[kind], 1e-300)) for _, m in passes], axis=0)).tolist()
        for kind in kinds
    }
    return MeasuredGradients(
        np.exp(logs.mean(axis=0)).tolist(), logs.std(axis=0, ddof=1).tolist(), typical, seeds, made_by()
    )
