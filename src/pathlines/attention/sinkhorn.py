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
from pathlines.attention.softmax import SoftmaxAttention
from pathlines.attention.unnormalised import UnnormalisedAttention
from pathlines.foundation.errors import ArgumentError, finite_number, positive_integer, require
from pathlines.foundation.papers import UNIFIED, Paper

PLAIN = 100
"""Iterations before Newton's method takes over, which costs conjugate gradients a step."""
DIRECT = 30
"""Steps of Newton's method before scores are shrunk: they are short, and from a good start three are enough."""
MOST = 400
"""Newton steps after which one gives up: the plan is then within the column error that is reported."""
NEAR = 1e-3
"""Change of a potential that is small enough to go on to larger scores."""
SHRINK = 4.0
"""Between two sizes of the scores."""
COUNTED = 256
"""Tokens up to which one looks before a run, for the price of one drift."""
ROUGH = 1e-3
"""Rounding of scores beyond which potentials, which hang on all of them, make a velocity of noise."""


class Balance(NamedTuple):
    """The potential g of the columns after ``iterations`` (rows, then columns), and the last change max_j |Δg_j|."""

    potential: Float[Array, " n"]
    iterations: Int[Array, ""]
    change: Float[Array, ""]


@ATTENTIONS.add("sinkhorn")
class SinkhornAttention(LiftedSoftmax):
    """a_ij = m_j κ_ij, κ = e^{f_i + s_ij/ε + g_j} with Σ_j m_j κ_ij = 1 = Σ_i m_i κ_ij; the field is c Σ_j a_ij v_j.

    Sinkformers: Transformers with Doubly Stochastic Attention, arXiv:2110.11773; A Unified Perspective on the Dynamics
    of Deep Transformers, arXiv:2501.18322. ``prefactor`` c is "1/eps" (the paper's; V = A symmetric is then a gradient
    flow) or "1". Without ``iterations`` potentials are iterated until they change by less than ``tolerance``, and end
    on rows: the last step is softmax of the scores s_ij/ε + g_j, inner products with one column more. With
    ``iterations`` = L one stops after L half-normalisations, rows first: L = 1 is softmax of s/ε, even L end on
    columns. Cost: two sums of exponentials per iteration; on a Gaussian cloud each reduces the error by ρ_max²
    (``limit.gaussian.sinkhorn.iteration_rate``). Few tokens at small ε would need e^{O(1/ε)} of them: after 100
    Newton's method takes over (``settle``). Directional derivatives solve the linearised equations by conjugate
    gradients; there is no reverse mode. ``start`` is the potential g to begin with, one for each head: a flow hands on
    that of the step before where that pays (``model.clustering.carried``).
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
    start: Float[Array, ...] | None

    def __init__(
        self, eps: float = 1.0, prefactor: str = "1/eps", iterations: int | None = None, tolerance: float = 1e-12
    ) -> None:
        self.eps = jnp.asarray(finite_number("eps", eps, 0.0, open_low=True))
        require(prefactor in ("1/eps", "1"), "prefactor", "be '1/eps' or '1'", prefactor)
        self.prefactor = prefactor
        self.iterations = None if iterations is None else positive_integer("iterations", iterations)
        self.tolerance = finite_number("tolerance", tolerance, 0.0, open_low=True)
        self.start = None

    def begun(self, start: Float[Array, ...]) -> SinkhornAttention:
        """The same kind with a potential to begin with."""
        return eqx.tree_at(lambda kind: kind.start, self, start, is_leaf=lambda x: x is None)

    @property
    def head_axes(self) -> SinkhornAttention | None:
        """The first axis of ``start`` counts the heads."""
        if self.start is None:
            return None
        return jax.tree.map(lambda leaf: 0 if leaf is self.start else None, self)

    @property
    def core(self) -> Attention:
        """Softmax ends on rows; after columns the weights are what they are."""
        return SoftmaxAttention() if self.iterations is None or self.iterations % 2 else UnnormalisedAttention()

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
            g = self.potential(own, keys, masses, sums)
            return beside(rows, 1.0), beside(keys, g), values
        before, g = _repeated(sums, self.iterations // 2, own, keys, masses)
        if self.iterations % 2:
            return beside(rows, 1.0), beside(keys, g), values
        f = -log_sums(sums, rows, keys, before, masses)
        return beside(beside(rows, f), 1.0), beside(beside(keys, 1.0), g), values

    def potential(self, rows: Array, keys: Array, masses: Array, sums: Sums) -> Float[Array, " n"]:
        """g of the scores <row_i, key_j>, from ``start``."""
        start = jnp.zeros_like(masses) if self.start is None else self.start
        return _potential(sums, self.tolerance, rows, keys, masses, start)

    def begins(self, paired: Callable[[], tuple[np.ndarray, ...]]) -> tuple[Balance, bool] | None:
        """How potentials of these (β queries, keys, masses if not equal) are found from zero, and whether they are.

        Looked at for at most ``COUNTED`` tokens: only few tokens are ever far from the cloud they were drawn from.
        """
        queries, keys, *given = paired()
        if self.iterations is not None or len(keys) > COUNTED:
            return None
        masses = np.asarray(given[0]) if given else np.full(len(keys), 1 / len(keys))
        rows = queries[: len(keys)] / float(self.eps)
        found = _settled(self.tolerance, *(jnp.asarray(a) for a in (rows, keys, masses)))
        return found, float(found.change) <= float(_floor(self.tolerance, found.potential, jnp.asarray(masses)))

    def caution(self, paired: Callable[[], tuple[np.ndarray, ...]]) -> str:
        """Whether the potentials at the start cannot be found."""
        begun = self.begins(paired)
        if begun is None or begun[1]:
            return ""
        return (
            f"Sinkhorn attention has not converged after {MOST} steps of Newton's method (the last one changed "
            f"potentials by {float(begun[0].change):.1g}): columns will not quite sum to one; increase eps, "
            "or set iterations."
        )

    def legible(self, paired: Callable[[], tuple[Array, Array]]) -> Array | None:
        """Scores up to 4·10¹² in double precision."""
        queries, keys = paired()
        largest = jnp.sqrt(jnp.max(jnp.sum(queries**2, axis=1)) * jnp.max(jnp.sum(keys**2, axis=1))) / self.eps
        return jnp.finfo(queries.dtype).eps * largest < ROUGH


def beside(vectors: Float[Array, "n p"], column: Float[Array, " n"] | float) -> Float[Array, "n p_plus_1"]:
    """Vectors with one component more."""
    rows = jnp.broadcast_to(jnp.asarray(column, vectors.dtype), vectors.shape[:1])
    return jnp.concatenate([vectors, rows[:, None]], axis=1)


def log_sums(sums: Sums, rows: Array, keys: Array, shift: Array, masses: Array) -> Float[Array, " n"]:
    """ln Σ_j m_j e^{<row_i, key_j> + shift_j}."""
    return sums(beside(rows, 1.0), beside(keys, shift), keys[:, :0], masses)[1]


def _floor(tolerance: float, g: Array, masses: Array) -> Array:
    """What a potential need not change by less than: ``tolerance``, or rounding, a few ε S for scores of size S."""
    size = 1 + jnp.max(jnp.where(masses > 0, jnp.abs(g), 0.0))
    return jnp.maximum(tolerance, 8 * jnp.finfo(masses.dtype).eps * size)


def _iterated(sums: Sums, rows: Array, keys: Array, masses: Array, g: Array) -> tuple[Array, Array]:
    """(T(g), max |T(g) - g|), T one iteration: rows, then columns."""
    f = -log_sums(sums, rows, keys, g, masses)
    after = -log_sums(sums, keys, rows, f, masses)
    return after, jnp.max(jnp.where(masses > 0, jnp.abs(after - g), 0.0))


def balance(
    sums: Sums,
    tolerance: float,
    rows: Array,
    keys: Array,
    masses: Array,
    start: Array | None = None,
    most: int = 10_000,
) -> Balance:
    """Sinkhorn's iteration in the log domain from g = ``start`` (zero), until g changes by less than ``tolerance``.

    Or less than rounding, or ``most`` times.
    """

    def go_on(state: Balance) -> Array:
        return (state.change > _floor(tolerance, state.potential, masses)) & (state.iterations < most)

    def once(state: Balance) -> Balance:
        g, change = _iterated(sums, rows, keys, masses, state.potential)
        return Balance(g, state.iterations + 1, change)

    zero = jnp.zeros_like(masses) if start is None else start
    first = Balance(zero, jnp.zeros((), int), jnp.full((), jnp.inf, masses.dtype))
    return jax.lax.while_loop(go_on, once, first)


def settle(
    sums: Sums, tolerance: float, rows: Array, keys: Array, masses: Array, start: Array | None = None
) -> Balance:
    """The potential of ``balance``, by Newton's method once ``PLAIN`` iterations were not enough.

    A step solves (I + r - T'(g)) δ = T(g) - g, T one iteration and r = max |T(g) - g|: δ is of order one at most, also
    where groups of tokens hardly hear each other and I - T' is singular to rounding. It stands only if it leaves less
    of T(g) - g than a plain iteration does: that never makes it larger, so neither does this. Potentials that are far
    away are approached by shrinking the scores to order one, and growing them again by ``SHRINK`` with the potentials.
    """
    plain = balance(sums, tolerance, rows, keys, masses, start, PLAIN)
    spread = jnp.sqrt(jnp.max(jnp.sum(rows * rows, axis=1)) * jnp.max(jnp.sum(keys * keys, axis=1)))

    def go_on(state: tuple[Balance, Array]) -> Array:
        found, by = state
        left = (by > 1) | (found.change > _floor(tolerance, found.potential, masses))
        return left & (found.iterations < PLAIN + MOST)

    def once(state: tuple[Balance, Array]) -> tuple[Balance, Array]:
        found, by = state
        grown = jnp.where(found.change <= NEAR, jnp.maximum(by / SHRINK, 1.0), by)
        size = jnp.where(found.iterations == PLAIN + DIRECT, jnp.maximum(spread, 1.0), grown)
        g, change = _newton_step(sums, rows / size, keys, masses, found.potential * (by / size))
        return Balance(g, found.iterations + 1, change), size

    return jax.lax.while_loop(go_on, once, (plain, jnp.ones((), masses.dtype)))[0]


def _newton_step(sums: Sums, rows: Array, keys: Array, masses: Array, g: Array) -> tuple[Array, Array]:
    """(g, change) after one step: Newton's, or a plain iteration where that leaves less."""
    plain, size = _iterated(sums, rows, keys, masses, g)
    bold = g + _resolved(sums, rows, keys, masses, g, plain - g, size)
    (_, still), (_, left) = (_iterated(sums, rows, keys, masses, x) for x in (plain, bold))
    better = left < still
    return jnp.where(better, bold, plain), jnp.where(better, left, still)


def _repeated(sums: Sums, count: int, rows: Array, keys: Array, masses: Array) -> tuple[Array, Array]:
    """The potentials g after ``count`` - 1 and ``count`` iterations from zero."""

    def once(_: Array, last: tuple[Array, Array]) -> tuple[Array, Array]:
        return last[1], -log_sums(sums, keys, rows, -log_sums(sums, rows, keys, last[1], masses), masses)

    zero = jnp.zeros_like(masses)
    found: tuple[Array, Array] = jax.lax.fori_loop(0, count, once, (zero, zero))
    return found


def _pair_sums(rows: Array, keys: Array, values: Array, masses: Array) -> tuple[Array, Array]:
    """Averages and log partition functions by the matrix of all pairs."""
    scores = rows @ keys.T
    total = jax.scipy.special.logsumexp(scores, axis=1, b=masses)
    return (masses * jnp.exp(scores - total[:, None])) @ values, total


_settled = jax.jit(partial(settle, _pair_sums), static_argnums=0)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _potential(
    sums: Sums, tolerance: float, rows: Array, keys: Array, masses: Array, start: Array
) -> Float[Array, " n"]:
    return settle(sums, tolerance, rows, keys, masses, start).potential


@_potential.defjvp
def _derivative(sums: Sums, tolerance: float, primals: Any, tangents: Any) -> tuple[Array, Array]:
    """(I - T'(g)) dg = dT, T the iteration at fixed g; where one started does not matter."""
    rows, keys, masses, start = primals
    g = _potential(sums, tolerance, rows, keys, masses, start)

    def iteration(rows: Array, keys: Array, masses: Array) -> Array:
        return _iterated(sums, rows, keys, masses, g)[0]

    _, moved = jax.jvp(iteration, (rows, keys, masses), tangents[:3])
    return g, _resolved(sums, rows, keys, masses, g, moved)


def _resolved(
    sums: Sums, rows: Array, keys: Array, masses: Array, g: Array, right: Array, lift: Array | float = 0.0
) -> Float[Array, " n"]:
    """The solution of (I + lift - RP) x = right, P and R the row and column averages at the potential g, RP = T'(g).

    With the columns c of the plan as it is, I - RP is symmetric for the inner product with weights c: with the masses
    instead it is so at convergence alone, and conjugate gradients go astray where the iteration stopped before. It is
    singular along constants, which no weight a_ij sees: there 1 takes the place of 0. Gaps below rounding are lifted to
    it; weights that change so little are 0 or 1.
    """
    f = -log_sums(sums, rows, keys, g, masses)
    columns = masses * jnp.exp(g + log_sums(sums, keys, rows, f, masses))
    root = jnp.sqrt(columns / jnp.sum(columns))
    rounding = jnp.finfo(masses.dtype).eps

    def applied(y: Array) -> Array:
        v = jnp.where(root > 0, y / jnp.where(root > 0, root, 1.0), 0.0)
        averaged = sums(beside(rows, 1.0), beside(keys, g), v[:, None], masses)[0][:, 0]
        back = sums(beside(keys, 1.0), beside(rows, f), averaged[:, None], masses)[0][:, 0]
        return (1 + rounding + lift) * y - root * (back - root @ y)

    centred = right - root**2 @ right
    solution, _ = jax.scipy.sparse.linalg.cg(applied, root * centred, tol=50 * rounding, atol=0.0)
    return jnp.where(root > 0, solution / jnp.where(root > 0, root, 1.0), 0.0)
