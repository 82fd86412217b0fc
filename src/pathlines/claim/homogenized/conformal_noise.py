"""β = 0: the flow of the diffusion is a random conformal map, which keeps the cross-ratios of any four tokens.

A layer N(x+ζ) divides u_ij = 1 - ⟨x_i,x_j⟩ by r_i r_j, r = |x+ζ|, as a conformal map does, and multiplies it by
1 - (r_i-r_j)²/(2u_ij) ≈ 1 - ⟨e_ij,ζ⟩²/(1+|ζ|²), e_ij the direction of x_i-x_j. With ζ ~ N(0, vm/d), m = |x̄|², these
add up like a random walk. What of log u_ij is no sum a_i+a_j (the logarithms of all cross-ratios) has n(n-3)/2
dimensions, and on a simplex, where ⟨e_ij,e_ik⟩ = ½, variance (vm/d)² in each: √Σ(vm/d)² ≈ (η/d)√∫m²dτ in all
(arXiv:2604.01978 has the chain; conformal property, rate and constant derived).
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error, root_and_error
from pathlines.claim.slopes import log_slope, several
from pathlines.claim.tolerance import at_least, standard_errors
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting
from pathlines.integrate import chain
from pathlines.limit.homogenized.logistic import logistic_mass
from pathlines.model.homogenized.random_transformer import RandomTransformer

ERRORS = 5.0
RECORDS = 5
"""Records over the shortest run, at least: for an integral over time."""


@cache
def _law(d: int, n: int) -> Any:
    return partial(Sphere(d).uniform, n=n)


def _cadence(depths: list[int]) -> int:
    """The largest number of layers that divides all depths ``RECORDS`` times or more, or one."""
    common = int(np.gcd.reduce(depths))
    return max((k for k in range(1, common // RECORDS + 1) if common % k == 0), default=1)


def cross_ratio_change(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Mean square, over the n(n-3)/2 dimensions of log cross-ratios, of the change between overlaps (…, n, n)."""
    n = before.shape[-1]
    same = np.eye(n, dtype=bool)
    change = np.log(np.where(same, 1.0, 1 - after)) - np.log(np.where(same, 1.0, 1 - before))
    rows = change.sum(axis=-1)
    own = (rows - rows.sum(axis=-1, keepdims=True) / (2 * (n - 1))) / (n - 2)
    rest = np.where(same, 0.0, change - own[..., :, None] - own[..., None, :])
    return np.sum(rest**2, axis=(-1, -2)) / (n * (n - 3))


def _walk(mass: np.ndarray, v: float, every: int) -> np.ndarray:
    """Σ_ℓ (vm/(1+vm))² over the layers, from m at every so many of them (trapezia, less half of the last layer)."""
    squares = (v * mass / (1 + v * mass)) ** 2
    return every * np.trapezoid(squares, axis=1) - (squares[:, -1] - squares[:, 0]) / 2


class ConformalNoise(Setting):
    """Chains of several steps to one time."""

    n: of.Tokens = 50
    d: of.Dimension = 128
    tau: of.Tau = 2.0
    steps: of.Steps = (0.2, 0.1)
    runs: of.Runs = 100
    seed: of.Seed = 13


def simulate(s: ConformalNoise) -> Evidence:
    """Change of the cross-ratios at τ over that of its random walk for each η, and how far the tokens moved."""
    several("steps", s.steps)
    require(s.n >= 4, "n", "be at least 4", s.n)
    depths = [round(s.tau / eta**2) for eta in s.steps]
    every = _cadence(depths)
    ratios, changes, moved, runs = [], [], [], []
    for eta, depth in zip(s.steps, depths, strict=True):
        net = RandomTransformer(s.d, step=eta, beta=0.0)
        options: dict[str, Any] = {"depth": max(depths), "every": every, "key": jax.random.key(s.seed), "runs": s.runs}
        run = chain(net, _law(s.d, s.n), record="overlaps", **options)
        overlaps = run["overlaps"].values[:, : depth // every + 1]
        change, mass = cross_ratio_change(overlaps[:, 0], overlaps[:, -1]), overlaps.mean(axis=(-1, -2))
        ratios.append(mean_and_error(change * s.d**2 / _walk(mass, eta**2, every)))
        changes.append(root_and_error(*(float(x) for x in mean_and_error(change))))
        moved.append(s.n / (s.n - 1) * float(np.mean(mass[:, -1] - mass[:, 0])))
        runs.append(run)
    square, spread = np.array(ratios).T
    constant, errors = np.array([root_and_error(float(q), float(e)) for q, e in ratios]).T
    bend, off = log_slope(s.steps, square, spread)
    return Evidence(
        {"constant": constant, "order": 1 + bend / 2, "moved": moved},
        {"constant": errors, "order": off / 2},
        curves=(Curve("chain", s.steps, *np.array(changes).T),),
        runs=tuple(runs),
    )


def predict(s: ConformalNoise) -> Evidence:
    """That of the random walk, first order in η, while the mean overlap has grown as the logistic law says."""
    eta, tau = np.asarray(s.steps), np.linspace(0, s.tau, 200)
    mass = np.array([float(logistic_mass(t, 1 / s.n)) for t in tau])
    growth = (1 - 2 / s.d) * (mass[-1] - 1 / s.n)
    v = max(s.steps) ** 2
    return Evidence(
        {"constant": np.ones(len(eta)), "order": 1.0, "moved": growth / 2},
        {"constant": (1 / s.d + eta**2 / 4) / ERRORS, "order": v / 4 / ERRORS},
        curves=(Curve("(η/d)√∫m²dτ", eta, eta / s.d * np.sqrt(np.trapezoid(mass**2, tau))),),
        source="random walk of the cross-ratios",
    )


claim(
    "homogenized/C10",
    HOMOGENIZED,
    "conformal invariance at β = 0 (derived)",
    "At β = 0 all tokens receive the same Gaussian vector and the limiting flow is a random conformal map: "
    "cross-ratios u_ij u_kl/(u_ik u_jl) are conserved, by the chain up to a random walk of size (η/d)√∫|x̄|⁴dτ in each "
    "dimension of their logarithms, while overlaps grow.",
    where="derived; on the Gaussian case of §2.3.3 at β = 0",
    models=("random",),
    quick=ConformalNoise(),
    full=ConformalNoise(steps=(0.2, 0.1, 0.05), runs=240),
    within={
        "constant": standard_errors(
            ERRORS, "standard errors over runs, 1/d for tokens that are no simplex, and v/4 for higher powers of ζ"
        ),
        "order": standard_errors(ERRORS, "standard errors over runs, and v/4 for higher powers of ζ"),
        "moved": at_least("half of what the logistic law in τ gives, slower by 2/d"),
    },
    simulate=simulate,
    predict=predict,
    axes=Axes("step η", "change of log cross-ratios at τ", x_scale="log", y_scale="log"),
)
