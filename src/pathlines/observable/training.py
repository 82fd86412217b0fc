"""Observables of training (arXiv:2605.10775): the tokens are particles that learn."""

from __future__ import annotations

from jaxtyping import Array

from pathlines.foundation.errors import FormError
from pathlines.integrate.observe import observable
from pathlines.model.base import Snapshot
from pathlines.model.followups.wide_shallow import WideShallow


@observable("training_loss", "loss", "L", needs_tokens=True, ambient=True)
def training_loss(snapshot: Snapshot) -> Array:
    """½ mean_x |f_μ(x) - y(x)|² of a wide shallow model: never grows along its flow."""
    if not isinstance(snapshot.model, WideShallow):
        raise FormError(f"{type(snapshot.model).__name__} is not trained; use WideShallow.")
    return snapshot.model.loss(snapshot.state)
