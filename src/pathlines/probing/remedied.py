"""Remedies put to the test: a random module of the library with some matrices multiplied, and what it then does.

Nothing here knows the prediction. A remedy is what a person would do to a model that stands: numbers by which matrices
are multiplied (by the names of ``Deviations``), ``branches`` what both branches add, ``attention`` or ``perceptron``
what one of them adds, ``logits`` the scores.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from pathlines.architecture.read import from_config
from pathlines.foundation.errors import PathlinesError, positive_integer
from pathlines.foundation.progress import Progress
from pathlines.limit.architecture.start import Tokens
from pathlines.probing.libraries import torch_and_transformers
from pathlines.probing.module_gradients import Pass
from pathlines.probing.roles import ALL_OF_ATTENTION, ELSEWHERE, parts_of, role_of
from pathlines.probing.simulate import shown_to

ADDED = {"branches": ("output", "mlp_out"), "attention": ("output",), "perceptron": ("mlp_out",)}
OWN_NORMS = {
    "output": r"(post_attention_layernorm|post_self_attn_layernorm)\.weight$",
    "mlp_out": r"(post_feedforward_layernorm|post_mlp_layernorm)\.weight$",
}
"""Gains behind branches, where a norm forgets how large the branch was."""
_GAIN_ABOUT_ZERO = ("gemma", "gemma2", "gemma3_text", "vaultgemma")
_NUMBER = re.compile(r"\.\d+\.")


class Tried(msgspec.Struct, frozen=True):
    """Mean cosines at one layer over random modules as they are and as a remedy leaves them; ``met`` of them hold."""

    remedy: str
    target: float
    layer: int
    before: list[float]
    after: list[float]

    @property
    def met(self) -> int:
        """How many are at or below the target."""
        return sum(value <= self.target for value in self.after)


def multiply(module: Any, fields: Mapping[str, Any], weights: Mapping[str, float]) -> None:
    """Multiply matrices of a module in place; an error where one of the names finds nothing."""
    torch, _ = torch_and_transformers()
    a, family = from_config(dict(fields)).architecture, str(fields["model_type"])
    normed, touched = a.placement in ("sandwich", "output"), set()
    by_role: dict[str, float] = {}
    for name, factor in weights.items():
        for role in ADDED.get(name, ("query",) if name == "logits" else (name,)):
            by_role[role] = by_role.get(role, 1.0) * factor
    gains = {role for name in weights for role in ADDED.get(name, ()) if normed}
    with torch.no_grad():
        for label, parameter in module.named_parameters():
            plain = _NUMBER.sub(".", label)
            for role in gains:
                if re.search(OWN_NORMS[role], plain):
                    shift = 1.0 if family in _GAIN_ABOUT_ZERO else 0.0
                    parameter.copy_(by_role[role] * (parameter + shift) - shift)
                    touched.add(role)
            if parameter.dim() < 2 or re.search(ELSEWHERE, plain):
                continue
            joint = re.search(ALL_OF_ATTENTION, plain) is not None
            parts = parts_of(family, a, plain, parameter) if joint else {_of(plain) or "": parameter}
            for role, part in parts.items():
                factor = by_role.get(role, 1.0)
                if factor == 1.0 or role in gains:
                    continue
                if role == "query" and "logits" in weights and a.qk_norm:
                    raise PathlinesError("Logits of a model with norms on queries are not in its matrices.")
                part.mul_(factor)
                touched.add(role)
    missing = [r for r, x in by_role.items() if r not in touched and x != 1.0 and r not in ("position", "type")]
    if missing:
        raise PathlinesError(f"No matrix of a `{family}` was found for {', '.join(missing)}.")


def _of(name: str) -> str | None:
    role = role_of(name)
    return None if role == "latent" else role


def tried(
    fields: dict[str, Any], tokens: Tokens, name: str, weights: Mapping[str, float], cosine: float, layer: int, *,
    seeds: int = 16, seed: int = 0,
) -> Tried:  # fmt: skip
    """Random modules before and after a remedy, at the layer that a target is about.

    Args:
        fields: those of a config.json.
        tokens: token ids, or how many different tokens.
        name: of the remedy, for tables.
        weights: what it multiplies.
        cosine: the target.
        layer: after which it is to be met.
        seeds: random modules.
        seed: of the first.
    """
    positive_integer("seeds", seeds)
    given, inputs = shown_to(fields, tokens)
    before, after = [], []
    with Progress("remedied modules", seeds) as bar:
        for k in range(seeds):
            before.append(float(Pass(given, inputs, seed + k, backward=False).cosine[layer]))
            changed = Pass(given, inputs, seed + k, lambda m: multiply(m, given, weights), backward=False)
            after.append(float(changed.cosine[layer]))
            bar.update(k + 1)
    return Tried(name, cosine, layer, before, after)


def share_met(found: Tried) -> float:
    """Of the modules."""
    return float(np.mean(np.array(found.after) <= found.target))
