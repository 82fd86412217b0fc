"""The homogenized SDE: drift, and one noise for all tokens."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import positive_integer, require
from pathlines.foundation.module import exactly
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.traceable import traceable_number
from pathlines.model.base import MODELS, Description
from pathlines.model.capability import HasRandomLayers, Sampled
from pathlines.model.homogenized.drift import DrivenLimit, Tokens, homogenized_drift, tangent
from pathlines.model.homogenized.random_transformer import RandomTransformer
from pathlines.model.parts.splitting import split_step
from pathlines.weights.gaussian import GaussianHeads
from pathlines.weights.heads import Heads
from pathlines.weights.law import HeadLaw

METHODS = ("split", "euler")


class HomogenizedSDE(DrivenLimit, HasRandomLayers):
    """dX = D(X) dt + √(η/H) ∫ G(X, θ) W(dθ, dt) on (S^{d-1})^n, Itô and intrinsic;  G_i = P_{x_i}(B_θ - b_ρ)(x_i).

    The limit of a chain of step η with H heads, in macroscopic time t = ηℓ (Homogenized Transformers, arXiv:2604.01978,
    with √α/ς = √(η/H)). W is one cylindrical Wiener process for all tokens: common noise. A random layer is one step of
    length δ = ``time_step``: half a step of the drift's flow, the noise of M = ``noise_heads`` fresh heads with
    independent signs ε_r = ±1, half a step of the flow (``splitting``),

        x ← Φ_{δ/2} S Φ_{δ/2} x,    S y = N( y + √(ηδ/(HM)) Σ_r ε_r G(y, θ_r) ).

    The signs make odd moments of the noise vanish: without them a skew law of heads leaves a third moment of order
    δ^{3/2} per step, and the order is one half. For centred Gaussian heads D = 0, the signs change nothing, and a step
    is a layer of a ``RandomTransformer`` with M heads and diffusive time Δτ = (ηδ/H) d σ_V²; its exact fast samplers
    draw it, with an error O(Δτ).

    Errors of E[mean overlap] for two heads of equal weight, n = 4, d = 3, H = 1, η = 0.1 until t = 1.2, where chain -
    SDE is -4.2e-4 (exact expectation over heads and signs, M = 1):

        δ                0.4       0.2       0.1
        split         -5.3e-5   -1.5e-5   -4.4e-6
        euler         -2.1e-3   -1.1e-3   -5.8e-4

    You will see the chain's statistics with an error O(max(η, α)) at grid times (O(v) for centred heads, whatever H),
    O(η²) at fixed H with ``corrector="full"``. ``method="euler"``, x ← N(x + δD + …), is kept as a peer: its error is
    O(δ) from the drift alone. Good values: δ = η, M = 1..8. Cost of a step: M heads (O(nd² + n²d) each) and nine
    averages of D.

    Args:
        law: the law of heads.
        beta: β ≥ 0, multiplies the score. The larger, the fewer tokens one listens to.
        logit_scale: b, the standard deviation of a logit, instead of β. The larger, the fewer tokens one listens to.
        step: η > 0, of the chain whose limit this is; noise and correctors are of its order. The larger, the more
            noise.
        heads: H ≥ 1, of that chain. The more, the less noise.
        time_step: δ > 0, of the integrator; η by default. The larger, the cheaper and the less exact.
        noise_heads: M ≥ 1 fresh heads per step. The more, the more Gaussian the noise, and the dearer.
        corrector: how much of D is kept: "full", "paper" (as printed) or "none" (b alone).
        update: "ambient" or "tangent", that of the chain.
        method: "split", or "euler" as a peer.
        multiplicities: masses of the tokens; zero is a listener.
        tolerance: of the averages over heads that D needs, 1e-3 by default. The smaller, the more heads stand for the
            law, and the slower.
        seed: of those averages.
    """

    time_step: Float[Array, ""]
    noise_heads: int = eqx.field(static=True)
    centred: bool = eqx.field(static=True)
    method: str = eqx.field(static=True)

    def __init__(
        self,
        law: HeadLaw,
        beta: float | None = None,
        *,
        logit_scale: float | None = None,
        step: float = 0.1,
        heads: int = 1,
        time_step: float | None = None,
        noise_heads: int = 1,
        corrector: str = "full",
        update: str = "ambient",
        method: str = "split",
        multiplicities: Any = None,
        tolerance: float = 1e-3,
        seed: int = 0,
    ) -> None:
        chain = RandomTransformer(
            law=law, beta=beta, logit_scale=logit_scale, step=step, heads=heads, update=update,
            multiplicities=multiplicities,
        )  # fmt: skip
        require(method in METHODS, "method", f"be one of {', '.join(METHODS)}", method)
        self.field = homogenized_drift(chain, corrector, tolerance, seed)
        delta = step if time_step is None else time_step
        self.time_step = jnp.asarray(traceable_number("time_step", delta, low=0.0, open_low=True))
        self.noise_heads = positive_integer("noise_heads", noise_heads)
        self.centred = law.centred
        self.method = method

    @property
    def clocks(self) -> dict[str, float]:
        """Those of the chain, for a step of length δ instead of η."""
        ratio = float(self.time_step) / float(self.chain.step)
        return {name: ratio * time for name, time in self.chain.clocks.items()}

    @property
    def derived(self) -> dict[str, Any]:
        """The parameters of the chain, the step, how many heads stand for the law in D, and how well."""
        own = {"time_step": float(self.time_step), "noise_heads": self.noise_heads}
        return {**self.chain.derived, **own, **self.field.heads.summary}

    def as_tokens(self, start: Any) -> Any:
        """What the chain admits."""
        return self.chain.as_tokens(start)

    def layer_work(self, state: Any) -> float:
        """The matrices of the noise, and the average of the drift."""
        n, d = state.shape
        averaged = 0 if self.centred else self.field.heads.count
        return float(self.noise_heads * (3 * d * d + n * max(n, d)) + averaged * n * max(n, d))

    def sampler_for(self, shape: tuple[int, ...], ambient: bool, sampler: str = "auto") -> Sampled:
        """For centred Gaussian heads a sampler of the chain that is this scheme."""
        if self._is_chain:
            return self.as_chain().sampler_for(shape, ambient, sampler)
        return super().sampler_for(shape, ambient, sampler)

    @property
    def _is_chain(self) -> bool:
        return exactly(self.chain.law, GaussianHeads) and self.centred

    def as_chain(self) -> RandomTransformer:
        """x ← N(x + √(ηδ/(HM)) P Σ_r B_r): a tangent chain of M heads and step √(ηδM/H), for centred heads."""
        require(self.centred, "law", "be centred (a chain has no drift of its own)", self.chain.law)
        scale = np.sqrt(float(self.chain.step * self.time_step) * self.noise_heads / self.chain.heads)
        law, beta = self.chain.law, float(self.chain.beta)
        return RandomTransformer(
            law=law,
            beta=None if law.score_std > 0 else beta,
            logit_scale=beta * law.score_std if law.score_std > 0 else None,
            step=float(scale),
            heads=self.noise_heads,
            update="tangent",
            multiplicities=self.multiplicities,
        )

    def noise(self, x: Tokens, heads: Heads, signs: Float[Array, " m"]) -> Tokens:
        """Σ_r ε_r G(X, θ_r) for given heads and signs."""
        signed = Heads(heads.query, heads.key, signs[:, None, None] * heads.value)
        total = self.chain.attended(x, signed)
        mean = 0.0 if self.centred else jnp.sum(signs) * self.field.mean_field(x)
        return tangent(x, total - mean)

    def stepped(self, x: Tokens, heads: Heads, signs: Float[Array, " m"]) -> Tokens:
        """One step with given heads and signs."""
        delta = self.time_step
        scale = jnp.sqrt(self.chain.step * delta / (self.chain.heads * self.noise_heads))
        shaken = lambda y: scale * self.noise(y, heads, signs)  # noqa: E731
        if self.centred:
            return self.retract(x + shaken(x))
        if self.method == "euler":
            return self.retract(x + delta * self.field(x) + shaken(x))
        field = lambda y, stage: self.field(y)  # noqa: E731
        return split_step(field, lambda y: self.retract(y + shaken(y)), self.retract, x, delta)

    def random_layer(self, state: Tokens, number: Array, key: PRNGKeyArray) -> Tokens:
        """A step with fresh heads and signs."""
        for_heads, for_signs = jax.random.split(key)
        heads = self.chain.law.heads(for_heads, self.noise_heads, state.dtype)
        return self.stepped(state, heads, jax.random.rademacher(for_signs, (self.noise_heads,), state.dtype))


def _build(
    d: int = 32,
    value: of.MeanValue = 0.0,
    score: float = 0.0,
    logit_scale: float = 1.0,
    step: float = 0.1,
    heads: int = 1,
    sigma_v: float | None = None,
    qk_dim: float | None = None,
    time_step: float | None = None,
    noise_heads: int = 1,
    corrector: str = "full",
    update: str = "ambient",
    tolerance: float = 1e-3,
) -> HomogenizedSDE:
    law = GaussianHeads(d, sigma_v, None, qk_dim, value or None, score or None)
    return HomogenizedSDE(
        law, logit_scale=logit_scale, step=step, heads=heads, time_step=time_step, noise_heads=noise_heads,
        corrector=corrector, update=update, tolerance=tolerance,
    )  # fmt: skip


MODELS.register(
    "homogenized-sde",
    Description(
        _build,
        "Homogenized transformer (SDE with common noise)",
        "dX = D(X) dt + √(η/H) ∫ G(X,θ) W(dθ,dt),  Gᵢ = P_xᵢ(V m_A(xᵢ) − b_ρ(xᵢ)), one W for all tokens",
        "The statistics of a deep random transformer, drift and noise; with centred heads the noise alone makes tokens "
        "parallel.",
        "--layers 100, n = 8…64, d = 8…256, logit_scale = 0…4, step = 0.05…0.3, value = 0 (no drift) or 1",
        (HOMOGENIZED,),
    ),
)
