"""Optimal plans between clouds with any masses, through POT (Python Optimal Transport).

POT was chosen over ott-jax: its network simplex gives exact plans between weighted and unequal clouds, which ott-jax
approximates by entropy, and it compiles nothing for each new shape. It is imported on first use; clouds of equally many
tokens of equal mass never need it (``distances.py``).
"""

from __future__ import annotations

import importlib
import os
import warnings
from typing import Any

import numpy as np

from pathlines.foundation.errors import PathlinesError, finite_array, finite_number, require

ITERATIONS = 10_000_000
METRICS = ("line", "arc")


def pot() -> Any:
    """The library, or one line that says how to have it."""
    for other in ("PYTORCH", "JAX", "TENSORFLOW", "CUPY"):  # which it would import, for seconds, to serve their arrays
        os.environ.setdefault(f"POT_BACKEND_DISABLE_{other}", "1")
    try:
        return importlib.import_module("ot")
    except ImportError as error:
        raise PathlinesError(
            f"Weighted and unequal clouds need POT ({error}); pip install 'pathlines[transport]'."
        ) from error


def lengths(x: np.ndarray, y: np.ndarray, metric: str = "line") -> np.ndarray:
    """Distances of all pairs: straight ones |x - y|, or those along the sphere, 2 arcsin(|x - y|/2)."""
    from scipy.spatial.distance import cdist

    require(metric in METRICS, "metric", "be 'line' or 'arc'", metric)
    chords = cdist(x, y)
    if metric == "line":
        return chords
    for name, cloud in (("one", x), ("other", y)):
        off = float(np.abs(np.linalg.norm(cloud, axis=1) - 1).max())
        require(off < 1e-6, name, "be unit vectors when arcs are measured", cloud)
    return 2 * np.arcsin(np.minimum(chords / 2, 1.0))


def plan_cost(costs: np.ndarray, masses: np.ndarray, other_masses: np.ndarray) -> float:
    """min over plans with these masses of Σ plan · costs, exactly (network simplex)."""
    value, log = pot().emd2(
        masses, other_masses * (masses.sum() / other_masses.sum()), costs, numItermax=ITERATIONS, log=True
    )
    if log["warning"] is not None:
        raise PathlinesError(f"No optimal plan was found ({log['warning']}).")
    return float(value)


def sinkhorn_divergence(
    one: Any, other: Any, eps: float, masses: Any = None, other_masses: Any = None, metric: str = "line"
) -> float:
    """S_ε = OT_ε(μ, ν) - OT_ε(μ, μ)/2 - OT_ε(ν, ν)/2 for squared distances, OT_ε with entropy relative to μ ⊗ ν.

    It is zero for equal clouds, W_2² as ε → 0 and the squared distance of the means as ε → ∞ (metric "line").
    Log-domain Sinkhorn of POT until marginals agree to 10⁻⁷, which the dual value feels at second order only; O(nm)
    for each iteration, and more of them the smaller ε.
    """
    from pathlines.observable.distances import checked_masses

    x, y = (finite_array(n, c, ("n", "d")).astype(float) for n, c in (("one", one), ("other", other)))
    require(min(len(x), len(y)) > 0, "one", "have points, as must `other`", x)
    require(x.shape[1] == y.shape[1], "other", f"have {x.shape[1]} columns", y)
    eps = finite_number("eps", eps, 0.0, open_low=True)
    a, b = checked_masses("masses", masses, len(x)), checked_masses("other_masses", other_masses, len(y))
    (x, a), (y, b) = (x[a > 0], a[a > 0]), (y[b > 0], b[b > 0])
    cross = _entropic(lengths(x, y, metric) ** 2, a, b, eps)
    return cross - sum(_with_itself(lengths(z, z, metric) ** 2, m, eps) for z, m in ((x, a), (y, b))) / 2


def _with_itself(costs: np.ndarray, a: np.ndarray, eps: float) -> float:
    """OT_ε(μ, μ): both potentials are equal, and averaging f with its update settles in some forty steps.

    Alternating updates, POT's, need e^{gap²/ε} of them when the points lie apart.
    """
    from scipy.special import logsumexp

    f = np.zeros(len(a))
    for _ in range(1000):
        new = -eps * logsumexp((f - costs) / eps + np.log(a), axis=1)
        f, old = (f + new) / 2, f
        if np.abs(f - old).max() < 1e-12 * (1 + np.abs(f).max()):
            break
    return float(2 * a @ f)


def _entropic(costs: np.ndarray, a: np.ndarray, b: np.ndarray, eps: float) -> float:
    """OT_ε from the dual potentials f = ε(log u - log a), g = ε(log v - log b): ⟨a, f⟩ + ⟨b, g⟩."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            _, log = pot().sinkhorn(a, b, costs, eps, method="sinkhorn_log", log=True, stopThr=1e-7, numItermax=100_000)
        except UserWarning:
            raise PathlinesError(
                f"Sinkhorn's iteration did not converge at ε = {eps:g}; choose a larger `eps`."
            ) from None
    return float(eps * (a @ (log["log_u"] - np.log(a)) + b @ (log["log_v"] - np.log(b))))
