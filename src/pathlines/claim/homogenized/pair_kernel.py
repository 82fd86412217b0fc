"""The kernel of a pair at zero temperature, E⟨Ax/|Ax|, Ay/|Ay|⟩ (Homogenized Transformers, arXiv:2604.01978).

A = W W'ᵀ has two Gaussian factors, each of which turns a pair by O(1/d): K = R - ½(1/d + 1/p) R(1-R²) + …, where the
lemma in print counts one of them, 1/(2d).
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.slopes import several
from pathlines.claim.tolerance import standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting
from pathlines.limit.homogenized.low_temperature import pair_kernel
from pathlines.weights.gaussian import GaussianHeads


@partial(jax.jit, static_argnums=2)
def products(law: GaussianHeads, key: Array, samples: int) -> Float[Array, "samples pairs 3"]:
    """⟨Ae_i,Ae_i⟩, ⟨Ae_i,Ae_j⟩, ⟨Ae_j,Ae_j⟩ over their mean size for j = i+1, i = 1, 3, 5, …, a row for each head."""

    def one(key: Array) -> Float[Array, "pairs 3"]:
        heads = law.heads(key, 1)
        assert heads.query is not None and heads.key is not None
        images = heads.query[0].T @ heads.key[0] / jnp.sqrt(law.d * law.qk_dim * law.sigma_a**4)
        left, right = images[: 2 * (law.d // 2) : 2], images[1::2]
        return jnp.stack([jnp.sum(a * b, axis=1) for a, b in ((left, left), (left, right), (right, right))], axis=-1)

    return jax.lax.map(one, jax.random.split(key, samples), batch_size=64)


def defect(products: np.ndarray, overlap: float, d: int) -> tuple[float, float]:
    """d(E cos - R)/(R(1-R²)) and its standard error over heads, for the pairs x = e_i, y = R e_i ± √(1-R²) e_j.

    The cosine minus its linear part in |Ax|², ⟨Ax,Ay⟩, |Ay|², whose means are 1, R, 1 exactly: what is left varies by
    1/d only, as does the effect.
    """
    first, cross, second = np.moveaxis(products, -1, 0)
    sine, left = np.sqrt(1 - overlap**2), np.zeros(len(products))
    for sign in (1, -1):
        xx, xy = first, overlap * first + sign * sine * cross
        yy = overlap**2 * first + 2 * overlap * sign * sine * cross + sine**2 * second
        left += np.mean(xy / np.sqrt(xx * yy) - xy + overlap / 2 * (xx + yy - 2), axis=1) / 2
    scale = d / (overlap * (1 - overlap**2))
    mean, error = mean_and_error(left)
    return scale * float(mean), abs(scale) * float(error)


class PairKernel(Setting):
    """Heads at zero temperature acting on pairs."""

    dims: of.Dimensions = (32, 64)
    width_ratio: of.WidthRatio = 1.0
    overlaps: of.Overlaps = (0.3, 0.5, 0.8)
    samples: of.DrawnHeads = 8192
    seed: of.Seed = 13


def simulate(s: PairKernel) -> Evidence:
    """Heads of the engine's law on pairs; the last two dimensions extrapolate to 1/d = 0 at equal d/p."""
    several("dims", s.dims[-2:])
    found, curves = [], []
    for d in s.dims:
        law = GaussianHeads(d, qk_dim=round(d * s.width_ratio))
        drawn = np.asarray(products(law, jax.random.key(s.seed), s.samples))
        pairs = np.array([defect(drawn, r, d) for r in s.overlaps])
        found.append(pairs)
        curves.append(Curve(f"heads, d = {d}", s.overlaps, *pairs.T))
    values, errors = np.moveaxis(np.array(found), -1, 0)
    weight = s.dims[-1] / (s.dims[-1] - s.dims[-2])
    limit = weight * values[-1] + (1 - weight) * values[-2]
    spread = np.hypot(weight * errors[-1], (1 - weight) * errors[-2])
    return Evidence(
        {"defect": values.ravel(), "limit": limit},
        {"defect": errors.ravel(), "limit": spread},
        curves=tuple(curves),
    )


def _widths(s: PairKernel) -> list[int]:
    return [round(d * s.width_ratio) for d in s.dims]


def predict(s: PairKernel) -> Evidence:
    """The kernel by quadrature, and -½(1 + d/p)."""
    r = np.asarray(s.overlaps)
    fine = np.linspace(min(0.05, r.min()), max(0.95, r.max()), 40)
    exact, curves = [], []
    for d, p in zip(s.dims, _widths(s), strict=True):
        exact.append(d * (pair_kernel(r, d, p) - r) / (r * (1 - r * r)))
        curves.append(Curve(f"quadrature, d = {d}", fine, d * (pair_kernel(fine, d, p) - fine) / (fine - fine**3)))
    limit = np.full(r.shape, -0.5 * (1 + 1 / s.width_ratio))
    curves.append(Curve("d = ∞", fine, np.full(fine.shape, limit[0])))
    return Evidence({"defect": np.concatenate(exact), "limit": limit}, curves=tuple(curves))


def predict_printed(s: PairKernel) -> Evidence:
    """-½ at every overlap and to leading order at every d."""
    r = np.asarray(s.overlaps)
    return Evidence({"limit": np.full(r.shape, -0.5)}, curves=(Curve("−1/2", [r.min(), r.max()], [-0.5, -0.5]),))


_AXES = Axes("overlap R", "d(K − R)/(R(1−R²))")
_LIMIT = standard_errors(5.0, "standard errors over drawn heads; O(1/d²) after extrapolation is 0.0002")

C13 = claim(
    "homogenized/C13",
    HOMOGENIZED,
    "kernel expansion, corrected (derived)",
    "For A = WW′ᵀ with d × p Gaussian factors E⟨Ax/|Ax|, Ay/|Ay|⟩ = R − ½(1/d+1/p)R(1−R²) + O(d⁻²): the coefficient "
    "d(K−R)/(R(1−R²)) tends to −1 at p = d, and at finite d is that of the quadrature.",
    where="lemma on the kernel E⟨Ax/|Ax|, Ay/|Ay|⟩, corrected",
    models=("low-temperature-pair",),
    quick=PairKernel(),
    full=PairKernel(dims=(16, 32, 64), overlaps=(0.1, 0.3, 0.5, 0.7, 0.9), samples=65536),
    within={"defect": standard_errors(5.0, "standard errors over drawn heads"), "limit": _LIMIT},
    simulate=simulate,
    predict=predict,
    axes=_AXES,
)

C13.printed_as(
    "homogenized/ER-08",
    "kernel expansion, as printed",
    "E⟨Ax/|Ax|, Ay/|Ay|⟩ = R − R(1−R²)/(2d) + O(d⁻²) for A = WW′ᵀ.",
    where="lemma on the kernel E⟨Ax/|Ax|, Ay/|Ay|⟩, as printed",
    within={"limit": _LIMIT},
    predict=predict_printed,
    note="1/(2d) is the turn by one Gaussian matrix, p = ∞ here; the product has two.",
)
