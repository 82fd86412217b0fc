"""What gradients an architecture starts with: norms at every depth and of every matrix, and whether it can be trained.

Scale-free: ĝ² = Σ r_i²‖g_i‖², the sensitivity to a relative change of the stream. Down through one branch of forward
power F and backward gain B (derived)

    ĝ²_in/ĝ²_out = (α²r² + B)/(α²r² + F),    B/F of a perceptron the mean Hermite degree of its activation,

so ‖g_0‖/‖g_L‖ = 100 of a pre-norm model with small embeddings is r_L/r_0 and no explosion. The private transmission
Ψ = ĝ_0/ĝ_L of a gradient that tokens do not share says how much of each token's own label reaches its embedding.

    rank        mean cosine of the last layer above 0.95
    entropy     attention of some layer below half of its largest entropy
    vanishing   Ψ below 0.1
    exploding   ĝ beyond 10 times the top's at some depth

The four thresholds are conventions of this program (papers agree on the directions, not on numbers: Cowsik et al.,
arXiv:2403.02579; Giorlandino and Goldt, arXiv:2505.24333).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pathlines.architecture.read import Source, architecture_of
from pathlines.architecture.record import Architecture
from pathlines.foundation.errors import ArgumentError, finite_number, positive_integer, require
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.limit.architecture.backward import PATHS, Descent, descended
from pathlines.limit.architecture.backward_cover import not_followed
from pathlines.limit.architecture.backward_norms import below_norm
from pathlines.limit.architecture.backward_start import SHARP, GradientStart, gradient_start
from pathlines.limit.architecture.backward_tape import Tape, recorded
from pathlines.limit.architecture.branch import mean_cosine
from pathlines.limit.architecture.first_step import ADAM_EPSILON, OPTIMISERS, FirstStep, first_step
from pathlines.limit.architecture.sampled import SAMPLES
from pathlines.limit.architecture.start import Tokens, start_gram, usual_tokens

SOURCES = (HOMOGENIZED,)
RANK, ENTROPY, VANISHING, EXPLODING = 0.95, 0.5, 0.1, 10.0
MATRICES = ("query", "key", "value", "output", "mlp_in", "mlp_gate", "mlp_out")
RATE = 1e-3


@dataclass(frozen=True)
class Gradients:
    """Predicted gradients; arrays over depth have L+1 entries (0: embeddings), those of layers L.

    ``stream``: ‖∂loss/∂h_ℓ‖ over all tokens; ``relative``: ĝ_ℓ; ``alignment``: 1/n for independent gradients of tokens,
    1 for equal ones; ``exponent``: ln(ĝ_ℓ/ĝ_{ℓ+1}) of each layer; ``private``: Ψ at every depth; ``seed_spread``:
    standard deviation of ln‖g_ℓ‖ over seeds; ``paths``: shares of ‖g_ℓ‖² by the way it came (skip, value, query, key,
    perceptron); ``matrices``: Frobenius norms of ∂W by kind and layer; ``gains``: those of the norms' gains;
    ``steps``: the first step of the optimiser by kind and layer; ``entropy``: of attention, over its largest.
    """

    stream: np.ndarray
    relative: np.ndarray
    alignment: np.ndarray
    exponent: np.ndarray
    private: np.ndarray
    seed_spread: np.ndarray
    paths: np.ndarray
    matrices: dict[str, np.ndarray]
    gains: dict[str, np.ndarray]
    steps: dict[str, tuple[FirstStep, ...]]
    embedding: float
    head: float | None
    entropy: np.ndarray
    cosine: np.ndarray
    grams: np.ndarray
    loss: str
    rate: float
    optimiser: str
    notes: tuple[str, ...]

    @property
    def transmission(self) -> float:
        """Ψ."""
        return float(self.private[0])

    @property
    def query_share(self) -> float:
        """‖∂W_Q‖² + ‖∂W_K‖² over all matrices."""
        squares = {name: float(np.sum(norms**2)) for name, norms in self.matrices.items()}
        return (squares["query"] + squares["key"]) / max(sum(squares.values()), 1e-300)

    @property
    def starved(self) -> float:
        """‖∂W_Q‖/‖∂W_V‖ of the last layer over that of the first."""
        ratio = self.matrices["query"] / np.maximum(self.matrices["value"], 1e-300)
        return float(ratio[-1] / max(ratio[0], 1e-300))

    @property
    def unevenness(self) -> dict[str, float]:
        """Largest over smallest norm of each kind of matrix, over layers."""
        return {name: float(v.max() / max(v.min(), 1e-300)) for name, v in self.matrices.items()}

    @property
    def entry(self) -> float:
        """The smallest root mean square entry of any matrix's gradient."""
        return min(step.entry for steps in self.steps.values() for step in steps)

    @property
    def labels(self) -> tuple[str, ...]:
        """Of rank, entropy, vanishing, exploding those that hold; else trainable."""
        top = max(float(self.relative[-1]), 1e-300)
        held = {
            "rank": self.cosine[-1] > RANK,
            "entropy": float(self.entropy.min()) < ENTROPY,
            "vanishing": self.transmission < VANISHING,
            "exploding": float(self.relative.max()) / top > EXPLODING,
        }
        return tuple(name for name, holds in held.items() if holds) or ("trainable",)

    @property
    def trainable(self) -> bool:
        """No label but perhaps entropy, which is harmless for gradients where branches are small."""
        return not {"rank", "vanishing", "exploding"} & set(self.labels)

    @property
    def reason(self) -> str:
        """One sentence: the verdict and the number behind it."""
        largest = float(self.relative.max() / max(self.relative[-1], 1e-300))
        said = {
            "exploding": f"gradients grow {largest:.3g}-fold towards the input (relative to the stream; limit 10)",
            "vanishing": f"only {self.transmission:.2g} of a token's own gradient reaches its embedding (limit 0.1)",
            "rank": f"tokens are alike after the last layer (mean cosine {self.cosine[-1]:.3f}; limit 0.95)",
        }
        found = [text for label, text in said.items() if label in self.labels]
        if found:
            return "Hard to train from this start: " + "; ".join(found) + "."
        return (
            f"Gradients reach every layer: {self.relative[0] / max(self.relative[-1], 1e-300):.2g} of the top's size "
            f"at the embeddings (relative to the stream), {self.transmission:.2g} of each token's own part."
        )

    @property
    def sentence(self) -> str:
        """What queries and keys get, and Adam's first step."""
        first, last = (self.matrices["query"][k] / max(self.matrices["value"][k], 1e-300) for k in (0, -1))
        text = f"Queries get {first:.2g} of the values' gradient in the first layer and {last:.2g} in the last"
        name, layer = max(
            ((name, k) for name, steps in self.steps.items() for k in range(len(steps))),
            key=lambda place: self.steps[place[0]][place[1]].output,
        )
        moved = self.steps[name][layer].output
        step = f"one step of {self.optimiser} at {self.rate:g} moves the output of {name} in layer {layer + 1}"
        return f"{text}; {step} by {moved:.0%}."

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        by_layer = ("stream", "relative", "alignment", "exponent", "private", "seed_spread", "entropy")
        document: dict[str, Any] = {name: getattr(self, name).tolist() for name in by_layer}
        return document | {
            "loss": self.loss,
            "labels": list(self.labels),
            "trainable": self.trainable,
            "reason": self.reason,
            "private_transmission": self.transmission,
            "query_key_share": self.query_share,
            "query_over_value_last_to_first": self.starved,
            "unevenness": self.unevenness,
            "smallest_entry": self.entry,
            "matrices": {name: norms.tolist() for name, norms in self.matrices.items()},
            "gains": {name: norms.tolist() for name, norms in self.gains.items()},
            "paths": {name: self.paths[:, k].tolist() for k, name in enumerate(PATHS)},
            "steps": {name: [step._asdict() for step in steps] for name, steps in self.steps.items()},
            "embedding": self.embedding,
            "head": self.head,
            "optimiser": self.optimiser,
            "rate": self.rate,
            "notes": list(self.notes),
        }


