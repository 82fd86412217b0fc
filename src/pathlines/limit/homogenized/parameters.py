"""The numbers that decide what random layers do, derived from the ones a user sets.

One layer is x_i <- N(x_i + (η/H) Σ_h V_h m_{A_h}(x_i)) with V_ij ~ N(0, σ_V²) and A = W W'ᵀ, W, W' of shape (d, p) with
entries N(0, σ_A²), all fresh at every layer; logits are β x_kᵀ A x_i. With Gaussian weights everything depends on
(n, d, p, b, v) only:

    ς² = σ_V² (d-1)          variance proxy          v = (η²/H) d σ_V²       diffusive time of one layer
    α  = η ς²/H              noise parameter         τ = v ℓ                 diffusive time of ℓ layers
    b  = β σ_A² √p           logit scale             β_eff = b √d            inverse temperature of the mean field

b is the standard deviation of one logit between unit tokens; at p = ∞ the logits are b times a Gaussian field and β has
no meaning of its own. |Ax| concentrates at σ_A² √(pd), so the mean-field inverse temperature β|Ax| is b√d; it equals
β d σ_A² for p = d. Homogenized Transformers, arXiv:2604.01978; v, τ and b: derived.
"""

from __future__ import annotations

import math

import msgspec

from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.foundation.papers import HOMOGENIZED

SOURCES = (HOMOGENIZED,)


def _key_dimension(value: float) -> float:
    whole = isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 1 and value == value // 1
    require(value == math.inf or whole, "qk_dim", "be a whole number ≥ 1 or inf", value)
    return float(value)


def logit_scale_of(beta: float, sigma_A: float, qk_dim: float) -> float:
    """b = β σ_A² √p, p finite: at p = ∞ it is a number of its own and must be given directly."""
    beta, sigma_A = finite_number("beta", beta, 0.0), finite_number("sigma_A", sigma_A, 0.0, open_low=True)
    p = _key_dimension(qk_dim)
    require(math.isfinite(p), "qk_dim", "be finite when `beta` is given (give `logit_scale` instead)", qk_dim)
    return beta * sigma_A**2 * math.sqrt(p)


def beta_of(logit_scale: float, sigma_A: float, qk_dim: float) -> float:
    """β = b/(σ_A² √p), the inverse of ``logit_scale_of``; 0 at p = ∞, where β tends to 0 at fixed b."""
    b, sigma_A = finite_number("logit_scale", logit_scale, 0.0), finite_number("sigma_A", sigma_A, 0.0, open_low=True)
    return b / (sigma_A**2 * math.sqrt(_key_dimension(qk_dim)))


