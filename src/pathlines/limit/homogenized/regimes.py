"""Which limit a deep random transformer is in: static, ODE I, ODE II, SDE, or none of them.

With step η, noise parameter α and L layers (horizon ηL), the conditions are

    static  ηL = o(1)                          nothing moves
    ode1    αηL = o(1), η²L = o(1)             Ẋ = b(X)
    ode2    αηL = o(1), η³L = o(1)             the drift corrected at order η, no noise
    sde     αηL = O(1), η³L = o(1)             the homogenized SDE with that drift
    failure otherwise                          not covered

and static also asks for αηL = o(1), for α may grow with L. On logarithmic axes η = L^{-a}, α = L^{-c} every boundary is
a straight line. Since α = ης²/H and H ≥ 1, only α ≤ ης² can be reached: c ≥ a when ς = O(1), and going up from c = a is
adding heads, H = L^{c-a}. Homogenized Transformers, arXiv:2604.01978.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from pathlines.foundation.errors import finite_number, require
from pathlines.foundation.numbers import real_array
from pathlines.foundation.papers import HOMOGENIZED

SOURCES = (HOMOGENIZED,)
LABELS = ("static", "ode1", "ode2", "sde", "failure")
LIMITS = {
    "static": "nothing moves",
    "ode1": "the ODE of the mean field b",
    "ode2": "the ODE with the drift corrected at order η",
    "sde": "the homogenized SDE",
    "failure": "no limit is proven",
}
EXPONENT_BOUNDARIES = {"static": 1.0, "ode1": 0.5, "ode2": 1 / 3}  # the largest step of each is L^{-a}
_SAME = 1e-12  # exponents closer than this are on the line: 0.7 + 0.3 is not 1 in binary


def asymptotic_regime(a: float, c: float) -> str:
    """The label of η = L^{-a}, α = L^{-c} as L -> ∞.

    ``failure`` for a ≤ 1/3 or a+c < 1; ``sde`` on the line a+c = 1; above it ``static`` for a > 1, ``ode1`` for
    ½ < a ≤ 1, ``ode2`` for 1/3 < a ≤ ½.
    """
    a, c = finite_number("a", a), finite_number("c", c)
    if a <= 1 / 3 + _SAME or a + c < 1 - _SAME:
        return "failure"
    if a + c <= 1 + _SAME:
        return "sde"
    if a > 1 + _SAME:
        return "static"
    return "ode1" if a > 0.5 + _SAME else "ode2"


class Regime(msgspec.Struct, frozen=True):
    """A label with the four numbers that decide it, the conditions on them, and the reason in words."""

    label: str
    numbers: dict[str, float]
    conditions: dict[str, bool]
    reason: str

    @property
    def limit(self) -> str:
        """What the label means."""
        return LIMITS[self.label]

    def lines(self) -> list[str]:
        """Label, numbers, conditions and reason, for display."""
        numbers = ", ".join(f"{name} = {value:.3g}" for name, value in self.numbers.items())
        held = ", ".join(f"{name}: {'yes' if ok else 'no'}" for name, ok in self.conditions.items())
        return [f"{self.label}: {self.limit}", numbers, held, self.reason]


def _smallest_model(ok: dict[str, bool]) -> str:
    noiseless = ok["αηL small"]
    if noiseless and ok["ηL small"]:
        return "static"
    if noiseless and ok["η²L small"]:
        return "ode1"
    if noiseless and ok["η³L small"]:
        return "ode2"
    return "sde" if ok["αηL bounded"] and ok["η³L small"] else "failure"


def _reason(label: str, x: dict[str, float], epsilon: float, bound: float) -> str:
    noise = f"αηL = {x['αηL']:.3g}"
    if label == "failure":
        if x["η³L"] > epsilon:
            return f"η³L = {x['η³L']:.3g} > {epsilon:g}: the layers are too coarse for this depth."
        return f"{noise} > {bound:g}: more noise than a bounded horizon holds."
    if label == "sde":
        return f"{noise} lies between {epsilon:g} and {bound:g}: the common noise moves tokens by order one."
    quiet = f"{noise} ≤ {epsilon:g}: the noise is negligible"
    return {
        "static": f"{quiet} and so is the horizon ηL = {x['ηL']:.3g}.",
        "ode1": f"{quiet}, and η²L = {x['η²L']:.3g} ≤ {epsilon:g} makes the correction of the drift negligible.",
        "ode2": f"{quiet}; η²L = {x['η²L']:.3g} > {epsilon:g} asks for the drift corrected at order η.",
    }[label]


def regime(
    eta: Any,
    alpha: float | None = None,
    layers: float | None = None,
    epsilon: float = 0.1,
    bound: float = 10.0,
    centred: bool = False,
) -> Regime:
    """The smallest model whose conditions hold, of a random transformer or of these numbers.

    Args:
        eta: a ``RandomTransformer``, of which the step, the noise and whether its heads are centred are read; or the
            residual step η > 0. The larger, the more of the correctors is needed.
        alpha: α ≥ 0, the noise per unit of time, ης²/H. The more heads, the smaller.
        layers: L ≥ 1, the depth; t_L = ηL. The deeper, the more drift and noise add up.
        epsilon: what counts as o(1), 0.1 by default. The larger, the more counts as negligible.
        bound: what counts as O(1), 10 by default. The larger, the more counts as of order one.
        centred: Gaussian weights of mean zero.

    If centred, both ODEs stand still, so αηL = o(1) is ``static``; and at fixed
    diffusive time τ = vL the error of the SDE is O(v) whatever η³L (derived), v = αη up to the factor d/(d-1): the
    label is ``sde`` as long as αη ≤ ``epsilon``, and ``failure`` beyond, where the layer map is the better prediction.
    """
    if hasattr(eta, "parameters"):
        require(alpha is None, "alpha", "be None with a model, which has its own", alpha)
        eta, alpha, centred = eta.parameters.step, eta.parameters.noise, eta.law.centred
        require(alpha is not None, "eta", "be a model whose heads are Gaussian, or a number", alpha)
    eta, alpha = finite_number("eta", eta, 0.0, open_low=True), finite_number("alpha", alpha, 0.0)
    depth = finite_number("layers", layers, 0.0, open_low=True)
    epsilon = finite_number("epsilon", epsilon, 0.0, open_low=True)
    bound = finite_number("bound", bound, epsilon)
    x = {"ηL": eta * depth, "αηL": alpha * eta * depth, "η²L": eta**2 * depth, "η³L": eta**3 * depth}
    within = lambda value, limit: value <= limit * (1 + _SAME)  # noqa: E731  products of round numbers are not round
    ok = {f"{name} small": within(value, epsilon) for name, value in x.items()} | {
        "αηL bounded": within(x["αηL"], bound)
    }
    if centred:
        return _centred_regime(x, ok, alpha * eta, epsilon)
    label = _smallest_model(ok)
    return Regime(label, x, ok, _reason(label, x, epsilon, bound))


def _centred_regime(x: dict[str, float], ok: dict[str, bool], v: float, epsilon: float) -> Regime:
    ok = ok | {"v small": v <= epsilon}
    if ok["αηL small"]:
        reason = f"The mean is zero, so only noise could move tokens, and αηL = {x['αηL']:.3g} ≤ {epsilon:g}."
        return Regime("static", x, ok, reason)
    if ok["v small"]:
        reason = f"Centred weights: at fixed τ the error is O(v) whatever η³L, and v ≈ αη = {v:.3g} ≤ {epsilon:g}."
        return Regime("sde", x, ok, reason)
    reason = f"Centred weights, but one layer is a large step: v ≈ αη = {v:.3g} > {epsilon:g}; use the layer map."
    return Regime("failure", x, ok, reason)


def exponents(eta: ArrayLike, alpha: ArrayLike, layers: float) -> tuple[np.ndarray, np.ndarray]:
    """(a, c) with η = L^{-a}, α = L^{-c}."""
    log_layers = np.log(_several(layers))
    eta = real_array("eta", eta, 0.0, open_low=True)
    alpha = real_array("alpha", alpha, 0.0, open_low=True)
    return -np.log(eta) / log_layers, -np.log(alpha) / log_layers


def _several(layers: float) -> float:
    return finite_number("layers", layers, 1.0, open_low=True)


def step_boundaries(layers: float) -> dict[str, float]:
    """The vertical lines η = 1/L, L^{-1/2}, L^{-1/3}: the largest step of the regime each is named after."""
    depth = _several(layers)
    return {name: depth**-a for name, a in EXPONENT_BOUNDARIES.items()}


def noise_boundary(eta: ArrayLike, layers: float) -> np.ndarray:
    """α = 1/(ηL), where the SDE lives; in exponents c = 1-a."""
    return (1 / (real_array("eta", eta, 0.0, open_low=True) * _several(layers)))[()]


def largest_noise(eta: ArrayLike, variance_proxy: float = 1.0) -> np.ndarray:
    """α = ης², one head: nothing above this line can be reached; in exponents c = a for ς = 1."""
    proxy = finite_number("variance_proxy", variance_proxy, 0.0, open_low=True)
    return (real_array("eta", eta, 0.0, open_low=True) * proxy)[()]


def reachable(a: ArrayLike, c: ArrayLike) -> np.ndarray:
    """Whether c ≥ a: some whole or fractional number of heads H = L^{c-a} ≥ 1 gives these exponents (ς = O(1))."""
    return (real_array("c", c) >= real_array("a", a) - _SAME)[()]


def heads_needed(a: ArrayLike, c: ArrayLike, layers: float) -> np.ndarray:
    """H = L^{c-a}, the heads that put a depth-L model with ς = 1 at (a, c); needs c ≥ a."""
    a, c = real_array("a", a), real_array("c", c)
    require(bool(np.all(reachable(a, c))), "c", "be ≥ a (less than one head otherwise)", c)
    return (_several(layers) ** np.maximum(c - a, 0.0))[()]
