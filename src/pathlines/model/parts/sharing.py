"""One large system over several devices: rows of tokens are shared out, sums travel or are added up."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float

from pathlines.attention import Attention
from pathlines.attention.masks import PositionMask
from pathlines.foundation.errors import ArgumentError, FormError, positive_integer
from pathlines.kernels.choice import Choice
from pathlines.kernels.sharded import sharded_attend, sharded_spectral_attend
from pathlines.model.parts.summation import SpectralSum, reduction_of
from pathlines.model.self_attention import SelfAttention

ROWS = "rows"


class SharedSum(SpectralSum):
    """Sums over tokens whose rows lie on the devices of a mesh: harmonics by one all-reduce, all pairs by a ring."""

    mesh: Mesh = eqx.field(static=True)
    ring: bool = eqx.field(static=True)

    def summed_over(
        self,
        attention: Attention,
        x: Float[Array, "n d"],
        sources: Float[Array, "n d"],
        beta: Float[Array, ""],
        masses: Float[Array, " n"],
        mask: PositionMask | None,
    ) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
        """(Σ_j a_ij y_j, log_scale) for the rotated tokens y, with scores c β <x_i, y_j>."""
        if self.ring:
            queries = self.reduction.scale * beta * x
            return sharded_attend(attention, queries, sources, sources, masses, self.mesh, mask)
        return sharded_spectral_attend(attention, x, sources, self.bound, masses, self.mesh, self.tolerance)


def mesh_of(devices: Any) -> Mesh:
    """A mesh with one axis: of that many devices, of these, or the mesh that was given."""
    if isinstance(devices, Mesh):
        return devices
    there = jax.devices()
    if isinstance(devices, int) and not isinstance(devices, bool):
        count = positive_integer("devices", devices)
        if count > len(there):
            raise ArgumentError(f"Argument `devices` must be at most {len(there)}, the devices there are, not {count}.")
        devices = there[:count]
    if not isinstance(devices, list | tuple) or not devices or not all(isinstance(d, jax.Device) for d in devices):
        raise ArgumentError(f"Argument `devices` must be a number, devices or a mesh, but is {devices!r:.80}.")
    return Mesh(np.array(devices), (ROWS,))


def shared_out(model: Any, tokens: Any, choice: Choice | None, mesh: Mesh) -> tuple[Any, Any, str]:
    """(the model with sums over the mesh, tokens on its devices, the reason in words)."""
    reduction = reduction_of(model.weights) if isinstance(model, SelfAttention) else None
    if reduction is None or choice is None or model.attention.fused is None:
        raise FormError("Argument `devices` serves SelfAttention, softmax or unnormalised, with one orthogonal head.")
    spectral = choice.method == "spectral" and model.mask is None
    bound = float(model.beta) * reduction.scale
    fast = SharedSum(reduction, choice.tolerance, bound, mesh, not spectral)
    shared = eqx.tree_at(lambda m: m.fast, model, fast, is_leaf=lambda x: x is None)
    whole = tokens.shape[0] % mesh.size == 0
    placed = jax.device_put(tokens, NamedSharding(mesh, PartitionSpec(mesh.axis_names))) if whole else tokens
    how = "harmonics added up" if spectral else "blocks of keys in a ring"
    return shared, placed, f"; rows over {mesh.size} devices, {how}"