class HomogenizedParameters(msgspec.Struct, frozen=True, kw_only=True):
    """Random Gaussian layers by their numbers; ``HomogenizedParameters.gaussian`` fills in the usual choices.

    ``step`` is η, ``heads`` H, ``qk_dim`` p (∞ allowed), ``logit_scale`` b, ``layers`` L (None when no depth is meant).
    """

    n: int
    d: int
    step: float
    heads: int
    sigma_V: float
    sigma_A: float
    qk_dim: float
    logit_scale: float
    layers: int | None = None

    def __post_init__(self) -> None:
        positive_integer("n", self.n)
        positive_integer("d", self.d, least=2)
        positive_integer("heads", self.heads)
        finite_number("step", self.step, 0.0, open_low=True)
        finite_number("sigma_V", self.sigma_V, 0.0, open_low=True)
        finite_number("sigma_A", self.sigma_A, 0.0, open_low=True)
        finite_number("logit_scale", self.logit_scale, 0.0)
        _key_dimension(self.qk_dim)
        if self.layers is not None:
            positive_integer("layers", self.layers, least=0)

    @classmethod
    def gaussian(
        cls,
        n: int,
        d: int,
        step: float,
        *,
        heads: int = 1,
        beta: float | None = None,
        logit_scale: float | None = None,
        sigma_V: float | None = None,
        sigma_A: float = 1.0,
        qk_dim: float | None = None,
        layers: int | None = None,
    ) -> HomogenizedParameters:
        """From β or from b (exactly one of them); σ_V = d^{-1/2} and p = d unless given."""
        require((beta is None) != (logit_scale is None), "beta", "be given, or else `logit_scale`", beta)
        d = positive_integer("d", d, least=2)
        p = float(d) if qk_dim is None else _key_dimension(qk_dim)
        b = logit_scale if beta is None else logit_scale_of(beta, sigma_A, p)
        return cls(
            n=n,
            d=d,
            step=step,
            heads=heads,
            sigma_V=1 / math.sqrt(d) if sigma_V is None else sigma_V,
            sigma_A=sigma_A,
            qk_dim=p,
            logit_scale=finite_number("logit_scale", b, 0.0),
            layers=layers,
        )

    @property
    def variance_proxy(self) -> float:
        """ς² = σ_V²(d-1): the largest E‖P_{x_j} V m_A(x_j)‖², reached when all tokens coincide."""
        return self.sigma_V**2 * (self.d - 1)

    @property
    def alpha(self) -> float:
        """α = η ς²/H, the strength of the common noise per unit of macroscopic time t = ηℓ."""
        return self.step * self.variance_proxy / self.heads

    @property
    def v(self) -> float:
        """v = (η²/H) d σ_V², the diffusive time one layer takes."""
        return self.step**2 / self.heads * self.d * self.sigma_V**2

    @property
    def beta(self) -> float:
        """β = b/(σ_A² √p)."""
        return beta_of(self.logit_scale, self.sigma_A, self.qk_dim)

    @property
    def beta_eff(self) -> float:
        """β_eff = b√d, which is β d σ_A² when p = d."""
        return self.logit_scale * math.sqrt(self.d)

    def tau(self, layers: float | None = None) -> float:
        """τ = v ℓ, after ``layers`` layers (default: L)."""
        return self.v * self._depth(layers)

    def time(self, layers: float | None = None) -> float:
        """t = η ℓ, the macroscopic time after ``layers`` layers (default: L)."""
        return self.step * self._depth(layers)

    def layers_for(self, tau: float) -> float:
        """ℓ = τ/v, the (fractional) number of layers that take diffusive time τ."""
        return finite_number("tau", tau, 0.0) / self.v

    def _depth(self, layers: float | None) -> float:
        depth = self.layers if layers is None else layers
        require(depth is not None, "layers", "be given, here or to the parameters", depth)
        return finite_number("layers", depth, 0.0)

    def as_dict(self) -> dict[str, float]:
        """The given and the derived numbers by name; τ and t of the whole depth when it is known."""
        given = {k: v for k, v in msgspec.structs.asdict(self).items() if v is not None}
        derived = {name: getattr(self, name) for name in ("variance_proxy", "alpha", "v", "beta", "beta_eff")}
        depth = {} if self.layers is None else {"tau": self.tau(), "time": self.time()}
        return given | derived | depth

    def lines(self) -> list[str]:
        """One line for each derived number: symbol, value, meaning."""
        p = "∞" if math.isinf(self.qk_dim) else f"{self.qk_dim:g}"
        rows = [
            ("ς²", self.variance_proxy, "variance proxy, σ_V²(d-1)"),
            ("α", self.alpha, "noise parameter, ης²/H"),
            ("v", self.v, "diffusive time of one layer, (η²/H)dσ_V²"),
            ("b", self.logit_scale, f"logit scale, βσ_A²√p with p = {p}"),
            ("β_eff", self.beta_eff, "mean-field inverse temperature, b√d"),
        ]
        if self.layers is not None:
            rows += [
                ("t", self.time(), f"macroscopic time, ηL with L = {self.layers}"),
                ("τ", self.tau(), "diffusive time, vL"),
            ]
        return [f"{symbol:<6}= {value:<12.6g} {meaning}" for symbol, value, meaning in rows]
