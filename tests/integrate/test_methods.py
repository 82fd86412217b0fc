"""Every method has the order it promises: on SA, on a scheme with magnitudes, on a field that depends on time."""

import subprocess
import sys

import jax
import numpy as np
import pytest
from scipy.integrate import DOP853, RK23, RK45

from pathlines.domain import Sphere
from pathlines.foundation.errors import ArgumentError, FormError, UnknownNameError
from pathlines.integrate import METHODS, flow, layers
from pathlines.model import SelfAttention
from pathlines.model.clustering.normalised import NormalisedAttention
from pathlines.model.clustering.rescaled import RescaledAttention
from pathlines.observable.pairs import mean_overlap

UNTIL = 2.0
STEPS = {1: (160, 320), 2: (80, 160), 3: (80, 160), 4: (40, 80), 5: (20, 40), 8: (6, 12)}
"""Steps by order: few enough to stay far above rounding, enough to be asymptotic."""

SPHERICAL = [name for name in METHODS if METHODS[name].spherical]
AMBIENT = [name for name in METHODS if not METHODS[name].spherical]


def start(n=8, d=3):
    return Sphere(d).sines(n)


def end(model, quantity="tokens", **how):
    """A recorded quantity at the end of a run; always the same records, so that a method compiles once."""
    options = {"times": [UNTIL], "record": "tokens", "accumulate": mean_overlap, "form": "tokens"}
    return flow(model, start(), **options, **how)[quantity].values[-1]


def reference(model, quantity="tokens"):
    return end(model, quantity, method="dop853", rtol=1e-14)


def measured_order(model, method, quantity="tokens"):
    exact = reference(model, quantity)
    steps = (80, 160) if method == "rodas5p" else STEPS[METHODS[method].order]  # 4.5, 4.7, 4.86 before, towards 5
    errors = [np.abs(end(model, quantity, method=method, step=UNTIL / k) - exact).max() for k in steps]
    assert errors[1] > 1e-14, "the finer run must be above rounding for an order to be measured"
    return np.log2(errors[0] / errors[1])


@pytest.mark.parametrize("method", list(METHODS))
def test_order_on_self_attention(method):
    order = METHODS[method].order
    assert measured_order(SelfAttention(3.0), method) == pytest.approx(order, abs=0.1 * max(1, order / 2))


@pytest.mark.parametrize("method", AMBIENT)
@pytest.mark.parametrize("scheme", ["peri", "sqrt"], ids=["with magnitudes", "time dependent"])
def test_order_on_schemes(method, scheme):
    order = METHODS[method].order
    model = NormalisedAttention(3.0, scheme)
    assert measured_order(model, method) == pytest.approx(order, abs=0.1 * max(1, order / 2))


@pytest.mark.parametrize("method", ["geodesic-euler", "heun", "rk4", "rkmk4"])
def test_order_of_accumulated_integrals(method):
    order = METHODS[method].order
    assert measured_order(SelfAttention(3.0), method, "integral_mean_overlap") == pytest.approx(order, abs=0.2)


def test_layer_map_is_first_order_and_slower():
    model = SelfAttention(3.0)
    exact = reference(model)
    errors = []
    for steps in (160, 320):
        run = layers(model, start(), depth=steps, step=UNTIL / steps, every=steps)
        errors.append(np.abs(run["tokens"].values[-1] - exact).max())
    euler = np.abs(end(model, method="euler", step=UNTIL / 320) - exact).max()
    assert np.log2(errors[0] / errors[1]) == pytest.approx(1, abs=0.1)
    assert errors[1] > 5 * euler


def test_stages_retracted_vs_end_retracted():
    """Two methods of order four that differ: neither is the other under a new name."""
    runs = [end(SelfAttention(3.0), method=name, step=0.1) for name in ("rk4", "rk4-end", "rkmk4")]
    for i in range(3):
        for j in range(i):
            assert 1e-10 < np.abs(runs[i] - runs[j]).max() < 1e-4


@pytest.mark.parametrize("method", list(METHODS))
def test_steps_end_on_the_sphere(method):
    x = end(SelfAttention(3.0), method=method, step=0.1)
    np.testing.assert_allclose(np.linalg.norm(x, axis=-1), 1.0, rtol=0, atol=4e-16)


@pytest.mark.parametrize("method", SPHERICAL)
def test_spherical_methods_refuse_other_states(method):
    for model, tokens in (
        (NormalisedAttention(1.0, "pre"), start()),
        (SelfAttention(1.0, space="euclidean"), start()),
        (RescaledAttention(np.eye(3)), start()),
    ):
        with pytest.raises(FormError, match="great circles"):
            flow(model, tokens, until=1.0, method=method, step=0.1)
    with pytest.raises(ArgumentError, match="form"):
        flow(SelfAttention(1.0), start(), until=1.0, method=method, step=0.1, form="gram-deficit")


@pytest.mark.parametrize("method", SPHERICAL)
def test_spherical_methods_are_not_handed_over(method):
    """Many tokens on the circle, all in one cluster: both the Fourier and the deficit form would be offered."""
    tokens = Sphere(2).clusters(jax.random.key(0), [[1.0, 0.0]], [130], 1e-4)
    run = flow(SelfAttention(1.0), tokens, until=2.0, method=method, step=0.5)
    assert [form.name for form in run.forms] == ["tokens"]


def test_unknown_and_stepless_methods():
    with pytest.raises(UnknownNameError, match="dop853"):
        flow(SelfAttention(1.0), start(), until=1.0, method="dop583")
    with pytest.raises(ArgumentError, match="no error estimate"):
        flow(SelfAttention(1.0), start(), until=1.0, method="heun")
    with pytest.raises(ArgumentError, match="step"):
        flow(SelfAttention(1.0), start(), until=1.0, method="heun", step=0.0)


@pytest.mark.parametrize(("name", "peer"), [("rk23", RK23), ("rk45", RK45), ("dop853", DOP853)])
def test_pairs_vs_scipy(name, peer):
    """Every digit: steps are those of SciPy's solvers."""
    method, stages = METHODS[name], len(peer.B)
    assert (method.order, method.error_order) == (peer.order, peer.error_estimator_order)
    np.testing.assert_array_equal(method.a[:, : peer.A.shape[1]], peer.A[:stages])
    np.testing.assert_array_equal(method.b, peer.B)
    np.testing.assert_array_equal(method.c, peer.C[:stages])
    expected = [peer.E5, peer.E3] if name == "dop853" else [peer.E]
    for found, wanted in zip(method.estimates, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_first_flow_does_not_wait_for_solvers_of_scipy():
    code = (
        "import sys, pathlines as pl; pl.enable_float64(); "
        "pl.flow(pl.SelfAttention(1.0), [[1.0, 0.0], [0.0, 1.0]], until=0.1); print('scipy.integrate' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
