"""Of which architectures gradients are followed: those whose layers are equal and have no newer parts."""

from __future__ import annotations

from pathlines.architecture.record import Architecture


def not_followed(architecture: Architecture) -> str | None:
    """Why gradients of this architecture are not predicted, or None."""
    a = architecture
    missing = {
        "layers that differ": bool(a.by_layer),
        "norms on branches alone": a.placement == "output",
        "experts": a.experts > 0,
        "attention sinks": a.sinks,
        "shifted gates": a.gate_shift > 0,
        "values of another size": a.value_dim != a.head_dim,
        f"the activation {a.activation}": a.activation in ("quick_gelu", "relu2"),
    }
    found = [name for name, there in missing.items() if there]
    return f"gradients are not predicted through {', '.join(found)}" if found else None
