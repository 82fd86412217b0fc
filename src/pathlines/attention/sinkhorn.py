"""Sinkhorn attention: rows and columns both sum to one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from pathlines.attention.kind import ATTENTIONS, Attention, Lifted, Sums
from pathlines.attention.lifted import LiftedSoftmax
from pathlines.attention.softmax import Softmax
from pathlines.attention.unnormalised import Unnormalised
from pathlines.foundation.errors import ArgumentError, finite_number, positive_integer, require
from pathlines.foundation.papers import UNIFIED, Paper

MOST = 10_000
"""Iterations after which one gives up: the plan is then within the column error that is reported."""
COUNTED = 256
"""Tokens up to which iterations are counted before a run, for the price of one drift; above, they are estimated."""


class Balance(NamedTuple):
    """The potential g of the columns after ``iterations`` (rows, then columns), and the last change max_j |Δg_j|."""

    potential: Float[Array, " n"]
    iterations: Int[Array, ""]
    change: Float[Array, ""]


@ATTENTIONS.add("sinkhorn")
class Sinkhorn(LiftedSoftmax):
    """a_ij = m_j κ_ij, κ = e^{f_i + s_ij/ε + g_j} with Σ_j m_j κ_ij = 1 = Σ_i m_i κ_ij; the field is c Σ_j a_ij v_j.

    Sinkformers: Transformers with Doubly Stochastic Attention, arXiv:2110.11773; A Unified Perspective on the Dynamics
    of Deep Transformers, arXiv:2501.18322. ``prefactor`` c is "1/eps" (the paper's; V = A symmetric is then a gradient
    flow) or "1". Without ``iterations`` potentials are iterated until they change by less than ``tolerance``, and end
    on rows: the last step is softmax of the scores s_ij/ε + g_j, inner products with one column more. With
    ``iterations`` = L one stops after L half-normalisations, rows first: L = 1 is softmax of s/ε, even L end on
    columns. Cost: two sums of exponentials an iteration; on a Gaussian cloud each reduces the error by ρ_max²
    (``limit.gaussian.sinkhorn.iteration_rate``). Directional derivatives solve the linearised equations by conjugate
    gradients; there is no reverse mode.
    """

    label: ClassVar[str] = "Sinkhorn attention"
    formula: ClassVar[str] = "κ = c e^{f(x)+β⟨Qx,Ky⟩/ε+g(y)},  ∫κ(x,·)dμ = ∫κ(·,y)dμ = c"
    sees: ClassVar[str] = "Everyone is heard equally: the mean moves by V alone, and Gaussian clouds never explode."
    papers: ClassVar[tuple[Paper, ...]] = (UNIFIED,)
    unmaskable: ClassVar[str] = "columns and rows of a triangle cannot both sum to one"

    eps: Float[Array, ""]
    prefactor: str = eqx.field(static=True)
    iterations: int | None = eqx.field(static=True)
    tolerance: float = eqx.field(static=True)

    def __init__(
        self, eps: float = 1.0, prefactor: str = "1/eps", iterations: int | None = None, tolerance: float = 1e-12
    ) -> None:
        self.eps = jnp.asarray(finite_number("eps", eps, 0.0, open_low=True))
        require(prefactor in ("1/eps", "1"), "prefactor", "be '1/eps' or '1'", prefactor)
        self.prefactor = prefactor
        self.iterations = None if iterations is None else positive_integer("iterations", iterations)
        self.tolerance = finite_number("tolerance", tolerance, 0.0, open_low=True)

    @property
    def core(self) -> Attention:
        """Softmax ends on rows; after columns the weights are what they are."""
        return Softmax() if self.iterations is None or self.iterations % 2 else Unnormalised()

    def lift(
        self,
        queries: Float[Array, "n p"],
        keys: Float[Array, "m p"],
        values: Float[Array, "m d"],
        masses: Float[Array, " m"],
        beta: Float[Array, ""] | float,
        sums: Sums,
    ) -> Lifted:
        """(βq/ε, 1) and (k, g), or (βq/ε, f, 1) and (k, 1, g) after columns; values times c.

        The first queries are those of the tokens that the keys belong to; any beyond them listen to the same plan.
        """
        if queries.shape[0] < keys.shape[0]:
            raise ArgumentError(
                f"Sinkhorn attention pairs tokens with themselves: {keys.shape[0]} keys need as many queries, not "
                f"{queries.shape[0]}."
            )
        rows = beta * queries / self.eps
        own = rows[: keys.shape[0]]
        values = values / self.eps if self.prefactor == "1/eps" else values
        if self.iterations is None:
            g = _potential(sums, self.tolerance, own, keys, masses)
            return beside(rows, 1.0), beside(keys, g), values
        before, g = _repeated(sums, self.iterations // 2, own, keys, masses)
        if self.iterations % 2:
            return beside(rows, 1.0), beside(keys, g), values
        f = -log_sums(sums, rows, keys, before, masses)
        return beside(beside(rows, f), 1.0), beside(beside(keys, 1.0), g), values

    def caution(self, paired: Callable[[], tuple[np.ndarray, ...]]) -> str:
        """How many iterations these (β queries, keys, masses if not equal) take, if that is more than are allowed.

        Up to ``COUNTED`` tokens by doing them; a few tokens may take far more than the cloud they were drawn from. Else
        those of a Gaussian cloud: ln tolerance/ln ρ², ρ = tanh(½ asinh 2s), s² the largest eigenvalue of
        Cov(βq/ε)Cov(k).
        """
        if self.iterations is not None:
            return ""
        queries, keys, *given = paired()
        masses = np.asarray(given[0]) if given else np.full(len(keys), 1 / len(keys))
        rows = queries / float(self.eps)
        if len(keys) <= COUNTED:
            found = _counted(self.tolerance, *(jnp.asarray(a) for a in (rows[: len(keys)], keys, masses)))
            if int(found.iterations) < MOST:
                return ""
            reached = f"has not converged after {MOST} iterations (the last one changed potentials by "
            reached += f"{float(found.change):.1g})"
        else:
            covariances = [np.atleast_2d(np.cov(a.T, aweights=masses, ddof=0)) for a in (rows[: len(keys)], keys)]
            strength = np.sqrt(np.abs(np.linalg.eigvals(covariances[0] @ covariances[1])).max())
            needed = np.log(self.tolerance) / (2 * np.log(np.tanh(np.arcsinh(2 * strength) / 2) + 1e-300))
            if needed <= MOST:
                return ""
            reached = f"takes about {needed:.2g} iterations at this ε and stops at {MOST}"
        return f"Sinkhorn attention {reached}: columns will not quite sum to one; increase eps, or set iterations."


def beside(vectors: Float[Array, "n p"], column: Float[Array, " n"] | float) -> Float[Array, "n p_plus_1"]:
    """Vectors with one component more."""
    rows = jnp.broadcast_to(jnp.asarray(column, vectors.dtype), vectors.shape[:1])
    return jnp.concatenate([vectors, rows[:, None]], axis=1)


def log_sums(sums: Sums, rows: Array, keys: Array, shift: Array, masses: Array) -> Float[Array, " n"]:
    """ln Σ_j m_j e^{<row_i, key_j> + shift_j}."""
    return sums(beside(rows, 1.0), beside(keys, shift), keys[:, :0], masses)[1]


def balance(
    sums: Sums, tolerance: float, rows: Array, keys: Array, masses: Array, start: Array | None = None
) -> Balance:
    """Sinkhorn's iteration in the log domain from g = ``start`` (zero), until g changes by less than ``tolerance``.

    Or less than rounding: scores of size S have no digits below a few ε S.
    """
    zero = jnp.zeros_like(masses) if start is None else start
    seen = masses > 0

    def go_on(state: Balance) -> Array:
        size = 1 + jnp.max(jnp.where(seen, jnp.abs(state.potential), 0.0))
        floor = jnp.maximum(tolerance, 8 * jnp.finfo(masses.dtype).eps * size)
        return (state.change > floor) & (state.iterations < MOST)

    def once(state: Balance) -> Balance:
        f = -log_sums(sums, rows, keys, state.potential, masses)
        g = -log_sums(sums, keys, rows, f, masses)
        change = jnp.max(jnp.where(seen, jnp.abs(g - state.potential), 0.0))
        return Balance(g, state.iterations + 1, change)

    first = Balance(zero, jnp.zeros((), int), jnp.full((), jnp.inf, masses.dtype))
    return jax.lax.while_loop(go_on, once, first)


def _repeated(sums: Sums, count: int, rows: Array, keys: Array, masses: Array) -> tuple[Array, Array]:
    """The potentials g after ``count`` - 1 and ``count`` iterations from zero."""

    def once(_: int, last: tuple[Array, Array]) -> tuple[Array, Array]:
        return last[1], -log_sums(sums, keys, rows, -log_sums(sums, rows, keys, last[1], masses), masses)

    zero = jnp.zeros_like(masses)
    found: tuple[Array, Array] = jax.lax.fori_loop(0, count, once, (zero, zero))
    return found


def _pair_sums(rows: Array, keys: Array, values: Array, masses: Array) -> tuple[Array, Array]:
    """The log partition functions alone, by the matrix of all pairs; ``log_sums`` asks for no averages."""
    return values[:0], jax.scipy.special.logsumexp(rows @ keys.T, axis=1, b=masses)


_counted = jax.jit(partial(balance, _pair_sums), static_argnums=0)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _potential(sums: Sums, tolerance: float, rows: Array, keys: Array, masses: Array) -> Float[Array, " n"]:
    return balance(sums, tolerance, rows, keys, masses).potential


@_potential.defjvp
def _derivative(sums: Sums, tolerance: float, primals: Any, tangents: Any) -> tuple[Array, Array]:
    """(I - RP) dg = dT, T the iteration at fixed g, P and R its row and column averages.

    With the columns c of the plan as it is, I - RP is symmetric for the inner product with weights c: with the masses
    instead it is so at convergence alone, and conjugate gradients go astray where the iteration stopped before. It is
    singular along constants, which no weight a_ij sees: there 1 takes the place of 0. Gaps below rounding are lifted to
    it; weights that change so little are 0 or 1.
    """
    rows, keys, masses = primals
    g = _potential(sums, tolerance, rows, keys, masses)
    f = -log_sums(sums, rows, keys, g, masses)
    columns = masses * jnp.exp(g + log_sums(sums, keys, rows, f, masses))
    root = jnp.sqrt(columns / jnp.sum(columns))
    rounding = jnp.finfo(masses.dtype).eps

    def iteration(rows: Array, keys: Array, masses: Array) -> Array:
        return -log_sums(sums, keys, rows, -log_sums(sums, rows, keys, g, masses), masses)

    def applied(y: Array) -> Array:
        v = jnp.where(root > 0, y / jnp.where(root > 0, root, 1.0), 0.0)
        averaged = sums(beside(rows, 1.0), beside(keys, g), v[:, None], masses)[0][:, 0]
        back = sums(beside(keys, 1.0), beside(rows, f), averaged[:, None], masses)[0][:, 0]
        return (1 + rounding) * y - root * (back - root @ y)

    _, moved = jax.jvp(iteration, primals, tangents)
    moved = moved - root**2 @ moved
    solution, _ = jax.scipy.sparse.linalg.cg(applied, root * moved, tol=50 * rounding, atol=0.0)
    return g, jnp.where(root > 0, solution / jnp.where(root > 0, root, 1.0), 0.0)
