"""The main names list all their arguments: what each is, its symbol and range, and what changes when it grows."""

import inspect
import re
from importlib import import_module

import pytest

MAIN = (
    "domain.sphere.Sphere",
    "domain.sphere.Sphere.uniform",
    "domain.sphere.Sphere.von_mises_fisher",
    "domain.sphere.Sphere.simplex",
    "domain.euclidean.Euclidean",
    "weights.fixed.FixedWeights",
    "weights.piecewise.PiecewiseWeights",
    "weights.gaussian.GaussianHeads",
    "weights.mixture.MixtureHeads",
    "model.parts.perceptron.Perceptron",
    "model.self_attention.SelfAttention",
    "model.clustering.normalised.NormalisedAttention",
    "model.clustering.rescaled.RescaledAttention",
    "model.homogenized.random_transformer.RandomTransformer",
    "model.homogenized.sde.HomogenizedSDE",
    "integrate.flow.flow",
    "integrate.layers.layers",
    "integrate.chain.chain",
    "integrate.ensemble.ensemble",
    "integrate.coarsen.coarsen",
    "integrate.cluster_flow.cluster_flow",
    "limit.homogenized.regimes.regime",
    "limit.homogenized.overlap_curve.overlap_curve",
    "limit.homogenized.overlap_curve.layer_map_curve",
    "limit.homogenized.collapse.collapse_time",
    "limit.homogenized.collapse.collapse_depth",
    "limit.metastability.forecast.forecast",
    "sweep.phase.phase_diagram",
    "claim.evaluate.evaluate",
    "draw.plot.plot",
    "store.runs.save_run",
    "store.runs.open_run",
)


def found(path: str):
    """The object at ``path``: the longest module, then attributes."""
    parts = path.split(".")
    for k in range(len(parts), 0, -1):
        try:
            value = import_module(".".join(("pathlines", *parts[:k])))
        except ModuleNotFoundError:
            continue
        for name in parts[k:]:
            value = getattr(value, name)
        return value
    raise AssertionError(path)


@pytest.mark.parametrize("path", MAIN)
def test_every_argument_is_listed_in_order(path):
    value = found(path)
    wanted = [name for name in inspect.signature(value).parameters if name != "self"]
    (block,) = re.findall(r"^Args:\n((?:    .*\n?)+)", inspect.getdoc(value), flags=re.MULTILINE)
    assert re.findall(r"^    (\w+): \S", block, flags=re.MULTILINE) == wanted
