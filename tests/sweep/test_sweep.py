"""Phase diagrams and depth planning."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.domain import Sphere
from pathlines.foundation.errors import ArgumentError, UnknownNameError
from pathlines.integrate import ensemble
from pathlines.kernels.native import native_library
from pathlines.limit.clustering.equiangular import phase_curve
from pathlines.model import SelfAttention
from pathlines.observable.analysis import crossing_time
from pathlines.store import Store
from pathlines.sweep import PlannedArchitecture, phase_diagram, plan_collapse
from pathlines.sweep import phase as phase_module


def test_phase_boundary_in_high_dimension_is_the_exact_curve():
    times = np.linspace(0, 12, 121)
    data = phase_diagram(4096, [1.0, 4.0], times, 8, n=16)
    for i, beta in enumerate((1.0, 4.0)):
        exact = phase_curve(beta, 16)
        assert crossing_time(times, data["p"].values[i], 0.5) == pytest.approx(exact, rel=0.03)


def test_interrupted_diagram_resumes_from_the_store(tmp_path, monkeypatch):
    store, times = Store(tmp_path), np.linspace(0, 3, 7)
    monkeypatch.setattr(phase_module, "BETAS_A_PART", 1)
    whole = phase_diagram(3, [0.5, 2.0], times, 4, n=6)
    phase_diagram(3, [0.5], times, 4, n=6, store=store)
    calls = []
    real = phase_module._merged_fractions
    monkeypatch.setattr(phase_module, "_merged_fractions", lambda *a: calls.append(a) or real(*a))
    resumed = phase_diagram(3, [0.5, 2.0], times, 4, n=6, store=store)
    assert len(calls) == 1
    np.testing.assert_array_equal(resumed["p"].values, whole["p"].values)


def test_crossing_times_agree_with_an_ensemble_that_looks_at_every_time():
    times, betas = np.linspace(0, 6, 25), [1.0, 5.0]
    fast = phase_diagram(3, betas, times, 16, n=10, dtype="float64", rtol=1e-7)
    law = Uniform(3, 10)
    run = ensemble(
        SelfAttention(1.0), law, runs=16, key=jax.random.key(0), times=times, over={"beta": betas}, record="p_clustered"
    )
    np.testing.assert_allclose(fast["p"].values, run["p_clustered"].mean("run").values, atol=2 / (16 * 90))


@dataclass(frozen=True)
class Uniform:
    d: int
    n: int

    def __call__(self, key):
        return Sphere(self.d).uniform(key, self.n)


def test_phase_diagram_refuses_bad_input():
    with pytest.raises(ArgumentError, match="`kind` must be one of sa, usa"):
        phase_diagram(3, [1.0], [0.0, 1.0], 2, kind="sah")
    with pytest.raises(ArgumentError, match="equally spaced"):
        phase_diagram(3, [1.0], [0.0, 1.0, 3.0], 2)
    with pytest.raises(ArgumentError, match="`samples` must be an integer"):
        phase_diagram(3, [1.0], [0.0, 1.0], 0)


def test_plan_is_confirmed_by_random_tokens():
    """Mean deficits of random tokens in large d follow the equiangular theory up to fluctuations of order d^-1/2."""
    for plan in plan_collapse(PlannedArchitecture(16, 4096, 1.0, 0.2), delta=1e-2, confirm=3):
        assert plan.measured_layers == pytest.approx(plan.layers, rel=0.05, abs=2)


def test_plan_refuses_bad_input():
    with pytest.raises(UnknownNameError, match="Did you mean"):
        plan_collapse(PlannedArchitecture(8, 8, 1.0, 0.1), "pree")
    with pytest.raises(ArgumentError, match="`step`"):
        plan_collapse(PlannedArchitecture(8, 8, 1.0, -0.1))


@pytest.mark.skipif(native_library() is None, reason="no C++ compiler here")
@pytest.mark.parametrize(("kind", "beta"), [("sa", 4.0), ("usa", 1.0)])
def test_native_trajectories_are_those_of_the_engine(kind, beta):
    """Same starts, same steps: fractions differ by rounding, or by one pair whose crossing falls on a grid time."""
    sweep = phase_module._Sweep(16, 8, 8, kind, 1e-3, 0, "float64", 1e-5)
    grid, samples = jnp.linspace(0.0, 12.0, 121), jnp.arange(8)
    portable = jax.vmap(lambda r: phase_module._sample(sweep, jnp.asarray(beta), r, grid))(samples)
    native = phase_module._native(sweep, jnp.asarray([beta]), grid)[0]
    assert float(portable[:, -1].mean()) > 0.5
    assert int((jnp.abs(native - portable) > 1e-9).sum()) <= 1
    assert float(jnp.abs(native - portable).max()) <= 1 / 28 + 1e-12
