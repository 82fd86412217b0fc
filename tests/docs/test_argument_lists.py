"""The main names list all their arguments: what each is, its symbol and range, and what changes when it grows."""

import inspect
import re

import pytest

import pathlines

MADE_BY_US = ("Model", "Run")  # an idea, and a result: nobody calls them
TOP = tuple(
    name
    for name in dir(pathlines)
    if name not in MADE_BY_US
    and (inspect.isclass(getattr(pathlines, name)) or inspect.isfunction(getattr(pathlines, name)))
)
ROOMS = (
    "Sphere.uniform",
    "Sphere.von_mises_fisher",
    "Sphere.simplex",
    "weights.FixedWeights",
    "weights.PiecewiseWeights",
    "weights.MixtureHeads",
    "model.parts.Perceptron",
    "model.clustering.NormalisedAttention",
    "model.clustering.RescaledAttention",
    "model.homogenized.HomogenizedODE",
    "model.homogenized.HomogenizedSDE",
    "integrate.coarsen",
    "integrate.cluster_flow",
    "limit.homogenized.overlap_curve",
    "limit.homogenized.layer_map_curve",
    "limit.homogenized.collapse_time",
    "limit.homogenized.collapse_depth",
    "limit.metastability.forecast",
)


def found(path: str):
    """The object that a user reaches as ``pathlines.path``."""
    value = pathlines
    for name in path.split("."):
        value = getattr(value, name)
    return value


def listed(doc: str) -> dict[str, str]:
    """The arguments of a docstring in their order, and what it says about each."""
    block = "".join(re.findall(r"^Args:\n((?:    .*\n?)+)", doc, flags=re.MULTILINE))
    return dict(re.findall(r"^    (\w+): (\S.*(?:\n {8}.*)*)", block, flags=re.MULTILINE))


def is_number(parameter: inspect.Parameter) -> bool:
    """A count or a quantity, which can grow; a seed cannot."""
    return bool(re.search(r"\b(int|float)\b", str(parameter.annotation))) and parameter.name != "seed"


CHANGES = re.compile(r"[Tt]he\s+(larger|smaller|more|fewer|longer|deeper)\b|\b(grows?|fall)\s+like\b|\bcosts\s+\d+\s+%")
"""How a change is said: the larger, the …; errors fall like …; costs grow like …"""


@pytest.mark.parametrize("path", (*TOP, *ROOMS))
def test_every_argument_is_listed_in_order(path):
    value = found(path)
    wanted = [name for name in inspect.signature(value).parameters if name != "self"]
    assert list(listed(inspect.getdoc(value))) == wanted


@pytest.mark.parametrize("path", (*TOP, *ROOMS))
def test_every_number_says_what_changes_when_it_grows(path):
    value = found(path)
    said = listed(inspect.getdoc(value))
    numbers = [name for name, parameter in inspect.signature(value).parameters.items() if is_number(parameter)]
    assert [name for name in numbers if not CHANGES.search(said[name])] == []


def test_a_number_that_says_nothing_is_noticed():
    assert not CHANGES.search(listed("Args:\n    n: how many, n ≥ 1.")["n"])
    assert CHANGES.search(listed("Args:\n    n: how many. The\n        more, the slower.")["n"])
