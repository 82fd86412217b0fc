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


@pytest.mark.parametrize("path", (*TOP, *ROOMS))
def test_every_argument_is_listed_in_order(path):
    value = found(path)
    wanted = [name for name in inspect.signature(value).parameters if name != "self"]
    block = "".join(re.findall(r"^Args:\n((?:    .*\n?)+)", inspect.getdoc(value), flags=re.MULTILINE))
    assert re.findall(r"^    (\w+): \S", block, flags=re.MULTILINE) == wanted
