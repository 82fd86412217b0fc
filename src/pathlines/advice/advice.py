"""Advice on an architecture: its curve, its collapse depths, its regime, what would change them, and a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count
from typing import Any

import msgspec
import numpy as np

from pathlines.advice.knobs import KNOBS, WHAT_IFS, WhatIf
from pathlines.advice.plain import plain
from pathlines.advice.remedies import Remedy, remedies
from pathlines.advice.stored import kept
from pathlines.advice.target import Change, Target, change, smallest_first
from pathlines.architecture import Architecture
from pathlines.architecture.read import Reading, Source, reading_of
from pathlines.foundation.progress import Progress
from pathlines.foundation.threads import one_thread
from pathlines.limit.architecture.backward_cover import not_followed
from pathlines.limit.architecture.gradients import Gradients, predict_gradients
from pathlines.limit.architecture.numbers import Numbers
from pathlines.limit.architecture.predict import Band, cosine_curve, predict
from pathlines.limit.architecture.prediction import Prediction
from pathlines.limit.architecture.start import Tokens, token_ids, usual_tokens
from pathlines.limit.architecture.summary import NARROW, simplex_summary
from pathlines.limit.homogenized.regimes import regime

LEVELS = (0.5, 0.9)
_REGIMES = {
    "static": "nothing moves (static regime)",
    "sde": "small steps (SDE regime)",
    "failure": "large steps (no limit of small ones; the layer map holds)",
}
_FURTHER = 4  # collapse is looked for down to this many times the depth


class Outcome(msgspec.Struct, frozen=True):
    """The predicted mean cosine of a what-if at the layer in question, and its change."""

    name: str
    cosine: float
    change: float


class Advice(msgspec.Struct, frozen=True):
    """Everything that is said about an architecture.

    ``collapse``: the first layer whose mean cosine reaches each level (None: not within four times the depth).
    ``layer`` is the one that what-ifs and target are about; ``met`` is None without a target. ``remedies``: what meets
    a target that is missed, the best first. ``whole_context``: the
    mean cosine there for as many different tokens as the context holds (simplex map; None where a mask or a shared
    layer makes it wrong). ``gradients``: those that training starts with, for a loss that gives every token a gradient
    of its own (None where one layer serves every depth).
    """

    architecture: Architecture
    tokens: int
    prediction: Prediction
    collapse: dict[float, int | None]
    regime: tuple[str, ...]
    layer: int
    outcomes: tuple[Outcome, ...]
    target: Target | None
    changes: tuple[Change, ...]
    assumptions: tuple[str, ...]
    whole_context: float | None = None
    gradients: Gradients | None = None
    remedies: tuple[Remedy, ...] = ()

    @property
    def summary(self) -> tuple[str, str]:
        """Two sentences in plain words: what happens to the tokens, and what to do about it."""
        return plain(self)

    @property
    def met(self) -> bool | None:
        """Whether the target is met, in as many of the random starts as it asks for."""
        return None if self.target is None else self.target.met(self.band)

    @property
    def band(self) -> Band:
        """The mean cosine at the layer in question, and its standard deviation over seeds."""
        return Band(self._cosine, float(self.prediction.spread[self.layer]))

    def plot(self) -> Any:
        """The figure: similarity, causes, stream, attention and gradients over the layers."""
        from pathlines.advice.figure import advice_figure

        return advice_figure(self)

    @property
    def _cosine(self) -> float:
        return float(self.prediction.mean_cosine[self.layer])

    @property
    def verdict(self) -> str:
        """One line for a log."""
        spread = self.prediction.spread[self.layer]
        text = f"mean cosine {self._cosine:.3f} ± {spread:.3f} after layer {self.layer}"
        if self.target is None:
            return text
        seeds = f"{self.target.share(self.band):.0%} of random starts, {self.target.confidence:.0%} wanted"
        return f"{text}: target ≤ {self.target.cosine:g} {'met' if self.met else 'missed'} ({seeds})"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        document = msgspec.to_builtins(
            {
                name: getattr(self, name)
                for name in ("architecture", "tokens", "layer", "outcomes", "target", "changes", "remedies")
            }
        )
        causes = self.prediction.shares
        return document | {
            "summary": list(self.summary),
            "verdict": self.verdict,
            "met": self.met,
            "whole_context": self.whole_context,
            "collapse": {f"{level:g}": layer for level, layer in self.collapse.items()},
            "regime": list(self.regime),
            "causes_of_last_layer": causes,
            "prediction": self.prediction.as_dict(),
            "gradients": None if self.gradients is None else self.gradients.as_dict(),
            "assumptions": list(self.assumptions),
        }


def advise(
    architecture: Source,
    tokens: Tokens | None = None,
    target: Target | None = None,
    *,
    what_if: bool = True,
    fresh: bool = False,
) -> Advice:
    """Predict, look for collapse, try what-ifs and, where a target is missed, search for remedies.

    Args:
        architecture: a config.json, TOML file or folder, the fields of a configuration, six numbers, or the record.
        tokens: token ids, or how many different tokens; 64 (or the context) by default. The more, the slower.
        target: ``pl.advice.Target(cosine, layer)``: the mean cosine may be at most this after that layer, in nine of
            ten random starts (``confidence``).
        what_if: whether to try the named changes and, where a target is missed, remedies.
        fresh: whether to compute again what is kept in the user's cache.

    One or two seconds, some ten more when a target is missed; the second time, at once. Neither JAX nor PyTorch is
    imported.
    """
    reading = reading_of(architecture)
    tokens = usual_tokens(reading.architecture) if tokens is None else tokens
    token_ids(reading.architecture, tokens)
    with one_thread():
        return kept(_advised, reading, tokens, target, what_if, fresh=fresh)


def _advised(reading: Reading, tokens: Tokens, target: Target | None, what_if: bool) -> Advice:
    architecture = reading.architecture
    depth = max(architecture.layers, target.layer if target else 0)
    layer = target.layer if target else architecture.layers
    with Progress("advising", 3 + len(WHAT_IFS) + len(KNOBS)) as bar:
        done = count(1)
        prediction = predict(architecture, tokens, layers=depth)
        bar.update(next(done))
        now = float(prediction.mean_cosine[layer])
        further = _further(architecture, tokens, prediction)
        outcomes: list[Outcome] = []
        for what in WHAT_IFS if what_if else ():
            bar.update(next(done), what.name)
            outcomes += _outcome(what, architecture, tokens, layer, now, further, moved=target is None)
        followed = not architecture.shared and not_followed(architecture) is None
        gradients = predict_gradients(architecture, tokens) if followed else None
        changes, found = _remedies(architecture, tokens, target, prediction, bar, done) if what_if else ([], ())
    return Advice(
        architecture,
        len(prediction.cosines),
        prediction,
        _collapse(further),
        _regime(architecture, prediction),
        layer,
        tuple(outcomes),
        target,
        smallest_first(changes),
        (*_assumptions(architecture, prediction), *reading.assumed, *_ignored(reading)),
        _whole_context(architecture, layer),
        gradients,
        found,
    )


def _remedies(
    architecture: Architecture, tokens: Tokens, target: Target | None, prediction: Prediction, bar: Progress,
    done: Iterator[int],
) -> tuple[list[Change], tuple[Remedy, ...]]:  # fmt: skip
    """What meets a target that is missed; nothing where it is met."""
    if target is None:
        return [], ()
    band = Band(float(prediction.mean_cosine[target.layer]), float(prediction.spread[target.layer]))
    if target.met(band):
        return [], ()
    base = float(cosine_curve(architecture, tokens, target.layer)[-1])  # drawn heads must be the same in a difference
    changes = []
    for knob in KNOBS:
        bar.update(next(done), knob.name)
        changes += change(knob, architecture, tokens, target, base)
    turns = {knob.name: knob.turn for knob in KNOBS}
    bar.update(next(done), "recipes")
    return changes, remedies(
        architecture, tokens, target, band.cosine, changes, lambda c: turns[c.knob](architecture, c.factor or 1.0)
    )


def _whole_context(architecture: Architecture, layer: int) -> float | None:
    a = architecture
    if a.mask != "full" or a.shared or a.window or a.by_layer or a.positions == "alibi" or Numbers.of(a).b >= NARROW:
        return None
    return float(simplex_summary(architecture, layers=layer).cosine[-1])


def _collapse(curve: np.ndarray) -> dict[float, int | None]:
    return {level: int(np.argmax(curve >= level)) if np.any(curve >= level) else None for level in LEVELS}


def _further(architecture: Architecture, tokens: Tokens, prediction: Prediction) -> np.ndarray:
    """The curve, beyond the last layer where it has not collapsed there."""
    if np.max(prediction.mean_cosine) >= LEVELS[-1]:
        return prediction.mean_cosine
    return cosine_curve(architecture, tokens, _FURTHER * architecture.layers)


def _outcome(
    what: WhatIf, architecture: Architecture, tokens: Tokens, layer: int, now: float, further: np.ndarray, *,
    moved: bool,
) -> list[Outcome]:  # fmt: skip
    """None where nothing changes. ``moved``: where only the depth does, compare last layers, else leave it out."""
    changed = what.change(architecture)
    if changed is None or (changed.layers != architecture.layers and not moved):
        return []
    last = changed.layers if moved else layer
    if changed.changed(layers=architecture.layers) == architecture and last < len(further):
        cosine = float(further[last])  # the same layers, more or fewer of them
    else:
        cosine = float(cosine_curve(changed, tokens, last)[-1])
    return [Outcome(what.name, cosine, cosine - now)]


def _regime(architecture: Architecture, prediction: Prediction) -> tuple[str, ...]:
    """The limit of the homogenized theory, the sharpness of attention, and what the first layer does."""
    numbers, n = Numbers.of(architecture), len(prediction.cosines)
    stays = architecture.placement in ("post", "sandwich")
    rms = np.ones(1) if stays else prediction.residual_rms[:-1]
    times = numbers.attention * architecture.norm_gain**2 / rms**2
    tau = float(np.sum(times)) if len(times) > 1 else float(times[0]) * architecture.layers
    step = math.sqrt(tau / architecture.layers)
    if step == 0:
        return ("attention adds nothing: one of its matrices starts at zero, or its residual scale is zero",)
    found = regime(step, step * (numbers.dimension - 1) / numbers.dimension, architecture.layers, centred=True)
    pace = f"diffusive time τ = {tau:.3g} of attention over the depth, {tau / architecture.layers:.3g} a layer"
    lines = [f"{_REGIMES[found.label]}: {pace}"]
    sharp, edge = float(prediction.logit_std[0]), math.sqrt(2 * math.log(n))
    kind = "nearly uniform" if sharp < 0.5 else "soft" if sharp < edge else "resting on a few keys"
    lines.append(
        f"attention is {kind}: logits of a row vary by {sharp:.2g} (it condenses beyond √(2 log n) = {edge:.2g})"
    )
    if architecture.shared:
        lines[0] += ", were layers independent; one layer at every depth adds up coherently, which is faster"
    grown = float(prediction.residual_rms[1] / prediction.residual_rms[0]) ** 2
    if not stays and grown > 2:
        lines.append(f"the first layer multiplies the power of the stream by {grown:.3g}: it drowns the embedding")
    return tuple(lines)


def _ignored(reading: Reading) -> tuple[str, ...]:
    return tuple(f"`{name}` of {reading.source} is not understood and left out" for name in reading.unknown)


def _assumptions(architecture: Architecture, prediction: Prediction) -> tuple[str, ...]:
    n = len(prediction.cosines)
    weights, width = "independent in every layer", "first order in 1/width"
    if architecture.shared:
        weights, width = "the same in every layer", "the mean in the limit of large width"
    lines = [
        f"weights at initialisation, Gaussian and {weights}; nothing is said about training",
        f"{n} tokens; other lengths move the curve (roughly with log n)",
        f"mean over seeds, with its standard deviation; {width}",
    ]
    if prediction.sampled:
        lines.append(f"attention of {prediction.sampled} layers from drawn heads (logits too sharp to expand)")
    if len(prediction.mean_cosine) - 1 > architecture.layers:
        lines.append(f"layers beyond the {architecture.layers} there are go on in the same way")
    if (why := not_followed(architecture)) is not None:
        lines.append(why)
    if architecture.patch_inputs:
        lines.append("patches of independent pixels of mean square one; real images are more alike")
    return tuple(lines)
