"""The law of a head replaced by a finite average, for expectations over ρ_* with one query at a time."""

from __future__ import annotations

import math
import warnings

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import softmax

from pathlines.domain import Sphere
from pathlines.foundation.errors import FormError, PathlinesWarning, finite_number, positive_integer, require
from pathlines.foundation.module import Module, exactly
from pathlines.weights.gaussian import GaussianHeads
from pathlines.weights.law import HeadLaw
from pathlines.weights.offsets import Points, drawn_points, tensor_points, tensor_size

MOST = 1 << 15
"""Terms of an average beyond which it is not refined."""

ORDERS = (4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 84)
DROPPED = 0.01
"""Share of the tolerance that nodes of small weight may have together to be left out."""

PROBES = 6
"""Tokens at which an average is tried when it is built."""


class FrozenHeads(Module):
    """Σ_a p_a δ_(V_a, A_a, q_a): score ⟨A_a z + q_a, x_k⟩ of the query z with key x_k, value V_a x_k.

    Exact for laws with atoms, where q = 0, and when V̄ = 0 or A is fixed. For other Gaussian heads V_a = V̄, A_a = Ā and
    q_a has the law of (A - Ā)z, which is the same for every unit z: σ_A² χ_p times a normal vector (a normal vector at
    p = ∞). So a mean over heads is an integral over d + 1 numbers instead of 2dp: by a tensor Gauss rule (``order`` > 0
    nodes each way), or by scrambled Sobol points and their mirror images in ``blocks`` > 0 independent blocks. The
    noise of V has mean zero and is not in the average; it is isotropic, hence E[⟨x,ξ⟩Pξ] does not see it. Matrices that
    all terms share are kept once (v = 1). ``error`` is what was found at the tokens where the average was tried; a
    Gauss rule keeps the one ``below`` it, to be compared with at others.
    """

    probabilities: Float[Array, " a"]
    values: Float[Array, "v d d"]
    scores: Float[Array, "v d d"]
    offsets: Float[Array, "a d"]
    blocks: int = eqx.field(static=True, default=0)
    order: int = eqx.field(static=True, default=0)
    error: float = eqx.field(static=True, default=0.0)
    below: FrozenHeads | None = None

    @property
    def count(self) -> int:
        """Number of terms."""
        return self.probabilities.shape[0]

    @property
    def exact(self) -> bool:
        """Whether the average is the expectation itself."""
        return not (self.blocks or self.order)

    @property
    def summary(self) -> dict[str, float | bool]:
        """What a run says about its averages."""
        return {"averaged_heads": self.count, "average_error": self.error, "exact_average": self.exact}


def frozen(law: HeadLaw, beta: float = 1.0, tolerance: float = 1e-3, seed: int = 0) -> FrozenHeads:
    """The atoms of ``law``, or for Gaussian heads the smaller of a Gauss rule and a quasi-random sample.

    Both are refined until the average V̄ E m_A of the field, tried at a few spread tokens with inverse temperature β, is
    within ``tolerance``; a warning tells when ``MOST`` terms are not enough.
    """
    require(isinstance(law, HeadLaw), "law", "be a law of heads such as GaussianHeads", law)
    tolerance = finite_number("tolerance", tolerance, low=0.0, open_low=True)
    seed = positive_integer("seed", seed, least=0)
    d, atoms = law.d, law.atoms
    if atoms is not None:
        nothing = jnp.zeros((atoms.probabilities.shape[0], d))
        return FrozenHeads(atoms.probabilities, atoms.values, atoms.scores, nothing)
    if not exactly(law, GaussianHeads):
        raise FormError(f"Averages over {type(law).__name__} are not known: it needs atoms or Gaussian heads.")
    if law.centred or not law.random_scores:
        return FrozenHeads(jnp.ones(1), law.mean_value[None], law.mean_score[None], jnp.zeros((1, d)))
    found = [rule for rule in (_gauss(law, beta, tolerance), _sampled(law, beta, tolerance, seed)) if rule is not None]
    good = [rule for rule in found if rule[1] <= tolerance]
    points, error = min(good, key=lambda rule: len(rule[0].weights)) if good else min(found, key=lambda rule: rule[1])
    if not good:
        text = f"The average over heads is accurate to {error:.1e} only, not to `tolerance` = {tolerance:g}"
        warnings.warn(f"{text}: that would take more than {MOST} terms.", PathlinesWarning, stacklevel=3)
    below = None
    if points.order:
        coarse = tensor_points(law, ORDERS[ORDERS.index(points.order) - 1], DROPPED * tolerance)
        below = _heads(law, coarse, math.inf, None)
    return _heads(law, points, error, below)


def _heads(law: GaussianHeads, points: Points, error: float, below: FrozenHeads | None) -> FrozenHeads:
    mean = law.mean_value[None], law.mean_score[None]
    nodes, weights = jnp.asarray(points.nodes), jnp.asarray(points.weights)
    return FrozenHeads(weights, *mean, nodes, points.blocks, points.order, error, below)


def _probed(law: GaussianHeads, beta: float, points: Points) -> Float[np.ndarray, "b n d"]:
    """V̄ E m_A at the probes, block by block (one block for a Gauss rule)."""
    x = np.asarray(Sphere(law.d).sines(PROBES), float)
    blocks = max(points.blocks, 1)
    nodes, weights = points.nodes.reshape(blocks, -1, law.d), points.weights.reshape(blocks, -1, 1, 1)
    queries = x @ np.asarray(law.mean_score, float).T + nodes[:, :, None]
    attended = softmax(float(beta) * queries @ x.T, axis=-1) @ x
    return np.sum(blocks * weights * attended, axis=1) @ np.asarray(law.mean_value, float).T


def _distance(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.linalg.norm(first - second, axis=-1).max())


def _gauss(law: GaussianHeads, beta: float, tolerance: float) -> tuple[Points, float] | None:
    """The smallest Gauss rule that the one before it, at least twice as wrong, confirms to within 2·tolerance."""
    before, best = None, None
    for order in ORDERS:
        if tensor_size(law, order) > 8 * MOST:
            break
        points = tensor_points(law, order, DROPPED * tolerance)
        if len(points.weights) > MOST:
            break
        value = _probed(law, beta, points)[0]
        if before is not None:
            best = points, _distance(value, before) / 2
            if best[1] <= tolerance:
                break
        before = value
    return best


def _sampled(law: GaussianHeads, beta: float, tolerance: float, seed: int) -> tuple[Points, float]:
    """Points doubled until the standard error, from the spread of their blocks, is below the tolerance."""
    draws = 256
    while True:
        points = drawn_points(law, draws, seed)
        values = _probed(law, beta, points)
        error = math.sqrt(float(np.sum(np.var(values, axis=0, ddof=1), axis=-1).max()) / points.blocks)
        if error <= tolerance or 2 * draws > MOST:
            return points, error
        draws *= 2
