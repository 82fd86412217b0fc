"""Torch modules of a configuration: with the weights of a folder, or with those it would start training from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pathlines.foundation.errors import ArgumentError, PathlinesError
from pathlines.probing.libraries import torch_and_transformers

UNUSED = ("pooler",)
"""Parts of a base model that the residual stream does not pass; they may lack weights."""


def configuration(folder: Path, layers: int | None = None) -> Any:
    """The library's configuration of a folder, of another depth if asked."""
    _, transformers = torch_and_transformers()
    try:
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArgumentError(f"{folder / 'config.json'} is not understood ({first_line(error)}).") from error
    return _deepened(config, layers)


def from_fields(fields: dict[str, Any]) -> Any:
    """The library's configuration of the fields of a config.json."""
    _, transformers = torch_and_transformers()
    rest = {name: value for name, value in fields.items() if name != "model_type"}
    return transformers.AutoConfig.for_model(fields["model_type"], **rest)


def trained_module(folder: Path, layers: int | None = None) -> Any:
    """The base model of a folder in float32; more ``layers`` than it has only where one layer serves every depth.

    Weights that the folder lacks would be drawn at random by the library: that is an error here.
    """
    torch, transformers = torch_and_transformers()
    try:
        module, info = transformers.AutoModel.from_pretrained(
            folder, config=configuration(folder, layers), local_files_only=True, attn_implementation="eager",
            dtype=torch.float32, output_loading_info=True,
        )  # fmt: skip
    except ArgumentError:
        raise
    except Exception as error:  # the library has no error of its own: whatever it raises, the weights are unusable
        raise PathlinesError(f"The weights in {folder} cannot be loaded ({first_line(error)}).") from error
    missing = [name for name in info["missing_keys"] if not name.startswith(UNUSED)]
    if missing:
        raise PathlinesError(f"{folder} has no weights for {len(missing)} tensors, the first `{missing[0]}`.")
    return module.eval()


def random_module(config: Any, seed: int) -> Any:
    """The base model of a configuration as the library initialises it; the global generator is left as it was."""
    torch, transformers = torch_and_transformers()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return transformers.AutoModel.from_config(config, attn_implementation="eager", dtype=torch.float32).eval()


def is_shared(config: Any) -> bool:
    """Whether one layer serves every depth (ALBERT), so that the map may be iterated."""
    return getattr(config, "num_hidden_groups", None) == 1 and getattr(config, "inner_group_num", 1) == 1


def fields_of(folder: Path) -> dict[str, Any]:
    """The fields of its config.json."""
    file = folder / "config.json"
    try:
        fields = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ArgumentError(f"{file} is not valid JSON ({error}); repair or download it again.") from None
    if not isinstance(fields, dict):
        raise ArgumentError(f"{file} must hold an object with fields, but holds a {type(fields).__name__}.")
    return fields


def _deepened(config: Any, layers: int | None) -> Any:
    if layers is not None and layers != config.num_hidden_layers:
        if not is_shared(config):
            raise ArgumentError(
                f"Only a model that shares one layer can be iterated; this `{config.model_type}` has "
                f"{config.num_hidden_layers} different layers."
            )
        config.num_hidden_layers = layers
    return config


def first_line(error: Exception) -> str:
    """What went wrong, in one line."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
