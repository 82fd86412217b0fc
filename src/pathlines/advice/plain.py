"""What an advice says in two sentences, for those who never heard of the theory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlines.advice.advice import Advice

ALIKE, IDENTICAL = 0.5, 0.9
_WORDS = {
    "embedding": "embeddings that are alike",
    "attention": "attention",
    "perceptron": "perceptrons",
    "mean bias": "what perceptrons add to all tokens",
}


def plain(advice: Advice) -> tuple[str, str]:
    """What happens to the tokens, and what to do about it."""
    return _finding(advice), _remedy(advice)


def _finding(advice: Advice) -> str:
    curve, depth = advice.prediction.mean_cosine, advice.architecture.layers
    here = float(curve[min(depth, len(curve) - 1)])
    for level, word in ((IDENTICAL, "nearly identical"), (ALIKE, "more alike than not")):
        if np.any(curve[: depth + 1] >= level):
            layer = int(np.argmax(curve >= level))
            after = "Before the first layer" if layer == 0 else f"By layer {layer} of {depth}"
            return f"{after} the tokens of this model are {word} (mean cosine {float(curve[layer]):.2f})."
    return (
        f"After all {depth} layers the tokens of this model are still apart (mean cosine {here:.2f}; 1 is identical)."
    )


def _remedy(advice: Advice) -> str:
    now = float(advice.prediction.mean_cosine[advice.layer])
    if advice.target is not None:
        share = seeds_of_ten(advice.target.confidence)
        goal = f"{advice.target.cosine:g} after layer {advice.layer} for {share} random starts"
        if advice.met:
            return f"The target of at most {goal} is met."
        found = next((remedy for remedy in advice.remedies if remedy.meets), None)
        if found is None:
            return (
                f"The target of at most {goal} is missed ({now:.2f} on average), and nothing that was tried meets it."
            )
        return (
            f"The target of at most {goal} is missed ({now:.2f} on average); {found.name} brings it to "
            f"{found.cosine:.2f}, which {seeds_of_ten(found.share)} starts meet."
        )
    best = min(advice.outcomes, key=lambda outcome: outcome.cosine, default=None)
    if best is None or best.change > -0.02:
        return "None of the changes that were tried makes much of a difference."
    return f"Of the changes that were tried this helps most: {best.name} ({best.cosine:.2f} in place of {now:.2f})."


def seeds_of_ten(share: float) -> str:
    """A share in words: 9 of 10."""
    return f"{min(math.floor(100 * share + 1e-9), 99)} of 100" if share > 0.95 else f"{round(10 * share)} of 10"


def causes(advice: Advice) -> str:
    """The parts of the mean cosine after the last layer, which add up to it."""
    shares = {cause: share for cause, share in advice.prediction.shares.items() if abs(share) >= 0.005}
    total = float(advice.prediction.mean_cosine[-1])
    parts = ", ".join(f"{_WORDS[cause]} {share:+.2f}" for cause, share in shares.items())
    return f"where the {total:.2f} after the last layer comes from: {parts or 'nothing moves'}"
