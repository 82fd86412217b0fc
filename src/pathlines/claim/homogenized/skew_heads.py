"""Theorem 1 of Homogenized Transformers (arXiv:2604.01978) at α = O(1): skew laws of heads converge at half order.

Heads V_a = V̄ + √(H/η) u_a σU with p and 1-p have the same SDE and opposite third moments, so half the difference of
the two chains is the odd part of the weak error, without any cubature: C√(η/H) + O(η^{3/2}).
"""

from __future__ import annotations

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.homogenized.coefficients import leading, order_of
from pathlines.claim.homogenized.finite_heads import Expansion, case_of, chain_mean, equation, look_at_all, start, steps
from pathlines.claim.tolerance import absolute, at_least, relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.limit.homogenized.skewness import skewness_coefficient

_LINEAR = 1
_VANISHING = 1e-7
_READABLE = 0.1


class SkewHeads(Expansion):
    """Heads of fixed noise and of a third moment."""

    probability: of.Probability = 0.2
    noise: of.HeldNoise = 0.25
    heads: of.Heads = 1
    update: of.Update = "tangent"


def simulate(s: SkewHeads) -> Evidence:
    """[chain(p) - chain(1-p)]/2 over √(η/H), as η → 0, and its order in η for ⟨x_1,e_1⟩."""
    require(s.noise > 0, "noise", "be positive", s.noise)
    eta, cases = steps(s), [case_of(s, probability=p) for p in (s.probability, 1 - s.probability)]
    odd = np.array([chain_mean(cases[0], depth) - chain_mean(cases[1], depth) for depth in s.layers]) / 2
    value, truncated = leading(eta, odd / np.sqrt(eta / s.heads)[:, None])
    order, spread = order_of(eta, odd[:, _LINEAR], 0.5)
    undecided = {}
    if not np.all(2 * truncated <= _READABLE * np.abs(value)):
        undecided["coefficient"] = f"the limit η → 0 is not settled at layers = {list(s.layers)}: noise smaller or more"
    if not 2 * spread <= _READABLE / 2:
        undecided["order"] = "no single power of η leads in the odd part: noise smaller, other p"
    return Evidence(
        {"coefficient": value, "order": order},
        {"coefficient": truncated, "order": spread},
        curves=(Curve("odd part of ⟨x₁,e₁⟩", eta, np.abs(odd[:, _LINEAR])),),
        undecided=undecided,
    )


def predict(s: SkewHeads) -> Evidence:
    """C from the third moment of a layer, by cubature of the SDE at η → 0; order one half."""
    sde = equation(case_of(s), _VANISHING, "full")
    found = skewness_coefficient(sde, start(s.n), s.until, look_at_all)
    eta = steps(s)
    unclear = not np.all(2 * found.error <= _READABLE * np.abs(found.value))
    return Evidence(
        {"coefficient": found.value, "order": 0.5},
        {"coefficient": found.error},
        curves=(Curve("|C|√(η/H)", eta, abs(float(found.value[_LINEAR])) * np.sqrt(eta / s.heads)),),
        source="cubature of the SDE; order",
        undecided={"coefficient": "C is not resolved by the cubature: take noise or until smaller"} if unclear else {},
    )


def predict_printed(s: SkewHeads) -> Evidence:
    """O(η)."""
    return Evidence({"order": 1.0}, source="order")


_AXES = Axes("step η", "odd part of chain − SDE", x_scale="log", y_scale="log")
_CAVEAT = (
    "Our finding, at ς² ∝ H/η, so that α = O(1) at t = O(1). Whether the constant C of the theorem may depend on ς, "
    "which would exclude this regime, is not known. With a fixed law the same term is O(η²); Gaussian heads have none."
)
_WITHIN = {
    "coefficient": relative(0.005, "next order of the third difference; errors of limit and cubature", errors=1.0),
    "order": absolute(0.01, "further orders; two changes by the largest step left out", errors=2.0),
}

for _id, _number, _quick, _full in (
    ("C28d", "one head", SkewHeads(), SkewHeads(layers=(10, 12, 14, 16, 20))),
    (
        "C28d-heads",
        "four heads",
        SkewHeads(heads=4, layers=(6, 8, 10, 12)),
        SkewHeads(heads=4, layers=(6, 7, 8, 10, 12)),
    ),
):
    claim(
        f"homogenized/{_id}",
        HOMOGENIZED,
        f"α = O(1): skew laws have half order ({_number}; derived)",
        "When α is held while η → 0 and the third moment of the heads is not zero, chain and SDE differ by "
        "C√(η/H) + O(η), also for the tangent update: C is the third moment of a layer acting on E[φ(X(T))|X(t)].",
        where="derived; Theorem 1 (§2.3.2) where α does not vanish",
        models=("random",),
        quick=_quick,
        full=_full,
        within=_WITHIN,
        simulate=simulate,
        predict=predict,
        axes=_AXES,
        note=_CAVEAT,
    )

claim(
    "homogenized/ER-15",
    HOMOGENIZED,
    "Theorem 1 for skew laws at α = O(1)",
    "E φ of chain and SDE differ by O(η·max(1, α)) for every law of heads: the odd part in the skewness is first order "
    "in η at fixed α.",
    where="Theorem 1 (§2.3.2), read where α does not vanish",
    models=("random",),
    quick=SkewHeads(),
    full=SkewHeads(layers=(10, 12, 14, 16, 20)),
    within={"order": at_least("two changes by the largest step left out", slack=0.01, errors=2.0)},
    simulate=simulate,
    predict=predict_printed,
    expected="refuted",
    corrected_by="homogenized/C28d",
    axes=_AXES,
    note=_CAVEAT,
)
