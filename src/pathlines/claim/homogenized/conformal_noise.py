"""β = 0: the flow of the diffusion is a random conformal map, which keeps the cross-ratios of any four tokens.

A layer N(x+ζ) differs from the conformal map of the same noise by -½⟨x,ζ⟩Pζ, which has mean zero: over a fixed time τ
these add up like a random walk, to O(η) (arXiv:2604.01978 has the chain; conformal property and rate derived).
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.homogenized.rates import log_slope
from pathlines.claim.tolerance import at_least, at_most, standard_errors
from pathlines.domain import Sphere
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.integrate import chain
from pathlines.limit.homogenized.logistic import logistic_mass
from pathlines.model import RandomTransformer

ERRORS = 5.0


@cache
def _law(d: int, n: int) -> Any:
    return partial(Sphere(d).uniform, n=n)


def simulate(s: Any) -> Evidence:
    """Mean relative change of the cross-ratios at τ for each η, and how far the tokens moved meanwhile."""
    depths = [round(s.tau / eta**2) for eta in s.steps]
    every = int(np.gcd.reduce(depths))
    changes, errors, moved, runs = [], [], [], []
    for eta, depth in zip(s.steps, depths, strict=True):
        net = RandomTransformer(s.d, step=eta, beta=0.0)
        options = {"depth": max(depths), "every": every, "key": jax.random.key(s.seed), "runs": s.runs}
        run = chain(net, _law(s.d, s.n), record=("cross_ratios", "mean_overlap"), **options)
        ratios = run["cross_ratios"].values[:, [0, depth // every]]
        each = np.abs(ratios[:, 1] / ratios[:, 0] - 1).mean(axis=-1)
        mean, error = mean_and_error(each)
        changes.append(float(mean))
        errors.append(float(error))
        overlap = run["mean_overlap"].values
        moved.append(float(np.mean(overlap[:, depth // every] - overlap[:, 0])))
        runs.append(run)
    order, spread = log_slope(s.steps, changes, errors)
    return Evidence(
        {"change": changes, "order": order, "moved": moved},
        {"change": errors, "order": spread},
        curves=(Curve("chain", s.steps, changes, errors),),
        runs=tuple(runs),
    )


def predict(s: Any) -> Evidence:
    """First order in η, below η√τ/(2d), while the mean overlap itself has grown as the logistic law says."""
    eta = np.asarray(s.steps)
    bound = eta * np.sqrt(s.tau) / (2 * s.d)
    growth = (1 - 2 / s.d) * (float(logistic_mass(s.tau, 1 / s.n)) - 1 / s.n)
    return Evidence(
        {"change": bound, "order": 1.0, "moved": growth / 2},
        {"order": max(s.steps) / 2 / ERRORS},
        curves=(Curve("η√τ/(2d)", eta, bound),),
        source="order; bound",
    )


claim(
    "homogenized/C10",
    HOMOGENIZED,
    "conformal invariance at β = 0 (derived)",
    "At β = 0 all tokens receive the same Gaussian vector and the limiting flow is a random conformal map: "
    "cross-ratios u_ij u_kl/(u_ik u_jl) are conserved, by the chain up to an error of order η, while overlaps grow.",
    models=("random",),
    quick={
        "n": 50,
        "d": 128,
        "tau": 2.0,
        "steps": [0.2, 0.1],
        "runs": 200,
        "seed": 13,
    },
    full={"steps": [0.2, 0.1, 0.05], "runs": 600},
    within={
        "change": at_most("√(τ/η²) steps of size ½⟨x,ζ⟩|Pζ| ≤ η²/(2d) along a pair; 1e-3 at η = 0.2, d = 128"),
        "order": standard_errors(
            ERRORS, "standard error of the slope, and half the largest η for the next order (a third seen)"
        ),
        "moved": at_least("half of what the logistic law in τ gives, slower by 2/d"),
    },
    simulate=simulate,
    predict=predict,
    blind={"order": "the next order bends the slope by η/3; η = 0.02 would take 100 times the layers"},
    axes=Axes("step η", "mean relative change of a cross-ratio at τ", x_scale="log", y_scale="log"),
)
