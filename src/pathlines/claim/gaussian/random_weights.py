"""Random weights: which fraction of clouds converges, collapses, grows or explodes.

Softmax attention on Σ_0 = I with A = KᵀQ/√d (A Unified Perspective on the Dynamics of Deep Transformers,
arXiv:2501.18322). Probabilities for V = I are exact (derived); the others are measured fractions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import absolute, standard_errors
from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.papers import UNIFIED
from pathlines.integrate.fate import Fate, fates
from pathlines.limit.gaussian.orthogonal import no_blow_up_ginibre, no_blow_up_query_key
from pathlines.model.gaussian_closure import SoftmaxGaussian

LAWS = ("iid", "symmetric", "gram", "identity")
# fractions (blow-up, exponential, converged or algebraic or undecided, to zero) by another integrator, and draws
_SEEN: dict[tuple[str, int], tuple[list[float], int]] = {
    ("iid", 2): ([0.508, 0.0, 0.437, 0.055], 1000),
    ("iid", 3): ([0.548, 0.205, 0.221, 0.028], 400),
    ("iid", 4): ([0.523, 0.283, 0.193, 0.0], 300),
    ("iid", 5): ([0.537, 0.355, 0.099, 0.008], 121),
    ("symmetric", 2): ([0.610, 0.0, 0.360, 0.030], 200),
    ("symmetric", 3): ([0.645, 0.160, 0.185, 0.010], 200),
    ("symmetric", 4): ([0.645, 0.195, 0.160, 0.0], 200),
    ("gram", 2): ([0.525, 0.0, 0.335, 0.140], 200),
    ("gram", 4): ([0.590, 0.255, 0.155, 0.0], 200),
}
_GROUPS = (("blow-up",), ("exponential",), ("converged", "algebraic", "undecided"), ("to-zero",))


def draw(law: str, d: int, count: int, seed: int, ginibre: bool = False) -> list[SoftmaxGaussian]:
    """``count`` models with V of that law, A = KᵀQ/√d (or A itself with independent entries)."""
    rng = np.random.default_rng([seed, d])
    G, Q, K = rng.standard_normal((3, count, d, d))
    score = Q if ginibre else np.swapaxes(K, 1, 2) @ Q / np.sqrt(d)
    turned = np.swapaxes(G, 1, 2)
    values = {
        "iid": G,
        "symmetric": (G + turned) / 2,
        "gram": G @ turned / d,
        "identity": np.broadcast_to(np.eye(d), G.shape),
    }
    if law not in values:
        raise ArgumentError(f"Setting `law` must be one of {', '.join(LAWS)}, but is {law!r}.")
    return [SoftmaxGaussian(v, a) for v, a in zip(values[law], score, strict=True)]


def _all_fates(law: str, d: int, s: Any, ginibre: bool = False) -> list[Fate]:
    models = draw(law, d, s.draws, s.seed, ginibre)
    return fates(models, np.broadcast_to(np.eye(d), (s.draws, d, d)), rtol=s.rtol)


def _fractions(found: list[Fate]) -> np.ndarray:
    return np.array([sum(f.kind in group for f in found) / len(found) for group in _GROUPS])


def _error(p: Any, draws: int) -> np.ndarray:
    """Binomial, with at least one draw's worth of uncertainty at 0 and 1."""
    p = np.asarray(p, float)
    return np.sqrt(np.maximum(p * (1 - p), 1 / draws) / draws)


# --- C20


def simulate_plane(s: Any) -> Evidence:
    """Fractions, and the rank of what converges."""
    found = _all_fates("iid", 2, s)
    seen = _fractions(found)
    rank = max((f.rank for f in found if f.kind == "converged"), default=0)
    curves = (Curve("this run", np.arange(4), seen, _error(seen, s.draws)),)
    return Evidence({"fractions": seen, "rank": rank}, {"fractions": _error(seen, s.draws)}, curves=curves)


def predict_plane(s: Any) -> Evidence:
    """Fractions of 1000 draws by another integrator; limits of d = 2 have rank one."""
    seen, draws = _SEEN["iid", 2]
    error = _error(seen, draws)
    curves = (Curve("1000 draws", np.arange(4), seen),)
    return Evidence({"fractions": seen, "rank": 1.0}, {"fractions": error}, curves=curves, source="measured fractions")


