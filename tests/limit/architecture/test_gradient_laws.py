"""Closed laws of gradients, and one layer for every depth, against reference values and the module."""

import numpy as np
import pytest

from pathlines.architecture import Architecture, Deviations
from pathlines.foundation.errors import ArgumentError
from pathlines.limit.architecture.backward_shared import shared_gradients
from pathlines.limit.architecture.gradient_laws import query_rate, sharp_query_gain
from pathlines.limit.architecture.gradient_phases import gradient_phases
from pathlines.limit.architecture.gradients import predict_gradients
from pathlines.model.architecture.random_gradients import GradientSample

CLOSED = {0.0: 2.715e-1, 0.3: 1.292e-2, 0.6: 2.216e-3, 0.9: 9.395e-5, 0.97: 7.865e-6, 0.99: 8.568e-7, 0.999: 8.493e-9}


def test_queries_starve_at_a_rate():
    assert query_rate(32, 0.9, 0.5, 1e300) == pytest.approx(8.38019031e-5, rel=1e-8)
    for rho, expected in CLOSED.items():
        assert query_rate(32, rho, 0.5, 256) == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize(("b", "gain"), [(1.0, 0.0343), (2.0, 0.320), (4.0, 1.60), (8.0, 4.70)])
def test_sharp_heads_pass_gradients_like_b(b, gain):
    found, error = sharp_query_gain(64, b, 64, draws=4)
    assert abs(found - gain) < 0.02 * gain + 5 * error


def layer(shared, **changes):
    sizes = Deviations(embedding=1, query=0.06, key=0.06, value=0.055, output=0.055, mlp_in=128**-0.5, mlp_out=0.02)
    fields = {"width": 128, "heads": 4, "layers": 4, "mlp_width": 256, "mask": "full", "positions": "none"}
    return Architecture(**fields, shared=shared, deviations=sizes, **{"placement": "post"} | changes)


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_one_layer_for_every_depth_vs_the_module(placement):
    architecture = layer(True, placement=placement)
    found = shared_gradients(architecture, 12)
    seeds = [GradientSample(architecture, 12, seed) for seed in range(24)]
    stream = np.exp(np.mean([np.log(s.stream()) for s in seeds], axis=0))
    np.testing.assert_allclose(found.stream / found.stream[-1], stream / stream[-1], rtol=0.06)
    for name, norm in found.matrices.items():
        measured = np.exp(np.mean([np.log(s.matrices()[name][0]) for s in seeds]))
        assert norm == pytest.approx(measured, rel=0.12), name


def test_layers_of_their_own_are_another_law():
    with pytest.raises(ArgumentError, match="share one layer"):
        shared_gradients(layer(False), 12)
    with pytest.raises(ArgumentError, match="shared_gradients"):
        predict_gradients(layer(True), 12)


@pytest.mark.parametrize(
    ("placement", "power", "labels", "cosine", "relative", "private"),
    [
        ("post", 0.2, ("trainable",), 0.867, 0.58, 0.43),
        ("post", 1.0, ("rank", "vanishing"), 1.000, 0.54, 0.0017),
        ("pre", 0.2, ("trainable",), 0.440, 0.88, 0.84),
        ("pre", 1.0, ("trainable",), 0.798, 0.66, 0.53),
    ],
)
def test_phases_of_a_deep_stack(placement, power, labels, cosine, relative, private):
    """Cells of the reference's phase diagram at b = 0.1: 24 layers of width 256, GELU, 64 tokens."""
    unit = 256**-0.5
    sizes = Deviations(
        embedding=1, query=unit, key=unit, value=unit, output=unit, mlp_in=unit, mlp_out=1024**-0.5
    )  # fmt: skip
    deep = Architecture(
        width=256, heads=4, layers=24, mlp_width=1024, mask="full", positions="none", placement=placement,
        deviations=sizes,
    )  # fmt: skip
    found = gradient_phases(deep, [power], [0.1], 64)
    assert found.labels == ((labels,),)
    assert found.cosine[0, 0] == pytest.approx(cosine, abs=0.006)
    assert found.relative[0, 0] == pytest.approx(relative, abs=0.02)
    assert found.private[0, 0] == pytest.approx(private, rel=0.05)


def test_factors_of_phases_are_positive():
    with pytest.raises(ArgumentError, match="powers"):
        gradient_phases(layer(False), [0.0], [1.0], 8)
