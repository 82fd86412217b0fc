"""A probe: a model as it was trained, the same configuration before training, and the theory of the latter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from pathlines.architecture import Architecture
from pathlines.architecture.family import FAMILIES
from pathlines.architecture.read import from_config
from pathlines.foundation.errors import ArgumentError, positive_integer, require
from pathlines.foundation.progress import Progress
from pathlines.probing.curves import Curves, kept_tokens, massive_tokens, observed, summary
from pathlines.probing.inputs import Input, of_noise, of_tokens, takes_images
from pathlines.probing.locate import model_folder
from pathlines.probing.modules import configuration, fields_of, is_shared, random_module, trained_module
from pathlines.probing.stream import residual_stream
from pathlines.probing.text import Tokeniser, given_ids, read_texts
from pathlines.probing.theory import predicted_curves

Keep = Sequence[np.ndarray | None]


class Probed(msgspec.Struct, frozen=True):
    """Three curves for each observable; ``notes`` say what the numbers do not."""

    model: str
    folder: str
    family: str
    layers: int
    trained_layers: int
    read: str
    tokens: list[int]
    dropped: list[int]
    seeds: int
    trained: Curves
    initial: Curves
    theory: Curves | None
    notes: list[str]


def probe(
    model: str,
    *,
    lines: Sequence[str] | None = None,
    ids: str | None = None,
    seeds: int = 8,
    seed: int = 0,
    layers: int | None = None,
    max_tokens: int = 128,
    drop_special: bool = False,
    drop_massive: bool = False,
) -> Probed:
    """Measure a real model as it was trained and at random initialisation, beside the theory of the latter.

    Args:
        model: a folder with config.json and weights, or a package that carries one.
        lines: texts, one per input; our samples by default.
        ids: token ids as text, instead of texts.
        seeds: random initialisations ≥ 2 to average over. The more, the narrower the band, and the slower.
        seed: of the first of them.
        layers: iterates a shared layer to that depth. The more, the further the curve goes, and the slower.
        max_tokens: longer inputs are cut. The more, the slower.
        drop_special: leave marks such as [CLS] out of all three curves; they take part in the model's work.
        drop_massive: likewise tokens whose length exceeds four medians.

    Needs torch and transformers (the extra ``probe``). Cost: seeds + 1 forward passes per input, and seeds
    initialisations.
    """
    positive_integer("seeds", seeds, least=2)
    require(isinstance(model, str), "model", "be the name of a folder or package", model)
    folder = model_folder(model)
    fields = fields_of(folder)
    architecture, notes = described(fields, layers)
    config = configuration(folder, layers)
    read, inputs = read_inputs(folder, config, lines, ids, max_tokens)
    module = trained_module(folder, layers)
    streams = [residual_stream(module, one.module) for one in inputs]
    keep: Keep = [None] * len(inputs)
    if drop_special or drop_massive:
        no = [np.zeros(one.tokens, bool) for one in inputs]
        special = [one.special for one in inputs] if drop_special else no
        massive = [massive_tokens(stream) for stream in streams] if drop_massive else no
        keep = [kept_tokens(*pair) for pair in zip(special, massive, strict=True)]
    if is_shared(config):
        notes.append("One layer is shared: the theory is that of its coherent iterates.")
    return Probed(
        model=model,
        folder=str(folder),
        family=config.model_type,
        layers=config.num_hidden_layers,
        trained_layers=configuration(folder).num_hidden_layers,
        read=read,
        tokens=[one.tokens for one in inputs],
        dropped=[0 if kept is None else one.tokens - len(kept) for one, kept in zip(inputs, keep, strict=True)],
        seeds=seeds,
        trained=summary([[observed(s, k) for s, k in zip(streams, keep, strict=True)]]),
        initial=initial_curves(config, inputs, seeds, keep, seed),
        theory=None if architecture is None else predicted_curves(architecture, [one.ids for one in inputs], keep),
        notes=notes,
    )


def initial_curves(
    config: Any, inputs: Sequence[Input], seeds: int, keep: Keep | None = None, first: int = 0
) -> Curves:
    """The observables of a configuration at random initialisation, ``seeds`` times from the seed ``first`` on."""
    keep = keep or [None] * len(inputs)
    runs = []
    with Progress("random initialisations", seeds) as bar:
        for done in range(seeds):
            module = random_module(config, first + done)
            runs.append([observed(residual_stream(module, i.module), k) for i, k in zip(inputs, keep, strict=True)])
            bar.update(done + 1)
    return summary(runs)


def described(fields: dict[str, Any], layers: int | None) -> tuple[Architecture | None, list[str]]:
    """The architecture for the theory, and what it leaves out."""
    name = fields.get("model_type")
    if name not in list(FAMILIES):
        return None, [f"No theory: `model_type` {name!r} is not among {', '.join(FAMILIES)}."]
    reading = from_config(fields)
    notes = [f"Fields that the theory does not know: {', '.join(reading.unknown)}."] if reading.unknown else []
    return (reading.architecture if layers is None else reading.architecture.changed(layers=layers)), notes


def read_inputs(
    folder: Path, config: Any, lines: Sequence[str] | None, ids: str | None, most: int
) -> tuple[str, list[Input]]:
    """What was read, and the inputs: texts, token ids, or an image of noise where the model looks at images."""
    if lines is not None and ids is not None:
        raise ArgumentError("Give either a text or token ids, not both.")
    if takes_images(config):
        if lines is not None or ids is not None:
            raise ArgumentError(f"A `{config.model_type}` looks at images: text and ids have no meaning for it.")
        return "an image of standard normal pixels", [of_noise(config)]
    if ids is not None:
        tokens = given_ids(ids)
        return f"{len(tokens.ids)} token ids", [of_tokens(tokens)]
    most = min(positive_integer("max_tokens", most, least=3), getattr(config, "max_position_embeddings", most))
    read, encoded = read_texts(Tokeniser(folder), lines, most)
    return read, [of_tokens(tokens) for tokens in encoded]