claim(
    "gaussian/C20",
    UNIFIED,
    "generic weights in the plane: half explode, the rest become lines",
    "For d = 2, Q, K, V with independent N(0,1) entries, A = KᵀQ/√2 and Σ₀ = I, a cloud blows up with probability "
    "0.51, converges to rank one with 0.44 and shrinks to zero with 0.055; nothing else happens.",
    models=("gaussian-softmax",),
    quick={"draws": 128, "seed": 11, "rtol": 1e-7},
    full={"draws": 1000},
    within={
        "fractions": standard_errors(4.0, "binomial, of this run and of the reference of 1000 draws; fixed seed"),
        "rank": absolute(0.0, "largest rank of a limit"),
    },
    simulate=simulate_plane,
    predict=predict_plane,
    axes=Axes("blow-up, exponential, converged, to zero", "fraction of draws"),
)


# --- C21


def simulate_identity(s: Any) -> Evidence:
    """Fraction of clouds that do not blow up, V = I."""
    seen = [np.mean([f.kind != "blow-up" for f in _all_fates("identity", d, s, g)]) for d, g in s.cases]
    errors = _error(_exact(s), s.draws)
    return Evidence(
        {"no_blow_up": seen}, {"no_blow_up": errors}, curves=(Curve("runs", range(len(seen)), seen, errors),)
    )


def _exact(s: Any) -> np.ndarray:
    return np.array([no_blow_up_ginibre(d) if ginibre else no_blow_up_query_key(d) for d, ginibre in s.cases])


def predict_identity(s: Any) -> Evidence:
    """P(A + Aᵀ ≤ 0) by de Bruijn's Pfaffian."""
    return Evidence({"no_blow_up": _exact(s)}, curves=(Curve("Pfaffian", range(len(s.cases)), _exact(s)),))


claim(
    "gaussian/C21",
    UNIFIED,
    "probability of no blow-up for V = I (derived)",
    "For V = I a cloud of any shape blows up unless A+Aᵀ ≤ 0, which for d = 2 has probability (2−√2)/4 (independent "
    "entries of A) or ½−π/8 (A = KᵀQ), and a Pfaffian in general.",
    models=("gaussian-softmax",),
    quick={"cases": [[2, True], [2, False], [3, False]], "draws": 128, "seed": 12, "rtol": 1e-6},
    full={"cases": [[2, True], [3, True], [2, False], [3, False], [4, False]], "draws": 2000},
    within={"no_blow_up": standard_errors(4.0, "binomial, at the exact probabilities; fixed seed")},
    simulate=simulate_identity,
    predict=predict_identity,
    axes=Axes("case", "P(no blow-up)"),
)


# --- T01: the table of ensembles


def simulate_table(s: Any) -> Evidence:
    """Fractions of all rows."""
    seen = np.array([_fractions(_all_fates(law, d, s)) for law, d in s.rows])
    curves = tuple(Curve(f"{law}, d = {d}", np.arange(4), row) for (law, d), row in zip(s.rows, seen, strict=True))
    return Evidence({"fractions": seen.ravel()}, {"fractions": _error(seen.ravel(), s.draws)}, curves=curves)


def predict_table(s: Any) -> Evidence:
    """The same fractions by another integrator, where they were measured."""
    if any((law, d) not in _SEEN for law, d in s.rows):
        return Evidence({"fractions": None})
    rows = [_SEEN[law, d] for law, d in s.rows]
    seen = np.concatenate([p for p, _ in rows])
    errors = np.concatenate([_error(p, n) for p, n in rows])
    return Evidence({"fractions": seen}, {"fractions": errors}, source="measured fractions")


claim(
    "gaussian/T01",
    UNIFIED,
    "fates of random clouds in higher dimension",
    "For d ≥ 3 a third regime, exponential growth, is as common as convergence: with independent Q, K, V about 0.5 "
    "blow up, 0.2–0.35 grow exponentially, the rest converges algebraically.",
    models=("gaussian-softmax",),
    quick={"rows": [["iid", 3]], "draws": 96, "seed": 13, "rtol": 1e-6},
    full={"rows": [[law, d] for law, d in _SEEN], "draws": 300},
    within={"fractions": standard_errors(4.0, "binomial, of this run and of the reference; fixed seed")},
    simulate=simulate_table,
    predict=predict_table,
    axes=Axes("blow-up, exponential, converged or undecided, to zero", "fraction of draws"),
    note="Convergence is algebraic for d ≥ 3, so that the border between converged and undecided depends on where one "
    "stops: they are counted together.",
)