def predict_gradients(
    architecture: Source,
    tokens: Tokens | None = None,
    *,
    gram: np.ndarray | None = None,
    loss: str | np.ndarray = "iid",
    labels: Sequence[int] | np.ndarray | None = None,
    head: float | None = None,
    layers: int | None = None,
    rate: float = RATE,
    optimiser: str = "adam",
    finite_width: bool = True,
    draw: bool = True,
) -> Gradients:
    """Gradient norms of the stream and of every matrix at initialisation, from a configuration alone.

    Args:
        architecture: a config.json, TOML file or folder, the fields of a configuration, six numbers, or the record.
        tokens: token ids, or how many different tokens; 64 (or the context) by default.
        gram: the Gram matrix per coordinate before the first layer, instead of tokens.
        loss: iid (unit gradient of every token), last, first, mean, common, private, cross-entropy, or Γ_L itself.
        labels: for cross-entropy, the word that each position predicts; -100 for none.
        head: standard deviation σ_U of the output embedding; that of the input's by default.
        layers: how many, those of the architecture by default.
        rate: learning rate η of the first step.
        optimiser: adam or sgd.
        finite_width: whether to keep the terms of order 1/d.
        draw: whether heads are drawn where logits are too sharp for the expansion.

    You will see gradient norms of pre-norm models rise towards the input by r_L/r_0, those of collapsed post-norm
    models vanish for queries and keys. Good values: ``labels`` says trainable, ``unevenness`` below 10. Cost: O(L n³),
    twice the forward prediction; with sharp attention ten times.
    """
    a = architecture_of(architecture)
    if a.shared:
        raise ArgumentError(
            "Argument `architecture` must have independent layers; `shared_gradients` has the other law."
        )
    if (why := not_followed(a)) is not None:
        raise ArgumentError(f"Argument `architecture` must have what the backward map knows: {why}.")
    depth = a.layers if layers is None else positive_integer("layers", layers)
    finite_number("rate", rate, 0.0, open_low=True)
    require(optimiser in OPTIMISERS, "optimiser", "be adam or sgd", optimiser)
    ids = usual_tokens(a) if tokens is None else tokens
    start = start_gram(a, ids) if gram is None else np.asarray(gram, np.float64)
    tape = recorded(a, start, depth, SAMPLES, finite=finite_width, draw=draw)
    top = gradient_start(a, tape.last, loss, labels, head, finite=finite_width)
    private = np.eye(len(start)) - 1 / len(start)
    down = descended(tape, np.array([top.gram, private]), finite=finite_width)
    return _result(a, ids, start, tape, top, down, loss if isinstance(loss, str) else "given", rate, optimiser)


