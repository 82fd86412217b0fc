"""Which degree is first to form on a sphere of any dimension (arXiv:2410.23228; the probabilities are derived)."""

from __future__ import annotations

from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import share_and_error
from pathlines.claim.tolerance import standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import METASTABLE_EMERGENCE
from pathlines.foundation.setting import Setting, means
from pathlines.limit.metastability.growth import selection_probabilities
from pathlines.model.metastability.zonal import Rings, ZonalMeasure
from pathlines.model.metastability.zonal_start import zonal_start

BUMP = 1e-6


class FirstDegree(Setting):
    """Uniform tokens on a sphere, and the level their harmonics grow to."""

    d: of.Dimension = 3
    beta: of.Beta = 9.0
    n: of.Tokens = 128
    level: of.FormationLevel = 0.5
    degrees: Annotated[of.Count, means("degrees that may be first", "K")] = 6
    draws: Annotated[of.Count, means("starts, each of n tokens")] = 6500
    nodes: Annotated[of.Count, means("nodes of the zonal measure whose drift gives the rates")] = 64
    seed: of.Seed = 0


def _rates(s: FirstDegree) -> np.ndarray:
    """dm_k/dt over m_k of the mean field at the uniform law with a small bump of degree k, of both signs."""
    model = ZonalMeasure(s.d, s.beta, s.nodes)
    starts = np.stack([[zonal_start({k: z}, s.nodes, s.d) for z in (BUMP, -BUMP)] for k in range(1, s.degrees + 1)])

    def moving(rows: jax.Array) -> tuple[jax.Array, jax.Array]:
        state = Rings(rows[:, 0], rows[:, 1])
        return jax.jvp(lambda x: model.moments(x, s.degrees), (state,), (model.drift(state, jnp.zeros(())),))

    moments, velocities = (np.asarray(x) for x in jax.jit(jax.vmap(jax.vmap(moving)))(jnp.asarray(starts)))
    k = np.arange(s.degrees)
    odd = lambda x: x[k, 0, k + 1] - x[k, 1, k + 1]  # noqa: E731
    return odd(velocities) / odd(moments)


def _amplitudes(x: np.ndarray, degrees: int) -> np.ndarray:
    """√(N(d, k)/2 ∬P_k(<x, y>)), k = 1..degrees: by the addition theorem half the power of all harmonics of a degree.

    (k+d-2) P_{k+1} = (2k+d-2) s P_k - k P_{k-1}, in single precision: it is the start of a draw.
    """
    d = x.shape[1]
    s = (x @ x.T).astype(np.float32)
    before, now, powers, count = np.ones_like(s), s, [], float(d)
    for k in range(1, degrees + 1):
        powers.append(count / 2 * float(np.mean(now)))
        before, now = now, ((2 * k + d - 2) * s * now - k * before) / np.float32(k + d - 2)
        count *= (2 * k + d) * (k + d - 2) / ((2 * k + d - 2) * (k + 1))
    return np.sqrt(np.maximum(powers, 0.0))


def simulate(s: FirstDegree) -> Evidence:
    """Starts of tokens, each degree growing at the rate of the model's drift: shares of the first at the level.

    Starts with a degree above the level from the beginning have no first one, and are left out.
    """
    rng, rates = np.random.default_rng(s.seed), _rates(s)
    first = np.zeros(s.degrees)
    for _ in range(s.draws):
        x = rng.standard_normal((s.n, s.d))
        sizes = _amplitudes(x / np.linalg.norm(x, axis=1, keepdims=True), s.degrees)
        if sizes.max() < s.level:
            first[np.argmin(np.log(s.level / sizes) / rates)] += 1
    share, error = share_and_error(first, first.sum())
    curve = Curve("starts of tokens", np.arange(1, s.degrees + 1), share, error)
    return Evidence({"share": share}, {"share": np.hypot(error, share / s.n)}, curves=(curve,))


def predict(s: FirstDegree) -> Evidence:
    """∫ -S_k'(t) Π_{j≠k} S_j(t) dt with χ² powers of N(d, k) degrees of freedom."""
    found = selection_probabilities(s.beta, s.n, s.level, s.degrees, s.d)
    curve = Curve("integral over first times", np.arange(1, s.degrees + 1), found)
    return Evidence({"share": found}, curves=(curve,), source="integral over first times")


claim(
    "metastability/S8",
    METASTABLE_EMERGENCE,
    "which degree is first on a sphere",
    "From N i.i.d. uniform tokens on the sphere of ℝᵈ the powers of the degrees start as independent χ² of as many "
    "degrees of freedom as there are harmonics, and grow like e^{2λₖt}: in the linear phase degree k is the first to "
    "reach the level c with probability ∫ −Sₖ′ Π_{j≠k} Sⱼ dt, Sₖ(t) = P(ν_k/2, c²N e^{−2λₖt}). High degrees, having "
    "more harmonics, win more often than their rates alone would have it.",
    where="derived from the linearisation at the uniform law",
    models=("zonal",),
    quick=FirstDegree(),
    full=FirstDegree(n=400, level=0.28, draws=12000),
    within={"share": standard_errors(5.0, "independent starts; powers are χ² up to O(1/N)")},
    simulate=simulate,
    predict=predict,
    axes=Axes("degree k", "probability to be first"),
    note="The linear phase alone: rates are those of the model's drift at the uniform law.",
)
