"""How strongly the last position of a torch module depends on every other: norms of blocks of its Jacobian."""

from __future__ import annotations

from typing import Any

import numpy as np

from pathlines.foundation.errors import ArgumentError, PathlinesError
from pathlines.probing.libraries import torch_and_transformers
from pathlines.probing.stream import layers_of


def last_position_squares(module: Any, ids: np.ndarray, directions: int, seed: int = 0) -> np.ndarray:
    """|J_iᵀq|² for orthonormal random q_1 … q_K and every position i: shape (K, n); the mean estimates ‖J_i‖²_F/d.

    J_i = ∂h_N/∂h_i: from the residual stream before the first layer (the token's embedding with scale, position and
    norm as the model has them) to that of the last position after the last layer, before any final norm. A uniform unit
    vector q has E|J_iᵀq|² = ‖J_i‖²_F/d, so the estimate is unbiased, and exact at K = d. Reverse mode, because one pass
    gives J_iᵀq for all positions, while forward mode would take one for each.
    """
    torch, _ = torch_and_transformers()
    start, end = traced_stream(module, ids)
    d = end.shape[-1]
    if not 1 <= directions <= d:
        raise ArgumentError(f"Argument `directions` must be an integer from 1 to the width {d}, but is {directions}.")
    drawn = torch.randn(d, directions, generator=torch.Generator().manual_seed(seed))
    frame = torch.linalg.qr(drawn)[0].to(end.dtype)
    found = []
    for k in range(directions):
        (gradient,) = torch.autograd.grad(end[-1] @ frame[:, k], start, retain_graph=k < directions - 1)
        found.append((gradient.double() ** 2).sum(dim=-1).numpy())
    return np.stack(found)


def require_causal(module: Any, ids: np.ndarray) -> None:
    """Raise unless the first position is independent of all later ones, which is seen from one derivative."""
    torch, _ = torch_and_transformers()
    start, end = traced_stream(module, ids)
    weights = torch.randn(end.shape[-1], generator=torch.Generator().manual_seed(0))  # a norm hides the sum from us
    (gradient,) = torch.autograd.grad(end[0] @ weights.to(end.dtype), start)
    if bool((gradient[1:] != 0).any()):
        raise ArgumentError(
            f"This `{module.config.model_type}` is not causal (its first position depends on later ones); retrieval is "
            "measured on causal language models."
        )


def traced_stream(module: Any, ids: np.ndarray) -> tuple[Any, Any]:
    """(h before the first layer, h after the last), each (n, d), the second a differentiable function of the first."""
    torch, _ = torch_and_transformers()
    layers = layers_of(module)
    depth = module.config.num_hidden_layers
    if len(layers) != depth:
        raise PathlinesError(
            f"`{type(module).__name__}` has {depth} layers, but {len(layers)} were found: not understood."
        )
    caught: dict[str, Any] = {}

    def enter(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        given = args[0] if args else kwargs["hidden_states"]
        caught["start"] = given.detach()[0].requires_grad_(True)
        leaf = caught["start"][None]
        return ((leaf, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": leaf})

    def leave(_: Any, __: tuple[Any, ...], output: Any) -> None:
        caught["end"] = (output[0] if isinstance(output, tuple) else output).reshape(len(ids), -1)

    hooks = [layers[0].register_forward_pre_hook(enter, with_kwargs=True), layers[-1].register_forward_hook(leave)]
    module.requires_grad_(False)  # only the stream is differentiated
    try:
        module(input_ids=torch.as_tensor(np.asarray(ids))[None], use_cache=False)
    except TypeError:  # encoders know no cache
        module(input_ids=torch.as_tensor(np.asarray(ids))[None])
    finally:
        for hook in hooks:
            hook.remove()
    return caught["start"], caught["end"]
