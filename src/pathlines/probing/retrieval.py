"""Retrieval in a real decoder: what the last position depends on, trained and before training, over theory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from pathlines.foundation.errors import ArgumentError, positive_integer, require
from pathlines.foundation.progress import Progress
from pathlines.limit.architecture.influence import Influence, position_influence
from pathlines.probing.examine import described, read_inputs
from pathlines.probing.inputs import takes_images
from pathlines.probing.jacobian import last_position_squares, require_causal
from pathlines.probing.locate import model_folder
from pathlines.probing.modules import configuration, fields_of, random_module, trained_module

COMPARABLE = (
    "Comparable: the random models and the theory, number by number (both are the root mean square gain from a small "
    "change of position i before the first layer to the last position after the last; theory up to O(1/width))."
)
NOT_COMPARABLE = (
    "Not comparable: trained weights are neither independent nor of mean zero, so theory predicts neither their level "
    "nor their shape; a Jacobian is a local sensitivity, not accuracy; `pathlines retrieval` is about correlations of "
    "tokens on a circle, where hops of attention add up instead of their squares."
)


class Dependence(msgspec.Struct, frozen=True):
    """√(‖∂h_N/∂h_i‖²_F/d) for i = 1 … N, with its standard error (over texts, or directions of one; over seeds)."""

    influence: list[float]
    error: list[float]

    @property
    def worst(self) -> int:
        """The position that counts least, from 1."""
        return int(np.argmin(self.influence)) + 1


class ProbedRetrieval(msgspec.Struct, frozen=True):
    """The last position's dependence on every other: trained, at random initialisation, and the theory of the latter.

    ``windows``: tokens back that each layer sees (0: all). ``shares``: what attention adds to the stream's power in
    each layer, over what there is then, in theory at initialisation. ``logit_std``: of a random model's logits.
    """

    model: str
    folder: str
    family: str
    layers: int
    windows: list[int]
    read: str
    texts: int
    tokens: int
    seeds: int
    directions: int
    trained: Dependence
    initial: Dependence
    theory: list[float] | None
    shares: list[float] | None
    logit_std: float | None
    notes: list[str]


def probe_retrieval(
    model: str,
    *,
    lines: Sequence[str] | None = None,
    ids: str | None = None,
    seeds: int = 8,
    seed: int = 0,
    directions: int = 16,
    max_tokens: int = 128,
) -> ProbedRetrieval:
    """Measure how strongly the last position of a causal language model depends on each earlier one.

    Args:
        model: a folder with config.json and weights, or a package that carries one.
        lines: texts, one per input, cut to the shortest of them; our samples by default.
        ids: token ids as text, instead of texts.
        seeds: random initialisations ≥ 2. The more, the smaller their error, and the slower.
        seed: of the first of them.
        directions: random cotangents K of each reverse pass; the estimate is exact at K = width.
        max_tokens: longer inputs are cut.

    Needs torch and transformers (the extra ``probe``). Cost: (seeds + 1) · texts · (1 + 2 directions) passes.
    """
    positive_integer("seeds", seeds, least=2)
    positive_integer("directions", directions)
    require(isinstance(model, str), "model", "be the name of a folder or package", model)
    folder = model_folder(model)
    architecture, notes = described(fields_of(folder), None)
    config = configuration(folder)
    if takes_images(config) or getattr(config, "is_encoder_decoder", False):
        raise ArgumentError(f"A `{config.model_type}` is not a causal language model, which retrieval is measured on.")
    read, inputs = read_inputs(folder, config, lines, ids, max_tokens)
    texts = _common([one.ids for one in inputs], config)
    module = trained_module(folder)
    require_causal(module, texts[0])
    directions = min(directions, config.hidden_size)
    trained, initial = _measured(module, config, texts, seeds, seed, directions)
    windows = windows_of(config)
    found = [] if architecture is None else [position_influence(architecture, t, windows=windows) for t in texts]
    if any(not one.trusted for one in found):
        notes.append("Logits of the random model vary so much that the theory, a second-order expansion, is rough.")
    return ProbedRetrieval(
        model=model,
        folder=str(folder),
        family=config.model_type,
        layers=config.num_hidden_layers,
        windows=windows,
        read=read,
        texts=len(texts),
        tokens=len(texts[0]),
        seeds=seeds,
        directions=directions,
        trained=trained,
        initial=initial,
        **_theory(found),
        notes=[*notes, COMPARABLE, NOT_COMPARABLE],
    )


def windows_of(config: Any) -> list[int]:
    """Of each layer, how many tokens back it sees; 0 for all."""
    width = getattr(config, "sliding_window", None) or 0
    if not getattr(config, "use_sliding_window", True):
        width = 0
    kinds = getattr(config, "layer_types", None) or ["sliding_attention"] * config.num_hidden_layers
    return [width if kind == "sliding_attention" else 0 for kind in kinds]


def initial_dependence(
    config: Any, texts: Sequence[np.ndarray], seeds: int, directions: int = 16, first: int = 0
) -> Dependence:
    """The same of a configuration at random initialisation, ``seeds`` times from the seed ``first`` on."""
    with Progress("random initialisations", seeds) as bar:
        return _of_seeds(config, texts, seeds, directions, first, bar, 0)


def _measured(
    module: Any, config: Any, texts: Sequence[np.ndarray], seeds: int, seed: int, directions: int
) -> tuple[Dependence, Dependence]:
    with Progress("derivatives", seeds + 1) as bar:
        squares = np.stack([last_position_squares(module, text, directions, k) for k, text in enumerate(texts)])
        trained = summarised(squares.mean(axis=1) if len(texts) > 1 else squares[0])
        bar.update(1)
        return trained, _of_seeds(config, texts, seeds, directions, seed, bar, 1)


def _of_seeds(
    config: Any, texts: Sequence[np.ndarray], seeds: int, directions: int, first: int, bar: Progress, done: int
) -> Dependence:
    runs = []
    for k in range(seeds):
        module = random_module(config, first + k)
        each = [last_position_squares(module, text, directions, first + k) for text in texts]
        runs.append(np.mean(each, axis=(0, 1)))
        bar.update(done + k + 1)
    return summarised(np.stack(runs))


def summarised(squares: np.ndarray) -> Dependence:
    """Root of the mean over the first axis, and its standard error by the delta method; one sample has none."""
    mean = squares.mean(axis=0)
    root = np.sqrt(mean)
    if len(squares) == 1:
        return Dependence(root.tolist(), [0.0] * len(root))
    error = squares.std(axis=0, ddof=1) / np.sqrt(len(squares))
    return Dependence(root.tolist(), (error / np.maximum(2 * root, np.finfo(float).tiny)).tolist())


def _theory(found: Sequence[Influence]) -> dict[str, Any]:
    if not found:
        return {"theory": None, "shares": None, "logit_std": None}
    return {
        "theory": np.sqrt(np.mean([one.squared for one in found], axis=0)).tolist(),
        "shares": np.mean([one.shares for one in found], axis=0).tolist(),
        "logit_std": max(one.logit_std for one in found),
    }


def _common(texts: Sequence[np.ndarray], config: Any) -> list[np.ndarray]:
    """All texts cut to the shortest, and refused where the model has no embedding for them."""
    shortest = min(len(text) for text in texts)
    most, words = getattr(config, "max_position_embeddings", None), getattr(config, "vocab_size", None)
    if shortest < 3:
        raise ArgumentError(f"Argument `ids` must have at least three tokens, but has {shortest}.")
    if most is not None and shortest > most:
        raise ArgumentError(
            f"Argument `ids` must have at most {most} tokens (`max_position_embeddings`), but has {shortest}."
        )
    low, high = min(int(t.min()) for t in texts), max(int(t.max()) for t in texts)
    if words is not None and not 0 <= low <= high < words:
        raise ArgumentError(f"Token ids must lie between 0 and {words - 1}, but go from {low} to {high}.")
    return [text[:shortest] for text in texts]
