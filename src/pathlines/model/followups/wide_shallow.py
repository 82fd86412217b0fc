"""Mean-field gradient descent of a wide shallow model: neurons, or attention heads, are the particles."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.attention import SoftmaxAttention
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import ArgumentError, finite_array, require
from pathlines.foundation.papers import Paper
from pathlines.foundation.papers.followups import WIDE_SHALLOW
from pathlines.foundation.setting import means
from pathlines.foundation.traceable import is_traced
from pathlines.model.base import MODELS, Description, checked_multiplicities
from pathlines.model.capability import HasLayers
from pathlines.numerics.teachers import head_teacher, tanh_teacher

FEATURES = ("tanh", "heads")
CONVENTION = (
    "particles of mass m_i, velocities are minus the gradient of ½ mean |f − y|² over m_i; tanh neurons see (x, 1), "
    "heads answer for the last token; the paper's exact form was not available."
)


class WideShallow(HasLayers):
    """f_μ(x) = Σ_i m_i a_i φ(w_i; x),  d(a_i, w_i)/dt = -m_i⁻¹ ∇_{(a_i, w_i)} ½ mean_x |f_μ(x) - y(x)|².

    On the global convergence of gradient descent for wide shallow models with bounded nonlinearities, arXiv:2605.10775:
    the "tokens" are the particles (a_i, w_i), rows of the state, and depth-time is training time. φ is bounded:
    tanh(w·(x, 1)) for neurons, Σ_j softmax_j(x_lastᵀ B x_j) x_j for attention heads (w = B, a = V a matrix). ``flow``
    trains in continuous time, ``layers`` by gradient descent whose rate is the step, ``ensemble`` from many starts;
    record ``pl.training_loss``. The form is our convention [assumed].

    You will see the loss of wide students fall until the steps are too small to see it, from any start with full
    support (Gaussian), and that of students narrower than the teacher get stuck. A start of few atoms may be critical
    without being optimal: it stays for ever, and leaves at once if a little mass is spread around it.
    Good values: 60 inputs, m = 4..200 particles N(0, I), step 0.2 for neurons and 0.5 for heads, time 1000.
    Cost O(mN(p + q)) per step for N inputs, O(mNnd²) with heads of n tokens.

    Args:
        inputs: x, of shape (N, q) for neurons, (N, n, d) for heads (contexts whose last token is the query).
        targets: y, of shape (N, p).
        features: φ, "tanh" or "heads".
        multiplicities: masses of the particles, in any unit; equal by default. One of mass zero learns and is not
            heard.
    """

    papers: ClassVar[tuple[Paper, ...]] = (WIDE_SHALLOW,)

    inputs: Float[Array, "N ..."]
    targets: Float[Array, "N p"]
    multiplicities: Float[Array, " m"] | None
    features: str = eqx.field(static=True)

    def __init__(self, inputs: Any, targets: Any, features: str = "tanh", multiplicities: Any = None) -> None:
        require(features in FEATURES, "features", "be 'tanh' or 'heads'", features)
        x = finite_array("inputs", inputs, ("N", "q") if features == "tanh" else ("N", "n", "d")).astype(float)
        if 0 in x.shape:
            raise ArgumentError(f"Argument `inputs` must not be empty, but has shape {x.shape}.")
        y = finite_array("targets", targets, (len(x), "p")).astype(float)
        require(y.shape[1] > 0, "targets", "have at least one column", targets)
        self.inputs, self.targets, self.features = jnp.asarray(x), jnp.asarray(y), features
        self.multiplicities = checked_multiplicities(multiplicities)

    @property
    def outer(self) -> tuple[int, int]:
        """Shape of a: outputs × components of φ."""
        return self.targets.shape[1], 1 if self.features == "tanh" else self.inputs.shape[-1]

    @property
    def width(self) -> int:
        """Numbers of a particle: those of a, then those of w."""
        q, (p, k) = self.inputs.shape[-1], self.outer
        return p * k + (q + 1 if self.features == "tanh" else q * q)

    @property
    def on_sphere(self) -> bool:
        """Particles live in R^D."""
        return False

    def check(self, tokens: Any) -> None:
        """Finite rows (a, w)."""
        size = tuple(tokens.shape) if is_traced(tokens) else finite_array("tokens", tokens).shape
        if len(size) != 2 or not size[0] or size[1] != self.width:
            raise ArgumentError(
                f"Argument `tokens` must have shape (m, {self.width}), rows (a, w), but has shape {size}."
            )
        if self.multiplicities is not None and self.multiplicities.shape != size[:1]:
            shape = self.multiplicities.shape
            raise ArgumentError(f"Argument `multiplicities` must have one entry per particle ({size[0]}), not {shape}.")

    def initial(self, tokens: Float[Array, "m D"]) -> Float[Array, "m D"]:
        """The particles."""
        return tokens

    def tokens(self, state: Float[Array, "m D"], t: Array) -> Float[Array, "m D"]:
        """The state."""
        return state

    def answers(self, state: Float[Array, "m D"]) -> Float[Array, "m N p"]:
        """a_i φ(w_i; x) of every particle."""
        p, k = self.outer
        a, w = state[:, : p * k].reshape(-1, p, k), state[:, p * k :]
        if self.features == "tanh":
            raised = jnp.concatenate([self.inputs, jnp.ones((len(self.inputs), 1), state.dtype)], axis=1)
            return jnp.tanh(w @ raised.T)[:, :, None] * a[:, None, :, 0]
        x, d = self.inputs, self.inputs.shape[-1]
        scores = jnp.einsum("np,mpq,njq->mnj", x[:, -1], w.reshape(-1, d, d), x)
        heard, _ = SoftmaxAttention().normalise(scores, jnp.full(x.shape[1], 1 / x.shape[1], x.dtype))
        return jnp.einsum("mop,mnj,njp->mno", a, heard, x)

    def output(self, state: Float[Array, "m D"]) -> Float[Array, "N p"]:
        """f_μ at the inputs."""
        masses = self.normalised_masses(state.shape[0], state.dtype)
        return jnp.tensordot(masses, self.answers(state), 1)

    def loss(self, state: Float[Array, "m D"]) -> Float[Array, ""]:
        """½ mean |f_μ - y|²."""
        return 0.5 * jnp.mean(jnp.sum((self.output(state) - self.targets) ** 2, axis=-1))

    def drift(self, state: Float[Array, "m D"], t: Array) -> Float[Array, "m D"]:
        """-∇ of the first variation mean_x ⟨f_μ - y, a φ(w; x)⟩ at each particle, whatever its mass."""
        left = (self.output(state) - self.targets) / len(self.targets)
        return -jax.grad(lambda s: jnp.sum(self.answers(s) * left[None]))(state)

    def layer(self, state: Float[Array, "m D"], t: Array, step: Array) -> Float[Array, "m D"]:
        """One step of gradient descent."""
        return state + step * self.drift(state, t)


def with_teacher(
    features: Annotated[Literal["tanh", "heads"], means("what is learned with: neurons or attention heads")] = "tanh",
    samples: Annotated[of.Count, means("inputs", "N")] = 60,
    seed: of.Seed = 1,
) -> WideShallow:
    """A student of three tanh neurons (two inputs, two outputs), or of two heads (d = 3, context 8)."""
    x, y = (tanh_teacher if features == "tanh" else head_teacher)(samples, seed=seed)
    return WideShallow(x, y, features)


MODELS.register(
    "wide-shallow",
    Description(
        with_teacher,
        "Training of a wide shallow model",
        "f = Σᵢ mᵢ aᵢ φ(wᵢ; x),  d(aᵢ, wᵢ)/dt = −mᵢ⁻¹ ∇ᵢ ½ mean |f − y|²",
        "From a Gaussian start every student as wide as the teacher reaches the global minimum; narrow ones get stuck.",
        "features = tanh, samples = 60, n = 32 particles of d = 5, until = 100",
        (WIDE_SHALLOW,),
        ("abstract", "assumed"),
        CONVENTION,
    ),
)
