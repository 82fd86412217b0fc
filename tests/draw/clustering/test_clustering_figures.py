"""The formulas inside the figures of clustering hold."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.domain import Euclidean, Sphere
from pathlines.draw.figures.clustering.coordinates import follow_leaders
from pathlines.draw.figures.clustering.layer_vs_flow import first_order_delay
from pathlines.draw.figures.clustering.long_context import layer_overlap
from pathlines.draw.orthographic import View, faded
from pathlines.foundation.errors import ArgumentError
from pathlines.integrate import flow
from pathlines.integrate.side_by_side import side_by_side
from pathlines.limit.clustering.equiangular import phase_curve
from pathlines.limit.clustering.layers import layers_to_deficit
from pathlines.limit.clustering.long_context import output_overlap
from pathlines.model import SelfAttention
from pathlines.model.clustering.rescaled import RescaledAttention
from pathlines.model.clustering.schemes import MixLN, OneOf, PeriLN, PreLN
from pathlines.observable.pairs import mean_overlap
from pathlines.sweep.general_weights import general_weights_diagram
from pathlines.weights import FixedWeights


def test_view_frame_is_orthonormal_and_keeps_the_eye_direction_in_the_middle():
    view = View(33.0, -17.0)
    np.testing.assert_allclose(view.frame @ view.frame.T, np.eye(3), atol=1e-15)
    flat, depth = view.project(view.frame[2])
    np.testing.assert_allclose([*flat, depth], [0, 0, 1], atol=1e-15)
    assert np.linalg.det(view.frame) > 0


def test_faded_goes_from_paper_to_ink():
    np.testing.assert_allclose(faded("#000000", np.array([0.0, 1.0]), 0.25)[:, 0], [0.75, 0.0])


def test_side_by_side_vs_flow():
    """Different weights in one program against one run each; 1e-6 is a hundred times the tolerance of both."""
    sphere, times = Sphere(3), [0.5, 2.0]
    starts = jnp.stack([sphere.uniform(jax.random.key(k), 5) for k in range(3)])
    models = [
        SelfAttention(1.0 + k, weights=FixedWeights(np.diag([1.0, 0.5, -0.2 * k]), query=np.eye(3))) for k in range(3)
    ]
    data = side_by_side(models, starts, times=times, record=mean_overlap, rtol=1e-8)
    for k in range(3):
        alone = flow(models[k], starts[k], times=times, record=mean_overlap, rtol=1e-8)
        np.testing.assert_allclose(data["mean_overlap"].values[k], alone["mean_overlap"].values, atol=1e-6)


def test_side_by_side_refuses_models_of_different_structure():
    starts = jnp.stack([Sphere(2).uniform(jax.random.key(k), 3) for k in range(2)])
    with pytest.raises(ArgumentError, match="differ in numbers only"):
        side_by_side([SelfAttention(1.0), SelfAttention(1.0, weights=FixedWeights(np.eye(2)))], starts, times=[1.0])
    with pytest.raises(ArgumentError, match="one start per model"):
        side_by_side([SelfAttention(1.0)], starts, times=[1.0])


def test_one_of_vs_the_scheme_itself():
    choices = (PreLN(), MixLN(1.0), PeriLN())
    assert OneOf(choices, jnp.asarray(0)).breakpoints == (1.0,)
    r, h, m, a = (jax.random.uniform(jax.random.key(k), (5, 1 if k < 3 else 4)) + 0.1 for k in range(4))
    for t in (0.5, 3.0):
        for k, scheme in enumerate(choices):
            one = OneOf(choices, jnp.asarray(k))
            np.testing.assert_array_equal(one.rates(t, r, h, m), scheme.rates(t, r, h, m))
            for got, wanted in zip(one.layer(t, 0.1, a, r, a), scheme.layer(t, 0.1, a, r, a), strict=True):
                np.testing.assert_array_equal(got, wanted)


def test_follow_leaders_vs_softmax_before_its_horizon():
    """V = I: attention is 0/1 from t = 6 on, where both equations are the same; steps are exact for leaders at rest."""
    start = Euclidean(2).cube(jax.random.key(6), 12, -3.0, 3.0)
    run = flow(RescaledAttention(np.eye(2)), start, times=[6.0, 8.0, 10.0], rtol=1e-10)
    z = run["tokens"].values
    followed = follow_leaders(np.ones(2), z[0], np.array([6.0, 8.0, 10.0]), 0.05)
    np.testing.assert_allclose(np.stack(followed), z, atol=1e-7)


def test_first_order_delay_vs_the_layer_map():
    """(t_layers - Γ)/η -> c: the remainder is O(η), so at η = 0.005 it is below one percent of c."""
    n, delta, eta = 32, 1e-3, 0.005
    for beta in (0.5, 2.0, 5.0):
        late = layers_to_deficit("post", n, beta, eta, delta).time - float(phase_curve(beta, n, delta))
        assert late / eta == pytest.approx(first_order_delay(n, beta, delta), rel=0.01)


def test_attention_layer_vs_long_context_formula():
    assert layer_overlap(50, 1.7, 0.4) == pytest.approx(float(output_overlap(50, 1.7, 0.4)), abs=1e-12)


@pytest.mark.parametrize("frozen", ["sample", "beta", "period"])
def test_general_weights_diagram_is_a_probability_that_grows(frozen):
    data = general_weights_diagram(3, [0.5, 2.0], [0.0, 4.0, 40.0], 4, value="wishart", n=4, frozen=frozen, period=20.0)
    assert data["p"].dims == ("beta", "time")
    assert np.all(data["p"].values[:, 0] == 0)
    assert np.all(data["p"].values[:, -1] > 0.2)
    assert float(data["p"].max()) <= 1


def test_general_weights_diagram_names_what_it_knows():
    with pytest.raises(ArgumentError, match="goe, product"):
        general_weights_diagram(3, [1.0], [0.0, 1.0], 2, score="iid")
