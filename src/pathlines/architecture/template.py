"""A commented TOML file of a family, to be changed by hand: every field of the record with its meaning."""

from __future__ import annotations

import json
from typing import Any

from pathlines.architecture.convention import MEANINGS, Convention, defaults
from pathlines.architecture.family import FAMILIES
from pathlines.architecture.read import from_config
from pathlines.architecture.record import Architecture, Deviations
from pathlines.foundation.errors import UnknownNameError
from pathlines.foundation.setting import fields

_HEAD = """# An architecture for `pathlines advise`: {name}, in the sizes that its library takes by itself.
# Change what differs in yours; a field that is left out keeps the value that docs/use/advise.md lists.
"""
_LAYERS = """
# Layers that differ: lists of a value for each layer, repeated where they are shorter than the depth.
# Fields that may differ: window, heads, kv_heads, head_dim, value_dim, mlp_width, experts, positions, rope_base, …
"""
_EXAMPLE = "# [by_layer]\n# window = [128, 128, 0]  # two layers see 128 tokens back, the third all\n"


def template(name: str) -> str:
    """The text of a TOML file that `read_architecture` reads.

    Args:
        name: a `model_type` such as "llama", "bert" or "deepseek_v3".
    """
    if not isinstance(name, str) or name not in list(FAMILIES):
        raise UnknownNameError(f"There is no family `{name}`; there are {', '.join(FAMILIES)}.")
    row, usual = FAMILIES[name].row, defaults()[name]
    assert isinstance(row, Convention)
    sizes = {field: usual[field] for field in (getattr(row, size) for size in MEANINGS)}
    inner = {row.mlp: usual[row.mlp]} if row.mlp and usual.get(row.mlp) else {}
    architecture = from_config({"model_type": name, **sizes, **inner}).architecture
    lines = [_HEAD.format(name=name)]
    for field in fields(Architecture):
        if field.name not in ("deviations", "by_layer"):
            lines.append(_line(field.name, getattr(architecture, field.name), field.meaning))
    lines += [_LAYERS, *_varied(architecture), "\n# Standard deviations of the entries of each matrix at the start."]
    lines.append("[deviations]")
    for field in fields(Deviations):
        lines.append(_line(field.name, getattr(architecture.deviations, field.name), field.meaning))
    return "\n".join(lines) + "\n"


def _line(name: str, value: Any, meaning: str) -> str:
    text = f"{name} = {_toml(value)}"
    return f"{text:<32}# {meaning}" if meaning else text


def _varied(architecture: Architecture) -> list[str]:
    if not architecture.by_layer:
        return [_EXAMPLE]
    return ["[by_layer]", *(f"{name} = {_toml(list(values))}" for name, values in architecture.by_layer.items())]


def _toml(value: Any) -> str:
    return json.dumps(value)
