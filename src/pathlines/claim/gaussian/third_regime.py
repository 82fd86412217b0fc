"""Neither blow-up nor convergence: covariances that grow like e^{ct} under softmax attention (derived)."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.gaussian.reference_set import class_number, factor_of
from pathlines.claim.tolerance import exactly, relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import UNIFIED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.integrate.gaussian_fate import fates
from pathlines.limit.gaussian.moments import affine_field, head, softmax_covariances
from pathlines.limit.gaussian.softmax import exponential_example
from pathlines.model.gaussian.closure import SoftmaxGaussian, sigma_points

_SWAP, _SHIFT = [[0.0, 1.0], [1.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]
_RECORD = ("covariance_eigenvalues", "covariance_growth", "covariance_trace")


class ExactGrowth(Setting):
    """The example that is solved."""

    variances: Annotated[tuple[of.NonNegative, of.NonNegative], means("variances at the start", "s₁, s₂")] = (0.8, 0.6)
    until: of.Until = 4.0


def simulate_exact(s: ExactGrowth) -> Evidence:
    """Σ(t) by the flow and its class by the scale-free integrator."""
    model, cov = SoftmaxGaussian(_SWAP, _SHIFT), np.diag(s.variances)
    times = np.linspace(0, s.until, 21)
    run = flow(model, sigma_points(np.zeros(2), cov), times=times, record="covariance", method="dop853", rtol=1e-12)
    diagonal = np.diagonal(run["covariance"].values, axis1=1, axis2=2)
    (fate,) = fates(model, factor_of(cov))
    curves = tuple(Curve(f"Σ{k + 1}{k + 1}", times, diagonal[:, k]) for k in range(2))
    return Evidence({"variances": diagonal[-1], "class": class_number(fate.kind)}, curves=curves, runs=(run,))


def predict_exact(s: ExactGrowth) -> Evidence:
    """diag(s_1 e^{2 s_2 t}, s_2)."""
    times = np.linspace(0, s.until, 100)
    curves = tuple(Curve(n, times, y) for n, y in zip(("s₁e^{2s₂t}", "s₂"), exponential_example(times, s.variances).T))
    exact = exponential_example(s.until, s.variances)
    return Evidence({"variances": exact, "class": class_number("exponential")}, curves=curves)


claim(
    "gaussian/C08",
    UNIFIED,
    "exponential growth, exactly (derived)",
    "With A = [[0,0],[1,0]], V = [[0,1],[1,0]] and Σ₀ = diag(s₁,s₂), softmax attention gives Σ(t) = "
    "diag(s₁e^{2s₂t}, s₂): neither blow-up nor convergence.",
    where="derived; no statement in the paper",
    models=("gaussian-softmax",),
    quick=ExactGrowth(),
    within={
        "variances": relative(1e-8, "rtol 1e-12 of the flow over a growth by e^{2 s₂ t}"),
        "class": exactly("number of the class, 3 is exponential"),
    },
    simulate=simulate_exact,
    predict=predict_exact,
    axes=Axes("depth-time t", "variance", y_scale="log"),
)


class Growth(Setting):
    """Weights whose cloud grows exponentially."""

    A: of.QueryKey = ((0.0, 1.0, 1.0), (1.0, 1.0, 0.0), (-1.0, 2.0, -1.0))
    V: of.ValueMatrix = ((2.0, 0.0, 0.0), (0.0, 1.0, -1.0), (2.0, 1.0, 0.0))
    covariance: of.Covariance = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    times: of.Times = (1.0, 1.4)


def simulate_generic(s: Growth) -> Evidence:
    """Rate, second eigenvalue and trace by the flow."""
    model = SoftmaxGaussian(s.V, s.A)
    start = sigma_points(np.zeros(len(s.A)), s.covariance)
    times = np.union1d(np.linspace(0, s.times[-1], 31), s.times)
    run = flow(model, start, times=times, record=_RECORD, method="rodas5p", rtol=1e-10, atol=1e-12)
    at = np.searchsorted(times, s.times)
    eigenvalues = run["covariance_eigenvalues"].values
    values = {
        "growth": run["covariance_growth"].values[at],
        "second": eigenvalues[at, 1],
        "trace": run["covariance_trace"].values[at],
    }
    curves = tuple(Curve(f"λ{k + 1}", times, eigenvalues[:, k]) for k in range(eigenvalues.shape[1]))
    return Evidence(values, curves=curves, runs=(run,))


def predict_generic(s: Growth) -> Evidence:
    """The same by SciPy."""
    one, d = head(s.V, s.A), len(s.A)
    grid = np.union1d(np.linspace(0, s.times[-1], 100), s.times)
    covs = softmax_covariances([one], s.covariance, grid)
    values = np.linalg.eigvalsh(covs)[:, ::-1]
    at = np.searchsorted(grid, s.times)
    rates = [2 * np.trace(affine_field("softmax", [one], np.zeros(d), c)[1] @ c) / np.trace(c) for c in covs[at]]
    curves = tuple(Curve(f"λ{k + 1}, SciPy", grid, np.maximum(values[:, k], 1e-12)) for k in range(d))
    found = {"growth": rates, "second": values[at, 1], "trace": np.trace(covs[at], axis1=1, axis2=2)}
    return Evidence(found, curves=curves, source="SciPy")


claim(
    "gaussian/C09",
    UNIFIED,
    "exponential growth is generic for d ≥ 3 (derived)",
    "For d = 3 there are open sets of weights for which λ₁ grows like e^{ct} while λ₂ tends to a constant and λ₃ to 0: "
    "for these integer matrices c = 7.69 and λ₂ → 0.83.",
    where="derived; no statement in the paper",
    models=("gaussian-softmax",),
    quick=Growth(),
    within={
        "growth": relative(1e-5, "two solvers over a growth by 10⁵"),
        "second": relative(1e-5, "two solvers over a growth by 10⁵"),
        "trace": relative(1e-5, "two solvers over a growth by 10⁵"),
    },
    simulate=simulate_generic,
    predict=predict_generic,
    axes=Axes("depth-time t", "eigenvalues of Σ", y_scale="log"),
)
