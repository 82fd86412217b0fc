"""Theorem 1 of Homogenized Transformers (arXiv:2604.01978) with drift and noise together, without Monte Carlo.

Fixed law of heads, fixed H, so that α ∝ η. E φ(X^L) of the chain is a sum over all heads, E φ(X(T)) of the SDE is a
cubature; their difference is c_1 η + c_2 η² + …. With D = b only, c_1 = κ, the change of the flow of b by the
corrector, which is computed here from ordinary differential equations alone.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.homogenized.coefficients import apart, leading, order_of
from pathlines.claim.homogenized.finite_heads import (
    OBSERVED,
    Expansion,
    case_of,
    chain_mean,
    change_of_flow,
    sde_mean,
    steps,
    unsettled,
)
from pathlines.claim.tolerance import absolute
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import means

_PRINTED = ("paper", "none")
_LINEAR = 1
_COARSE = 0.2
_READABLE = 0.1


class WeakOrder(Expansion):
    """Chain and SDE of two or three heads."""

    third: Annotated[of.Share, means("probability of the third head", "q")] = 0.0
    heads: of.Heads = 1
    update: of.Update = "ambient"


def gaps(s: WeakOrder, corrector: str) -> tuple[np.ndarray, np.ndarray]:
    """chain - SDE for each η, (depths, observed), and the errors of the cubature."""
    rows, errors, case = [], [], case_of(s)
    for eta, depth in zip(steps(s).tolist(), s.layers, strict=True):
        sde = sde_mean(case, eta, corrector)
        rows.append(chain_mean(case, depth) - sde.value)
        errors.append(sde.error)
    return np.array(rows), np.array(errors)


def remaining(s: WeakOrder, corrector: str) -> tuple[np.ndarray, np.ndarray]:
    """c_1/κ of the drift b: the share of its first-order error that is left, and the error of that number."""
    eta, (gap, error), whole = steps(s), gaps(s, corrector), change_of_flow(case_of(s), "none")
    value, truncated = leading(eta, gap, 1.0)
    return value / whole, (truncated + np.sum(error / eta[:, None], axis=0)) / np.abs(whole)


def _advice(s: WeakOrder, error: np.ndarray) -> str | None:
    return None if 2 * np.max(error) <= _READABLE else unsettled(s)


def _curves(s: WeakOrder, correctors: tuple[str, ...]) -> tuple[Curve, ...]:
    eta = steps(s)
    return tuple(
        Curve(f"{name}, corrector {c}", eta, np.abs(gaps(s, c)[0][:, k]), panel=name)
        for c in correctors
        for k, name in enumerate(OBSERVED)
    )


def simulate(s: WeakOrder) -> Evidence:
    """What is left at first order with the boxed drift, and the order of chain - SDE for ⟨x_1,e_1⟩."""
    share, error = remaining(s, "full")
    eta = steps(s)
    gap, rounding = gaps(s, "full")
    order, spread = order_of(eta, gap[:, _LINEAR], 2.0)
    undecided = {}
    advice = _advice(s, error)
    if advice and np.all(np.abs(share) <= 4 * error + 0.01):
        undecided["remaining"] = advice
    if eta.max() >= _COARSE:
        undecided["order"] = f"orders are not settled at η = {eta.max():.3g}: take layers above until/{_COARSE:g}"
    elif not 2 * spread <= _READABLE or np.any(np.abs(gap[:, _LINEAR]) < 30 * rounding[:, _LINEAR]):
        undecided["order"] = "no single power of η leads in chain − SDE: change the law or take more layers"
    return Evidence(
        {"remaining": share, "order": order},
        {"remaining": error, "order": spread},
        curves=_curves(s, ("full",)),
        undecided=undecided,
    )


def predict(s: WeakOrder) -> Evidence:
    """Nothing is left at first order; the order is two."""
    eta = steps(s)
    guides = tuple(Curve("∝ η²", eta, _guide(s, "full", k, 2), panel=n) for k, n in enumerate(OBSERVED))
    return Evidence({"remaining": 0.0, "order": 2.0}, curves=guides, source="order")


def _guide(s: WeakOrder, corrector: str, k: int, power: int) -> np.ndarray:
    eta = steps(s)
    return np.abs(gaps(s, corrector)[0][-1, k]) * (eta / eta[-1]) ** power


def simulate_less(s: WeakOrder) -> Evidence:
    """What is left at first order with less of the drift, as printed and b alone."""
    shares, errors = zip(*(remaining(s, c) for c in _PRINTED), strict=True)
    names = [f"remaining_{c}" for c in _PRINTED]
    settled = [apart(steps(s), gaps(s, c)[0]) for c in _PRINTED]
    advice = {name: None if far else _advice(s, e) for name, e, far in zip(names, errors, settled, strict=True)}
    return Evidence(
        dict(zip(names, shares, strict=True)),
        dict(zip(names, errors, strict=True)),
        curves=_curves(s, _PRINTED),
        undecided={name: text for name, text in advice.items() if text},
    )


def predict_less(s: WeakOrder) -> Evidence:
    """The share of κ that the missing terms make, from the flows of the two drifts."""
    whole = change_of_flow(case_of(s), "none")
    shares = {f"remaining_{c}": change_of_flow(case_of(s), c) / whole for c in _PRINTED}
    guides = tuple(Curve("∝ η", steps(s), _guide(s, "none", k, 1), panel=n) for k, n in enumerate(OBSERVED))
    return Evidence(shares, curves=guides, source="ordinary differential equations")


def predict_printed(s: WeakOrder) -> Evidence:
    """Nothing left at first order, as printed."""
    return Evidence({"remaining_paper": 0.0}, source="order")


_AXES = Axes("step η", "|chain − SDE|", x_scale="log", y_scale="log")
_SHARE = absolute(0.01, "of the uncorrected first-order error; two truncation errors of the expansion", errors=2.0)
_ORDER = absolute(0.015, "further orders of the error; two changes by the largest step left out", errors=2.0)
_CAVEAT = (
    "Our finding. Expectations over all heads and cubature of the SDE, no sampling; fixed law and heads, so α ∝ η. "
    "Whether the constant C of the theorem may depend on ς is not known; here ς is fixed. Unknown: a closed form of "
    "the coefficient of η²; times beyond 1.2, H > 2 and n > 5 are not measured."
)

_THREE = WeakOrder(probability=0.3, third=0.4, n=5, layers=(7, 8, 9, 10))

for _id, _law, _quick, _layers in (
    ("C25a", "two heads of equal chance", WeakOrder(), (10, 12, 14, 16, 20)),
    ("C25a-skew", "two heads, skew law", WeakOrder(probability=0.2), (10, 12, 14, 16, 20)),
    ("C25a-heads", "two heads per layer", WeakOrder(heads=2, layers=(7, 8, 10, 12)), (7, 8, 9, 10, 12)),
    ("C25a-three", "three heads, two Brownian motions", _THREE, (7, 8, 9, 10, 12)),
):
    claim(
        f"homogenized/{_id}",
        HOMOGENIZED,
        f"Theorem 1 with the boxed drift is second order ({_law}; derived)",
        "With the drift D = b − (η/2)∇_b b − η⟨x,b_ρ⟩b − (η/H)E[⟨x,ξ⟩Pξ] and the common noise, E φ of the chain at "
        "t = ηL and of the SDE differ by O(η²) when α ∝ η: nothing is left at first order, for the mean overlap, "
        "⟨x₁,e₁⟩ and ⟨x₁,e₁⟩⟨x₂,e₂⟩.",
        where="Theorem 1 (§2.3.2) with the corrected drift",
        models=("random",),
        quick=_quick,
        full=msgspec.structs.replace(_quick, layers=_layers),
        within={"remaining": _SHARE, "order": _ORDER},
        simulate=simulate,
        predict=predict,
        axes=_AXES,
        note=_CAVEAT,
    )

_LESS = {"remaining_paper": _SHARE, "remaining_none": _SHARE}

claim(
    "homogenized/C25b",
    HOMOGENIZED,
    "Theorem 1 with less of the drift is first order (derived)",
    "With the printed drift b − (η/2)∇_b b, and with b alone, chain and SDE differ by κη + O(η²), κ the change of the "
    "noiseless flow by the terms of the boxed drift that are left out; for the ambient update both are first order.",
    where="Theorem 1 (§2.3.2) with the printed drift and without corrector",
    models=("random",),
    quick=WeakOrder(),
    full=WeakOrder(layers=(10, 12, 14, 16, 20)),
    within=_LESS,
    simulate=simulate_less,
    predict=predict_less,
    axes=_AXES,
    note=_CAVEAT + " The numbers are shares of κ of the drift b alone.",
)

claim(
    "homogenized/ER-12",
    HOMOGENIZED,
    "improved weak rate with the printed drift, at grid times",
    "With the drift b − (η/2)∇_b b chain and SDE differ by O(η·max(η, α)) at t = ηL: nothing is left at first order "
    "in η when α ∝ η.",
    where="§2.3.2, improved rate after Theorem 1, with the printed drift",
    models=("random",),
    quick=WeakOrder(),
    full=WeakOrder(layers=(10, 12, 14, 16, 20)),
    within={"remaining_paper": _SHARE},
    simulate=simulate_less,
    predict=predict_printed,
    expected="refuted",
    corrected_by="homogenized/C25a",
    axes=_AXES,
    note=_CAVEAT + " The printed drift is first order for the ambient chain of the paper, as b alone is, for which "
    "O(η) is printed; it is right for the tangent update, which the setting `update` shows.",
)