def _result(
    a: Architecture, ids: Tokens, start: np.ndarray, tape: Tape, top: GradientStart, down: Descent, loss: str,
    rate: float, optimiser: str,
) -> Gradients:  # fmt: skip
    streams = [sub.stream for sub in tape.sublayers[:: len(tape.maps.kinds)]] + [tape.last]
    powers = np.array([stream.powers for stream in streams])
    own = np.diagonal(down.grams, axis1=2, axis2=3)
    squares, hats = own.sum(axis=2), np.sum(own * powers[:, None], axis=2)
    relative, private = np.sqrt(hats[:, 0]), np.sqrt(hats[:, 1] / hats[-1, 1])
    n = len(start)
    spread = 0.5 * np.sqrt(down.variance)
    notes = [] if top.logits <= SHARP else [f"logits of the head vary by {top.logits:.2g}; the law holds up to {SHARP}"]
    records = a.each_layer(len(streams) - 1)
    steps = {
        name: tuple(
            first_step(records[k], name, gradient, rate, optimiser, tape.sublayers[len(tape.maps.kinds) * k].directions)
            for k, gradient in enumerate(found)
        )
        for name, found in down.matrices.items()
    }  # fmt: skip
    if optimiser == "adam" and min(s.entry for found in steps.values() for s in found) < 10 * ADAM_EPSILON:
        notes.append("some matrices have gradients near or below Adam's ε = 1e-8: they do not move")
    return Gradients(
        stream=np.sqrt(squares[:, 0]),
        relative=relative,
        alignment=np.sum(down.grams[:, 0], axis=(1, 2)) / np.maximum(n * squares[:, 0], 1e-300),
        exponent=np.log(np.maximum(relative[:-1], 1e-300) / np.maximum(relative[1:], 1e-300)),
        private=private,
        seed_spread=spread,
        paths=down.paths,
        matrices={
            name: np.sqrt([max(g.square, 0.0) for g in down.matrices[name]])
            for name in MATRICES
            if name in down.matrices
        },
        gains=down.gains,
        steps=steps,
        embedding=_embedding(a, ids, down.grams[0, 0], top.head if a.tied else None),
        head=top.head if top.head is None else math.sqrt(top.head),
        entropy=tape.entropy,
        cosine=np.array([mean_cosine(stream.cosines) for stream in streams]) if n > 1 else np.ones(len(streams)),
        grams=down.grams[:, 0],
        loss=loss,
        rate=rate,
        optimiser=optimiser,
        notes=tuple(notes),
    )


def _embedding(a: Architecture, ids: Tokens, gradients: np.ndarray, tied: float | None) -> float:
    """‖∂E‖ of the word embedding, below its norm and scale; a tied head adds its own."""
    n = len(gradients)
    same = (
        np.eye(n)
        if isinstance(ids, (int, np.integer)) or len(np.asarray(ids)) != n
        else np.equal.outer(np.asarray(ids), np.asarray(ids))
    )
    if a.embedding_norm:
        before = start_gram(a.changed(embedding_norm=False, embedding_width=0), ids if len(same) == n else n)
        gradients = below_norm(a, gradients, before, isotropic=a.placement != "post")
    square = a.embedding_scale**2 * float(np.sum(gradients * same)) + (tied or 0.0)
    return math.sqrt(max(square, 0.0))
