"""How a family of models names its fields and builds its layers: one row of a table, and the reader of all rows.

A row says under which names the sizes stand, what the record's fields are whatever the configuration says (``fixed``),
and which rules read the rest (``rules``: windows, experts, rotations, …). Where a configuration leaves a field out, the
library's own value is taken (``defaults.json``, written by ``docs/defaults.py``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import resources
from typing import Any

import msgspec

from pathlines.architecture.config import Config
from pathlines.architecture.family import FAMILIES, Family
from pathlines.architecture.record import Architecture, Deviations


class Draft(msgspec.Struct):
    """A record in the making: its fields, its deviations, its lists by layer, and what had to be assumed."""

    config: Config
    family: str
    fields: dict[str, Any]
    deviations: dict[str, float]
    std: float
    local_base: Any = None

    @property
    def layers(self) -> int:
        """The depth."""
        return int(self.fields["layers"])

    @property
    def width(self) -> int:
        """The width of the stream."""
        return int(self.fields["width"])

    def by_layer(self, name: str, values: list[Any]) -> None:
        """A field that differs from layer to layer; one value where it does not."""
        if len(set(values)) > 1:
            self.fields.setdefault("by_layer", {})[name] = tuple(values)
        elif values:
            self.fields[name] = values[0]

    def scale(self, factor: float, *names: str) -> None:
        """Deviations times a factor."""
        for name in names:
            self.deviations[name] *= factor


Rule = Callable[[Draft], None]


class Convention(msgspec.Struct, frozen=True, kw_only=True):
    """One row: names of fields (several with | between them: the first that is there), fixed values, rules."""

    width: str = "hidden_size"
    heads: str = "num_attention_heads"
    layers: str = "num_hidden_layers"
    kv_heads: str = ""
    head_dim: str = ""
    mlp: str = "intermediate_size"
    activation: str = "hidden_act"
    context: str = "max_position_embeddings"
    vocabulary: str = "vocab_size"
    std: str = "initializer_range"
    epsilon: str = "layer_norm_eps"
    fixed: Mapping[str, Any] = {}
    rules: tuple[Rule, ...] = ()

    def but(self, *rules: Rule, fixed: Mapping[str, Any] | None = None, **changes: Any) -> Convention:
        """The same with other names, more fixed values and more rules."""
        return msgspec.structs.replace(
            self, fixed={**self.fixed, **(fixed or {})}, rules=(*self.rules, *rules), **changes
        )


MEANINGS = {"width": "width", "heads": "number of heads", "layers": "number of layers"}


def read_by(convention: Convention, family: str, config: Config) -> Architecture:
    """The record of a configuration."""
    c = convention
    sizes = {name: config.integer(getattr(c, name), meaning) for name, meaning in MEANINGS.items()}
    fields: dict[str, Any] = {"family": family, **sizes}
    if c.mlp:
        fields["mlp_width"] = _inner(config, c.mlp, sizes["width"])
    if c.activation:
        fields["activation"] = config.activation(c.activation, "gelu")
    if c.kv_heads:
        fields["kv_heads"] = _groups(config, c.kv_heads, sizes["heads"])
    if c.head_dim:
        fields["head_dim"] = config.optional(c.head_dim, "size of a head")
    if c.context:
        fields["context"] = config.integer(c.context, "longest input", 2048)
    if c.vocabulary:
        fields["vocabulary"] = config.integer(c.vocabulary, "size of the vocabulary", 32000)
    if c.epsilon:
        fields["norm_epsilon"] = config.number(c.epsilon, 1e-5)
    fields["tied"] = config.flag("tie_word_embeddings", False)
    fields |= c.fixed
    std = config.number(c.std, 0.02) if c.std else 0.02
    draft = Draft(config, family, fields, _usual(fields, std), std)
    for rule in c.rules:
        rule(draft)
    sizes_of = {name: value for name, value in draft.deviations.items() if value is not None}
    return Architecture(**draft.fields, deviations=Deviations(**sizes_of))


def _inner(config: Config, name: str, width: int) -> int:
    """The perceptron's width; four times the stream's where the library says so with a null."""
    usual = config.usual.get(name, 0)
    return config.integer(name, "width of the perceptron", 4 * width if usual is None else None)


def _groups(config: Config, name: str, heads: int) -> int:
    """Heads of keys and values; as many as heads where the library's own number does not divide them."""
    usual = config.usual.get(name)
    if config.fields.get(name) is None and (not usual or heads % usual):
        config.get(name)
        return heads
    return config.integer(name, "number of key and value heads", heads)


def _usual(fields: Mapping[str, Any], std: float) -> dict[str, float]:
    """One std for all matrices that there are."""
    there = {
        "mlp_gate": fields.get("gated", False),
        "position": fields.get("positions", "learned") == "learned",
        "type": fields.get("types", 0) > 0,
        "projection": fields.get("embedding_width", 0) > 0,
        "router": fields.get("experts", 0) > 0,
    }
    found = dict.fromkeys(("embedding", "query", "key", "value", "output", "mlp_in", "mlp_out"), std)
    return found | {name: std if yes else 0.0 for name, yes in there.items()}


def rows(table: Mapping[str, Convention]) -> None:
    """Register the rows of a table."""
    for name, convention in table.items():
        FAMILIES.register(name, Family(partial(read_by, convention, name), convention))


@cache
def defaults() -> dict[str, dict[str, Any]]:
    """The library's own value of every field, by model type."""
    text = resources.files("pathlines.architecture").joinpath("defaults.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def inverse_root(x: float) -> float:
    """x^-1/2."""
    return 1 / math.sqrt(x)
