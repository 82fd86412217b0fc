"""Chain, SDE and ODE of finite laws: numbers of an independent program, and claims that must object or step back."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import pathlines as pl
from pathlines.claim import CLAIMS, evaluate
from pathlines.claim.homogenized import finite_heads
from pathlines.claim.homogenized.coefficients import leading, order_of
from pathlines.claim.homogenized.finite_heads import FewHeads, case_of, chain_mean, ode_value, sde_mean
from pathlines.claim.homogenized.strong_noise import StrongNoise
from pathlines.foundation.errors import ArgumentError
from references import finite_heads as two

PLAIN = FewHeads(n=4, beta=1.5, until=1.2, probability=0.5)
STRONG = StrongNoise(n=4, beta=1.5, until=1.2, probability=0.5, noise=0.5)


def local_order(coarse, fine, ratio):
    return np.log(coarse / fine) / np.log(ratio)


@pytest.mark.parametrize(
    ("p", "layers"), [k if k[1] in (8, 12, 16) else pytest.param(*k, marks=pytest.mark.slow) for k in two.DIFFERENCE]
)
def test_chain_less_sde(p, layers):
    """The printed numbers are good to one unit of 1e-6."""
    case = case_of(PLAIN, probability=p)
    gap = chain_mean(case, layers) - sde_mean(case, 1.2 / layers, "full").value
    assert 1e6 * gap == pytest.approx(two.DIFFERENCE[p, layers], abs=1.5)


@pytest.mark.parametrize(
    ("corrector", "orders"),
    [("none", (0.97, 0.93, 0.97)), ("paper", (0.97, 0.95, 0.97)), ("full", (1.96, 1.87, 1.95))],
)
def test_orders_with_infinitely_many_heads(corrector, orders):
    """L = 20 and 24; half a unit of the printed digit, and as much for two flows."""
    case = case_of(PLAIN, heads=10**12)
    gaps = [chain_mean(case, k, nodes=1) - ode_value(case, 1.2 / k, corrector) for k in (20, 24)]
    assert local_order(*gaps, 24 / 20) == pytest.approx(orders, abs=0.01)


@pytest.mark.parametrize(
    ("corrector", "orders"),
    [("none", (0.90, 0.53, 0.78)), ("paper", (0.90, 0.69, 0.77)), ("full", (1.92, 1.97, 2.36))],
)
def test_orders_with_many_heads(corrector, orders):
    """H = 1/η², L = 8 and 12; H is rounded here (44, 100), which moves the smallest differences."""
    gaps = []
    for k in (8, 12):
        case = case_of(PLAIN, heads=round((k / 1.2) ** 2))
        gaps.append(chain_mean(case, k) - ode_value(case, 1.2 / k, corrector))
    assert local_order(*gaps, 12 / 8) == pytest.approx(orders, abs=0.04)


def test_one_head_is_first_order():
    gaps = [chain_mean(case_of(PLAIN), k) - ode_value(case_of(PLAIN), 1.2 / k, "full") for k in (12, 16)]
    assert [g[2] for g in gaps] == pytest.approx([0.01322, 0.01022], abs=6e-6)


@pytest.mark.parametrize(
    ("update", "corrector", "gap", "digits"),
    [
        ("ambient", "full", 0.004234, 2e-5),
        ("ambient", "paper", -0.0408, 6e-5),
        ("ambient", "noiseless", -0.0312, 6e-5),
        ("tangent", "paper", -0.00128, 2e-5),
    ],
)
def test_strong_noise(update, corrector, gap, digits):
    """Mean overlap at η = 0.1; the cubature is good to 1e-5 here."""
    case = case_of(STRONG, update=update)
    found = chain_mean(case, 12) - sde_mean(case, 0.1, corrector).value
    assert found[0] == pytest.approx(gap, abs=digits)


@pytest.mark.parametrize(
    ("heads", "layers", "values"),
    [
        (1, (4, 6, 8, 12, 16), (-0.0339, -0.0337, -0.0340, -0.0336, -0.0335)),
        (4, (4, 6, 8, 12), (-0.0306, -0.0317, -0.0322, -0.0325)),
    ],
)
def test_odd_part_of_skew_heads(heads, layers, values):
    found = []
    for k in layers:
        ends = [chain_mean(case_of(STRONG, heads=heads, update="tangent", probability=p), k)[1] for p in (0.2, 0.8)]
        found.append((ends[0] - ends[1]) / 2 / np.sqrt(1.2 / k / heads))
    assert found == pytest.approx(values, abs=6e-5)


def test_expansions():
    eta = np.array([0.2, 0.15, 0.12, 0.1])
    y = eta[:, None] ** 2 * np.stack([3 - 2 * eta + 5 * eta**2, -1 + eta**3], axis=1)
    value, change = leading(eta, y, 2.0)
    assert value == pytest.approx([3, -1], abs=1e-10)
    assert change[0] < 1e-10 < change[1]
    assert order_of(eta, eta**1.5 * np.exp(1 - eta + 2 * eta**2), 1.5)[0] == pytest.approx(1.5, abs=1e-9)
    assert np.isnan(order_of(eta, eta - 0.13, 1.0)[0])
    assert np.isnan(order_of(eta, 0.01 * eta + eta**2, 1.0)[0])


@dataclass(frozen=True, eq=False, kw_only=True)
class Wrong(pl.limit.homogenized.FiniteLawSDE):
    """Too much drift: one per cent, or ``factor``."""

    factor: ClassVar[float] = 1.01

    def _drift(self, heads):
        return self.factor * super()._drift(heads)


@pytest.fixture
def wrong_drift(monkeypatch):
    """The SDE of the claims has a wrong drift, and what was computed before is forgotten."""
    finite_heads.sde_mean.cache_clear()
    monkeypatch.setattr(finite_heads, "FiniteLawSDE", Wrong)
    yield
    finite_heads.sde_mean.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "factor", "quantities"),
    [
        ("C25a", 1.01, ["remaining"]),
        ("C25b", 1.1, ["remaining_paper", "remaining_none"]),
        ("C28a", 1.01, ["remaining_full"]),
        ("C28b", 1.1, ["coefficient"]),
    ],
)
def test_a_wrong_drift_is_refuted(wrong_drift, monkeypatch, name, factor, quantities):
    """Chain and limit then differ at η = 0: that is no expansion that more layers would settle."""
    monkeypatch.setattr(Wrong, "factor", factor)
    found = {c.quantity: c.verdict for c in evaluate(CLAIMS[f"homogenized/{name}"]).checks}
    assert [found[q] for q in quantities] == ["refuted"] * len(quantities)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("C25a", {"layers": [3, 4, 5, 6]}),
        ("C28a", {"layers": [3, 4, 5, 6]}),
        ("C28b", {"layers": [3, 4, 5, 6]}),
        ("C28c", {"layers": [4, 5, 6, 7], "noise": 0.9}),
        ("C28d", {"noise": 0.6, "layers": [6, 7, 8, 9]}),
    ],
)
def test_inconclusive_where_steps_are_long(name, changes):
    outcome = evaluate(CLAIMS[f"homogenized/{name}"], "quick", changes)
    assert outcome.verdict == "inconclusive", [(c.quantity, c.verdict, c.measured) for c in outcome.checks]
    assert all(c.reason for c in outcome.checks)


@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [
        ("C25a", {"layers": [8, 12, 16]}, "four or more ascending"),
        ("C25a", {"probability": 1.2}, "`probability` of Claim `homogenized/C25a` must be a number ≥ 0 and ≤ 1"),
        ("C25a", {"layers": [8, 10, 12, 30]}, "`layers` must leave at most"),
        ("C28a-some", {"power": 0}, "`power` must be at least 1"),
    ],
)
def test_refused(name, changes, says):
    with pytest.raises(ArgumentError, match=says):
        evaluate(CLAIMS[f"homogenized/{name}"], "quick", changes)
