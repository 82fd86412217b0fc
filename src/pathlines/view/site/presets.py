"""States to start from, named by what one will see."""

from __future__ import annotations

from typing import NamedTuple


class Preset(NamedTuple):
    """A state of *Play* with what to look at in it."""

    name: str
    words: dict[str, str]
    look: str


PRESETS = (
    Preset("Long plateaus", {"model": "sa", "beta": "9", "n": "120", "until": "30"},
           "Tokens gather in a few clusters that stay for times like e^{β(1 − ⟨x, y⟩)} and merge one pair at a time."),
    Preset("Direct collapse", {"model": "sa", "beta": "1", "n": "120", "until": "10"},
           "At small β everyone hears everyone: one point, with no stop on the way."),
    Preset("Repulsion", {"model": "sa", "beta": "4", "value": "-1", "n": "120", "until": "15"},
           "With V = −I tokens push each other away and spread over the sphere."),
    Preset("Leaders", {"model": "leader", "d": "2", "n": "40", "until": "12"},
           "Each token follows the one it scores highest; those whom nobody pulls stay where they are."),
    Preset("A polytope", {"model": "rescaled", "d": "2", "n": "40", "until": "12"},
           "Rescaled tokens of R² move to the corners and edges of a polytope."),
    Preset("Hyperplanes", {"model": "rescaled", "d": "2", "n": "40", "until": "8", "start": "cube:5",
                           "value": "[[0.64709742,0.81911926],[0.61210449,0.63263484]]"},
           "V has one leading eigenvalue: tokens settle on at most three parallel lines."),
    Preset("Clusters on the circle", {"model": "sa", "d": "2", "beta": "20", "n": "120", "until": "30"},
           "About √β clusters on the circle, evenly spaced, for a long time."),
    Preset("Earlier tokens lead", {"model": "sa", "beta": "9", "mask": "causal", "n": "120", "until": "30"},
           "With a causal mask nobody moves the first token, and the others settle around those before them."),
    Preset("Random layers", {"model": "homogenized-sde", "n": "80", "layers": "120"},
           "Fresh random weights at every layer move all tokens together and draw them to each other."),
    Preset("A cloud that contracts", {"model": "gaussian-linear", "d": "2", "start": "normal", "until": "4"},
           "A Gaussian cloud stays Gaussian; its covariance has an equation of its own."),
    Preset("It blows up", {"model": "linear", "space": "euclidean", "d": "2", "start": "normal", "until": "3"},
           "Linear attention in R² without normalisation leaves every bound in finite time; the run says when."),
)  # fmt: skip

USUAL = {
    "leader": {"d": "2", "n": "40", "until": "12"},
    "rescaled": {"d": "2", "n": "40", "until": "12"},
    "frozen": {"d": "2", "n": "40", "until": "12"},
    "usa": {"until": "3"},
    "transported-measure": {"d": "2", "layers": "40"},
    "homogenized-sde": {"layers": "120", "n": "80"},
    "perceptron": {"d": "2", "until": "10"},
    "proximal": {"d": "2", "start": "normal:0.5", "until": "4"},
    "causal-decoder": {"d": "2", "until": "4"},
    "circle": {"d": "2"},
}
"""Where a model is looked at if nobody says where; those of Gaussian clouds start from normal tokens of the plane."""


def usual(model: str) -> dict[str, str]:
    """The words of a model's usual state."""
    if "gaussian" in model:
        return {"model": model, "d": "2", "start": "normal", "until": "2"}
    return {"model": model, **USUAL.get(model, {})}
