"""The law of a head replaced by a finite average, for expectations over ρ_* with one query at a time."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import gammaincinv, ndtri

from pathlines.foundation.errors import FormError, positive_integer, require
from pathlines.foundation.module import Module
from pathlines.weights.gaussian import GaussianHeads
from pathlines.weights.law import HeadLaw

BLOCKS = 8
"""Independent scramblings of the quasi-random points: their spread is the error of the average."""


class FrozenHeads(Module):
    """Σ_a p_a δ_(V_a, A_a, q_a): score ⟨A_a z + q_a, x_k⟩ of the query z with key x_k, value V_a x_k.

    Exact (``blocks`` = 0) for laws with atoms, where q = 0, and when V̄ = 0 or A is fixed. For other Gaussian heads
    V_a = V̄, A_a = Ā and q_a has the law of (A - Ā)z, which is the same for every unit z: σ_A² χ_p times a normal
    vector (a normal vector at p = ∞). So a mean over heads is an integral over d + 1 numbers instead of 2dp, done
    with scrambled Sobol points and their mirror images -q, in ``blocks`` independent blocks. The noise of V has mean
    zero and is not in the average; it is isotropic, hence E[⟨x,ξ⟩Pξ] does not see it. Matrices that all terms share
    are kept once (v = 1).
    """

    probabilities: Float[Array, " a"]
    values: Float[Array, "v d d"]
    scores: Float[Array, "v d d"]
    offsets: Float[Array, "a d"]
    blocks: int = eqx.field(static=True)

    @property
    def count(self) -> int:
        """Number of terms."""
        return self.probabilities.shape[0]


def frozen(law: HeadLaw, draws: int = 1024, seed: int = 0) -> FrozenHeads:
    """The atoms of ``law``, or ``draws`` quasi-random ones for Gaussian heads (rounded up to 16 · 2^k)."""
    require(isinstance(law, HeadLaw), "law", "be a law of heads such as GaussianHeads", law)
    d, atoms = law.d, law.atoms
    if atoms is not None:
        nothing = jnp.zeros((atoms.probabilities.shape[0], d))
        return FrozenHeads(atoms.probabilities, atoms.values, atoms.scores, nothing, 0)
    if not isinstance(law, GaussianHeads):
        raise FormError(f"Averages over {type(law).__name__} are not known: it needs atoms or Gaussian heads.")
    draws = positive_integer("draws", draws)
    if law.centred or not law.random_scores:
        return FrozenHeads(jnp.ones(1), law.mean_value[None], law.mean_score[None], jnp.zeros((1, d)), 0)
    offsets = _offsets(law, draws, positive_integer("seed", seed, least=0))
    chances = jnp.full(len(offsets), 1 / len(offsets))
    return FrozenHeads(chances, law.mean_value[None], law.mean_score[None], jnp.asarray(offsets), BLOCKS)


def _offsets(law: GaussianHeads, draws: int, seed: int) -> Float[np.ndarray, "a d"]:
    """(A - Ā)z for unit z, block after block, each block with its mirror image."""
    from scipy.stats import qmc  # a second to import

    power = max(0, math.ceil(math.log2(draws / (2 * BLOCKS))))
    endless = math.isinf(law.qk_dim)
    blocks: list[Any] = []
    for block in range(BLOCKS):
        engine = qmc.Sobol(law.d + (0 if endless else 1), seed=np.random.default_rng([seed, block]))
        u = np.clip(engine.random_base2(power), 1e-12, 1 - 1e-12)
        normals = ndtri(u[:, : law.d])
        if not endless:
            lengths = np.sqrt(2 * gammaincinv(law.qk_dim / 2, u[:, -1:]))
            normals = float(law.sigma_a) ** 2 * lengths * normals
        blocks += [normals, -normals]
    return np.concatenate(blocks)
