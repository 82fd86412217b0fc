"""The random models of an advice as the library builds them, instead of our own chain."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np

from pathlines.advice import Simulated
from pathlines.architecture import Architecture
from pathlines.architecture.read import from_config
from pathlines.foundation.errors import positive_integer
from pathlines.limit.architecture.start import Tokens
from pathlines.probing.examine import initial_curves
from pathlines.probing.inputs import of_noise, of_tokens
from pathlines.probing.modules import first_line, from_fields
from pathlines.probing.text import Tokens as Text

LARGEST = 2**32
"""Bytes that a module may take in float32; our own chain keeps one layer at a time."""


def why_not(fields: dict[str, Any] | None, tokens: Tokens) -> str | None:
    """Why the library's module cannot be built for these tokens, or None."""
    if fields is None:
        return "there is no config.json"
    missing = [name for name in ("torch", "transformers") if find_spec(name) is None]
    if missing:
        return f"{' and '.join(missing)} not installed: pip install 'pathlines[probe]'"
    architecture = from_config(fields).architecture
    size = 4 * _parameters(architecture)
    if size > LARGEST:
        return f"the whole module would take {size / 2**30:.0f} GiB"
    try:
        from_fields(fields)
    except Exception as error:  # the library has no error of its own; our chain needs fewer fields than it does
        return f"transformers {version('transformers')} refuses the configuration: {first_line(error)}"
    if architecture.patch_inputs and _count(tokens) != architecture.context:
        return f"an image has {architecture.context} tokens"
    return None


def simulate_module(fields: dict[str, Any], tokens: Tokens, *, seeds: int = 8, seed: int = 0) -> Simulated:
    """The mean cosine of freshly initialised modules at every layer of their configuration.

    Tokens are told apart by their ids alone, so ids are renumbered and the vocabulary is cut to those that occur. The
    padding symbol keeps its number: its embedding is zero.
    """
    positive_integer("seeds", seeds, least=2)
    fields, inputs = shown_to(fields, tokens)
    given = from_fields(fields)
    shown = of_noise(given) if "pixel_values" in inputs else of_tokens(_plain_text(inputs["input_ids"]))
    curve = initial_curves(given, [shown], seeds, first=seed)["mean_cosine"]
    return Simulated(curve.mean, curve.spread, seeds, made_by())


def made_by() -> str:
    """Who builds the modules."""
    return f"modules of transformers {version('transformers')}"


def shown_to(fields: dict[str, Any], tokens: Tokens) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Fields with the vocabulary cut to what occurs, and what the module is called with."""
    given = from_fields(fields)
    if from_config(fields).architecture.patch_inputs:
        return fields, of_noise(given).module
    ids, cut = _renumbered(given, tokens)
    return {**fields, **cut}, {"input_ids": ids}


def _plain_text(ids: np.ndarray) -> Text:
    return Text(ids, np.zeros(len(ids), bool), 0.0)


def _count(tokens: Tokens) -> int:
    return int(tokens) if isinstance(tokens, (int, np.integer)) else len(tokens)


def _renumbered(config: Any, tokens: Tokens) -> tuple[np.ndarray, dict[str, Any]]:
    """Ids from the one after the padding symbol on, and the fields of a vocabulary that ends with them."""
    pad = getattr(config, "pad_token_id", None)
    if isinstance(tokens, (int, np.integer)):
        found, padded = np.arange(int(tokens)), np.zeros(int(tokens), bool)
    else:
        found = np.unique(np.asarray(tokens), return_inverse=True)[1]
        padded = np.asarray(tokens) == pad
    first = 0 if pad is None else 2  # paddings are 0 or 1 once renumbered, as positions are counted from theirs
    kept = None if pad is None else min(pad, 1)
    ids = np.where(padded, kept if kept is not None else 0, found + first).astype(np.int64)
    cut = {"vocab_size": int(ids.max()) + 1 + first, "pad_token_id": kept, "bos_token_id": None, "eos_token_id": None}
    return ids, cut


def _parameters(architecture: Architecture) -> int:
    a = architecture
    layers = sum(map(_layer_parameters, a.each_layer(1 if a.shared else a.layers)))
    return layers + a.width * a.context * (a.positions == "learned")


def _layer_parameters(a: Architecture) -> int:
    neurons = a.mlp_width * max(a.experts, 1) + a.shared_width
    return a.width * ((a.heads + a.kv_heads) * (a.head_dim + a.value_dim) + (2 + a.gated) * neurons)
