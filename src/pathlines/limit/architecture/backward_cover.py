"""Of which architectures gradients are followed, and what stops them."""

from __future__ import annotations

from pathlines.architecture.record import Architecture


def not_followed(architecture: Architecture) -> str | None:
    """Why gradients of this architecture are not predicted, or None."""
    a, layers = architecture, architecture.each_layer(architecture.layers)
    missing = {
        "layers without a perceptron among others": len({bool(layer.mlp_width) for layer in layers}) > 1,
        "experts": any(layer.experts > 0 for layer in layers),
        "attention sinks": a.sinks,
        "shifted gates": a.gate_shift > 0,
        "values of another size": any(layer.value_dim != layer.head_dim for layer in layers),
    }
    found = [name for name, there in missing.items() if there]
    return f"gradients are not predicted through {', '.join(found)}" if found else None
