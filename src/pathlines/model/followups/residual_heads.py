"""Deep residual chains of random attention heads, in the scaling 1/(LH), and their training with AdamW."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.attention import SoftmaxAttention
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import ArgumentError, PathlinesError, finite_array, finite_number, positive_integer
from pathlines.foundation.papers import Paper
from pathlines.foundation.papers.followups import ADAMW
from pathlines.foundation.setting import means
from pathlines.foundation.traceable import is_traced
from pathlines.model.base import MODELS, Description
from pathlines.model.capability import HasRandomLayers

CONVENTION = (
    "a layer adds 1/(LH) times the sum of H softmax heads (B, V) without mask, output matrix or normalisation; AdamW "
    "sees LH times the gradient; the paper's exact form was not available."
)


class Trained(NamedTuple):
    """Losses (steps + 1,), the tokens (n, d) after the last layer of the trained chain, and its weights."""

    losses: Array
    tokens: Array
    weights: Array


class ResidualHeads(HasRandomLayers):
    """X_{l+1} = X_l + (T/LH) Σ_h Att_{l,h}(X_l),  Att(X)_i = Σ_j softmax_j(x_iᵀ B x_j) V x_j, a new (B, V) each.

    Uniform Scaling Limits in AdamW-Trained Transformers, arXiv:2605.11059: as depth L and heads H grow, tokens follow
    dX/ds = E Att(X), gradients its adjoint, at initialisation and after every step of AdamW that sees LH times the
    gradient; the error is at most of order 1/L + L^{-1/3}H^{-1/2}, whatever the number of tokens. B = B̄ + σ_B G and
    V = V̄ + σ_V G' with standard Gaussian entries. The form is our convention [assumed]. ``pl.chain`` runs fresh
    chains; ``backward`` has hidden states and gradients, ``train`` the training.

    You will see the same path at every L and H, with a scatter of order (LH)^{-1/2} [derived], and losses that fall
    alike. Good values: L = 8..128, H = 1..64, n = 4..100, d = 2..5. Cost O(LH(n²d + nd²)), three times that backwards.

    Args:
        mean_score: B̄, a d × d matrix.
        mean_value: V̄, a d × d matrix.
        depth: L ≥ 1. The larger, the nearer to the limit.
        heads: H ≥ 1 per layer. The more, the nearer to the limit.
        sigma_b: σ_B ≥ 0, of the entries of B. The larger, the more tokens listen to single ones.
        sigma_v: σ_V ≥ 0, of the entries of V. The larger, the more a chain scatters.
        until: T > 0, the depth-time of all layers. The larger, the further tokens go.
    """

    papers: ClassVar[tuple[Paper, ...]] = (ADAMW,)

    mean_score: Float[Array, "d d"]
    mean_value: Float[Array, "d d"]
    sigma_b: Float[Array, ""]
    sigma_v: Float[Array, ""]
    until: Float[Array, ""]
    depth: int = eqx.field(static=True)
    heads: int = eqx.field(static=True)

    def __init__(
        self,
        mean_score: Any,
        mean_value: Any,
        depth: int = 32,
        heads: int = 4,
        sigma_b: float = 0.5,
        sigma_v: float = 0.5,
        until: float = 1.0,
    ) -> None:
        b = finite_array("mean_score", mean_score, ("d", "d")).astype(float)
        positive_integer("d", len(b))
        self.mean_score = jnp.asarray(b)
        self.mean_value = jnp.asarray(finite_array("mean_value", mean_value, (len(b), len(b))).astype(float))
        self.depth, self.heads = positive_integer("depth", depth), positive_integer("heads", heads)
        self.sigma_b = jnp.asarray(finite_number("sigma_b", sigma_b, 0.0))
        self.sigma_v = jnp.asarray(finite_number("sigma_v", sigma_v, 0.0))
        self.until = jnp.asarray(finite_number("until", until, 0.0, open_low=True))

    @property
    def on_sphere(self) -> bool:
        """Tokens live in R^d."""
        return False

    @property
    def clocks(self) -> dict[str, float]:
        """T/L."""
        return {"t": float(self.until) / self.depth}

    def check(self, tokens: Any) -> None:
        """Finite rows of the width of B."""
        size = tuple(tokens.shape) if is_traced(tokens) else finite_array("tokens", tokens).shape
        d = len(self.mean_score)
        if len(size) != 2 or not size[0] or size[1] != d:
            raise ArgumentError(f"Argument `tokens` must have shape (n, {d}), but has shape {size}.")

    def initial(self, tokens: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The tokens."""
        return tokens

    def tokens(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n d"]:
        """The state."""
        return state

    def drawn(self, key: PRNGKeyArray, *shape: int) -> Float[Array, "*s 2 d d"]:
        """Independent (B, V)."""
        d = len(self.mean_score)
        noise = jax.random.normal(key, (*shape, 2, d, d), self.mean_score.dtype)
        scale = jnp.stack([self.sigma_b, self.sigma_v])[:, None, None]
        mean = jnp.stack([self.mean_score, self.mean_value])
        return jnp.broadcast_to(mean, noise.shape) + jnp.broadcast_to(scale, noise.shape) * noise

    def apply(self, x: Float[Array, "n d"], heads: Float[Array, "h 2 d d"]) -> Float[Array, "n d"]:
        """One layer with the given heads."""
        scores = jnp.einsum("ip,hpq,jq->hij", x, heads[:, 0], x)
        weights, _ = SoftmaxAttention().normalise(scores, jnp.full(len(x), 1 / len(x), x.dtype))
        moved = jnp.einsum("hij,jp,hqp->iq", weights, x, heads[:, 1])
        return x + self.until / (self.depth * self.heads) * moved

    def random_layer(self, state: Float[Array, "n d"], number: Array, key: PRNGKeyArray) -> Float[Array, "n d"]:
        """One layer with fresh heads."""
        return self.apply(state, self.drawn(key, self.heads))

    def weights(self, key: PRNGKeyArray) -> Float[Array, "L H 2 d d"]:
        """(B, V) of all layers and heads."""
        return self.drawn(key, self.depth, self.heads)

    def hidden(self, weights: Float[Array, "L H 2 d d"], tokens: Any) -> Float[Array, "L1 n d"]:
        """X_0, …, X_L."""
        x = jnp.asarray(tokens, weights.dtype)
        last, before = jax.lax.scan(lambda x, heads: (self.apply(x, heads), x), x, weights)
        return jnp.concatenate([before, last[None]])

    def backward(self, weights: Any, tokens: Any, target: Any) -> tuple[Array, Array]:
        """(X_l, p_l) for l = 0..L, p_l the gradient of ½|mean X_L - target|² in X_l.

        Args:
            weights: (L, H, 2, d, d), as ``weights(key)`` draws them.
            tokens: X_0, of shape (n, d).
            target: where the mean of the last tokens should be, of shape (d,).
        """
        theta, x, goal = self._checked(weights, tokens, target)
        path = self.hidden(theta, x)
        slope = jax.grad(lambda last: _loss(last, goal))(path[-1])

        def one(p: Array, layer: tuple[Array, Array]) -> tuple[Array, Array]:
            x, heads = layer
            (before,) = jax.vjp(lambda x: self.apply(x, heads), x)[1](p)
            return before, before

        _, slopes = jax.lax.scan(one, slope, (path[:-1], theta), reverse=True)
        return path, jnp.concatenate([slopes, slope[None]])

    def train(
        self, tokens: Any, target: Any, weights: Any, steps: int = 20, rate: float = 0.1, b1: float = 0.9,
        b2: float = 0.99, eps: float = 1e-3, decay: float = 0.01,
    ) -> Trained:  # fmt: skip
        """Train the mean of the last tokens towards a target with optax's AdamW on LH times the gradient.

        Args:
            tokens: X_0, of shape (n, d).
            target: of shape (d,).
            weights: (L, H, 2, d, d) at the start, as ``weights(key)`` draws them.
            steps: of AdamW. The more, the smaller the loss.
            rate: η. The larger, the faster and the rougher.
            b1: memory of the gradient, below 1. The larger, the smoother.
            b2: memory of its square, below 1. The larger, the smoother.
            eps: ε beside the root of that. The larger, the nearer to plain descent.
            decay: w of the weights. The larger, the smaller they stay.
        """
        theta, x, goal = self._checked(weights, tokens, target)
        optax = _optax()
        rule = optax.adamw(
            finite_number("rate", rate, 0.0), finite_number("b1", b1, 0.0), finite_number("b2", b2, 0.0),
            finite_number("eps", eps, 0.0, open_low=True), weight_decay=finite_number("decay", decay, 0.0),
        )  # fmt: skip
        return self._trained(rule, positive_integer("steps", steps), theta, x, goal)

    def _trained(self, rule: Any, steps: int, theta: Array, x: Array, goal: Array) -> Trained:
        optax, scale = _optax(), self.depth * self.heads
        loss = lambda theta: _loss(self.hidden(theta, x)[-1], goal)  # noqa: E731

        def one(carry: tuple[Any, Any], _: None) -> tuple[tuple[Any, Any], Array]:
            now, memory = carry
            value, slope = jax.value_and_grad(loss)(now)
            change, memory = rule.update(scale * slope, memory, now)
            return (optax.apply_updates(now, change), memory), value

        with jax.numpy_dtype_promotion("standard"):  # optax mixes counts and numbers
            (last, _), losses = jax.lax.scan(one, (theta, rule.init(theta)), length=steps)
        return Trained(jnp.append(losses, loss(last)), self.hidden(last, x)[-1], last)

    def _checked(self, weights: Any, tokens: Any, target: Any) -> tuple[Array, Array, Array]:
        d = len(self.mean_score)
        shape = (self.depth, self.heads, 2, d, d)
        theta = weights if is_traced(weights) else finite_array("weights", weights, shape)
        self.check(tokens)
        return (
            jnp.asarray(theta, float),
            jnp.asarray(tokens, float),
            jnp.asarray(finite_array("target", target, (d,)), float),
        )


def _loss(last: Array, target: Array) -> Array:
    return 0.5 * jnp.sum((jnp.mean(last, axis=0) - target) ** 2)


def _optax() -> Any:
    try:
        import optax
    except ImportError:
        raise PathlinesError("Training needs optax: pip install 'pathlines[transport]'.") from None
    return optax


def centred(
    d: of.Dimension = 3,
    depth: Annotated[int, means("layers", "L")] = 32,
    heads: of.Heads = 4,
    sigma_b: Annotated[of.NonNegative, means("standard deviation of the entries of B", "σ_B")] = 0.5,
    sigma_v: Annotated[of.NonNegative, means("standard deviation of the entries of V", "σ_V")] = 0.5,
    value: Annotated[float, means("mean of the values, V̄ = v I", "v")] = 0.3,
) -> ResidualHeads:
    """Scores of mean zero, values of mean v."""
    return ResidualHeads(np.zeros((d, d)), value * np.eye(d), depth, heads, sigma_b, sigma_v)


MODELS.register(
    "residual-heads",
    Description(
        centred,
        "Deep residual chain of random heads",
        "X ← X + (LH)⁻¹ Σₕ Attₕ(X),  Att(X)ᵢ = Σⱼ softmaxⱼ(xᵢᵀBxⱼ) V xⱼ",
        "The same path at every depth and number of heads, with a scatter of order (LH)^(−1/2).",
        "d = 3, n = 6, depth = 32, heads = 4",
        (ADAMW,),
        ("abstract", "assumed"),
        CONVENTION,
    ),
)
