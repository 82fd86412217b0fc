"""Sampling a target with particles and no noise: steps of the regularised Wasserstein proximal."""

from __future__ import annotations

import time
import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import msgspec
import numpy as np
from jaxtyping import Array, Float

from pathlines.foundation.errors import (
    ArgumentError,
    PathlinesWarning,
    finite_array,
    finite_number,
    positive_integer,
    require,
)
from pathlines.foundation.numbers import one_of
from pathlines.foundation.papers.followups import PROXIMAL
from pathlines.foundation.precision import require_float64
from pathlines.foundation.programs import make_room_for_programs
from pathlines.foundation.progress import Progress
from pathlines.limit.followups.proximal import Quadratic, shrinkages, stable_step
from pathlines.model.followups.potentials import (
    ClosedForm,
    Laplace,
    Normaliser,
    QuadraticPotential,
    drawn_nodes,
    hermite_nodes,
)
from pathlines.model.followups.proximal import ProximalAttention, checked_preconditioner

NORMALISERS = ("auto", "closed", "quadrature", "monte-carlo", "laplace")
FEW_DIMENSIONS = 3
"""Up to here nodes of a tensor rule are few."""
ORDER = 8
DRAWS = 128
MOST_NODES = 100_000
BLOCK = 50
"""Steps between two looks at the clock."""


class ProximalSample(msgspec.Struct, frozen=True):
    """``particles`` (n, d) after all steps, and over the steps (from the start on) the mean ``potential`` and the root
    mean square ``speed`` |v|, v the move of a particle per step over η: without noise it falls to zero at rest.
    ``gradients`` and ``values`` count evaluations of ∇V and V; ``normaliser`` says how log Z was computed.
    """

    particles: np.ndarray
    potential: np.ndarray
    speed: np.ndarray
    gradients: int
    values: int
    normaliser: str
    seconds: float


class ProximalSampler:
    """Sample π ∝ e^{-βV} by x_i ← x_i - ηM(∇V(x_i) + β⁻¹∇ log prox ρ(x_i)), ρ the particles: no noise, no rejection.

    Preconditioned Regularized Wasserstein Proximal Sampling, arXiv:2509.01685 (the preconditioned kernel is our
    convention: |x - y|² in the metric M⁻¹). A step is a block of L2 attention among the particles
    (``model.followups.ProximalAttention``), so that a run can be looked at, differentiated and continued.

    You will see ``speed`` fall to zero. What remains is a bias of T, not of η: a quadratic V ends at covariance
    (P⁻¹ - T²MPM)/β [derived], and n particles add about 0.1/(nτ) of that, τ = T times the eigenvalues of MP [measured].
    The kernel convolved with the particles, ``log_density``, has no bias of T on quadratics.

    Good values: M near the covariance of the target times β (then one T suits all directions), T = 0.05 to 0.2, η =
    T to 2T, n = 100 to 1000, a few hundred steps, in few dimensions: 200 particles in d = 10 end far too narrow.
    Where V bends up by more than 1/(TM) particles gather on lines. Cost of a step O(n²d), n gradients of V and the
    normaliser's work.

    Args:
        potential: V, a JAX function of one point (d,), or a ``QuadraticPotential``.
        dim: d ≥ 1, the dimension of the points. The larger, the more particles a target takes.
        regularisation: T > 0. The larger, the smoother and the more biased; with T below the distance of neighbouring
            particles, each sees itself alone.
        step: η > 0. The larger, the fewer steps; too large a step is refused (quadratics) or ends the run.
        beta: β > 0, the inverse temperature. The larger, the narrower the target.
        preconditioner: M, a number or a (d, d) matrix, symmetric with eigenvalues > 0.
        gradient: ∇V as a JAX function, where it is cheaper than the derivative of V.
        normaliser: how log Z(y), the mean of e^{-βV/2} over N(y, (2T/β)M), is computed. "closed": for quadratics,
            O(d²); "quadrature": ``nodes``^d values of V for each particle, Gauss-Hermite; "monte-carlo": ``nodes``
            values, drawn once with ``seed``; "laplace": a Hessian of V, the work of d gradients, for V that bend down
            less than 1/T. "auto": closed, quadrature for d ≤ 3, monte-carlo beyond.
        nodes: 8 in each direction for quadrature and 128 draws by default. The more, the more exact log Z.
    """

    papers = (PROXIMAL,)

    def __init__(
        self,
        potential: Any,
        dim: int,
        regularisation: float = 0.1,
        step: float = 0.1,
        *,
        beta: float = 1.0,
        preconditioner: Any = 1.0,
        gradient: Any = None,
        normaliser: str = "auto",
        nodes: int | None = None,
    ) -> None:
        self.dim = positive_integer("dim", dim)
        self.step = finite_number("step", step, 0.0, open_low=True)
        self.normaliser, self.nodes = self._chosen(potential, normaliser, nodes)
        options = {"regularisation": regularisation, "beta": beta, "gradient": gradient}
        matrix = checked_preconditioner(preconditioner, self.dim)
        self._model = ProximalAttention(potential, self.dim, preconditioner=matrix, normaliser=self._rule(0), **options)
        if isinstance(potential, QuadraticPotential):
            self._check_quadratic(np.asarray(potential.precision), matrix)

    def _chosen(self, potential: Any, normaliser: str, nodes: int | None) -> tuple[str, int]:
        """The rule by name, and how many nodes it has."""
        quadratic = isinstance(potential, QuadraticPotential)
        auto = "closed" if quadratic else "quadrature" if self.dim <= FEW_DIMENSIONS else "monte-carlo"
        name = auto if one_of("normaliser", normaliser, NORMALISERS) == "auto" else normaliser
        require(quadratic or name != "closed", "normaliser", "be another than 'closed' unless V is quadratic", name)
        if name in ("closed", "laplace"):
            require(nodes is None, "nodes", f"be None for the normaliser '{name}'", nodes)
            return name, 0
        count = positive_integer("nodes", (ORDER if name == "quadrature" else DRAWS) if nodes is None else nodes)
        total = float(count) ** self.dim if name == "quadrature" else count
        require(total <= MOST_NODES, "nodes", f"make at most {MOST_NODES} points", nodes)
        return name, count

    def _rule(self, seed: int) -> Normaliser:
        if self.normaliser == "quadrature":
            return hermite_nodes(self.dim, self.nodes)
        if self.normaliser == "monte-carlo":
            return drawn_nodes(self.dim, self.nodes, jax.random.fold_in(jax.random.key(seed), 1))
        return ClosedForm() if self.normaliser == "closed" else Laplace()

    def _check_quadratic(self, precision: np.ndarray, matrix: np.ndarray) -> None:
        kernel = self._model.kernel
        known = Quadratic(precision, matrix, float(kernel.regularisation), float(kernel.beta))
        largest = float(shrinkages(known)[-1])
        if largest >= 1:
            most = known.regularisation / largest
            raise ArgumentError(
                f"Argument `regularisation` must be below {most:.4g}, the least variance of the target in the metric "
                f"of the preconditioner, but is {known.regularisation:g}: particles would gather there."
            )
        if self.step >= stable_step(known):
            raise ArgumentError(
                f"Argument `step` must be below {stable_step(known):.4g}, where the sampler is unstable, "
                f"but is {self.step:g}."
            )

    def model(self, seed: int = 0) -> ProximalAttention:
        """The attention block, for ``pl.flow`` and ``pl.layers``; ``seed`` is that of drawn nodes."""
        return eqx.tree_at(lambda m: m.normaliser, self._model, self._rule(positive_integer("seed", seed, 0)))

    def sample(
        self, n: int = 200, steps: int = 500, seed: int = 0, *, start: Any = None, progress: bool | None = None
    ) -> ProximalSample:
        """``steps`` steps of ``n`` particles from N(0, I), or from ``start`` (n, d).

        To go on, start from the particles of the last sample with the same seed: nothing else is remembered, and
        200 + 300 steps are 500 steps bit for bit. Progress is shown on a terminal after two seconds.
        """
        require_float64("Proximal sampling needs")
        make_room_for_programs()
        began, model = time.perf_counter(), self.model(seed)
        count = positive_integer("steps", steps, 0)
        if start is None:
            begin = jax.random.normal(jax.random.key(seed), (positive_integer("n", n, 2), self.dim))
        else:
            begin = jnp.asarray(finite_array("start", start, ("n", self.dim)).astype(float))
            require(len(begin) >= 2, "start", "have at least 2 rows", start)
        x, seen, eta = begin, [], jnp.asarray(self.step)
        with Progress("proximal sampling", count, show=progress) as bar:
            for done in range(0, count, BLOCK):
                x, look = _steps(model, x, eta, min(BLOCK, count - done))
                seen.append(np.asarray(look))
                self._check_finite(seen[-1], done)
                bar.update(done + len(seen[-1]))
        seen.append(np.asarray(_look(model, x))[None])
        rows = np.concatenate(seen)
        self._check_finite(rows[-1:], count)
        self._check_quiet(rows[:, 1], float(np.asarray(x).std(axis=0).max()))
        evaluations = len(begin) * (count + 1)
        return ProximalSample(
            np.asarray(x),
            rows[:, 0],
            rows[:, 1],
            evaluations * (1 + (self.dim if self.normaliser == "laplace" else 0)),
            evaluations * self._values(),
            self.normaliser,
            time.perf_counter() - began,
        )

    def log_density(self, particles: Any, points: Any, seed: int = 0) -> np.ndarray:
        """log prox ρ at ``points`` (k, d), ρ the ``particles`` (n, d): a density, the sampler's estimate of π."""
        require_float64("Proximal sampling needs")
        ours = jnp.asarray(finite_array("particles", particles, ("n", self.dim)).astype(float))
        where = jnp.asarray(finite_array("points", points, ("k", self.dim)).astype(float))
        require(len(ours) > 0, "particles", "have at least one row", particles)
        return np.asarray(_density(self.model(seed), ours, where))

    def _values(self) -> int:
        """Values of V for each particle and step."""
        return {"quadrature": self.nodes**self.dim, "monte-carlo": self.nodes + self.nodes % 2, "laplace": 1}.get(
            self.normaliser, 0
        )

    def _check_finite(self, rows: np.ndarray, done: int) -> None:
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(bad):
            bends = " (or V bends down more than `laplace` can bear)" if self.normaliser == "laplace" else ""
            raise ArgumentError(
                f"Argument `step` must be smaller: particles left every bound after {done + bad[0]} steps of "
                f"{self.step:g}{bends}."
            )

    def _check_quiet(self, speed: np.ndarray, spread: float) -> None:
        """A sampler without noise whose particles go on jumping by a share of their spread never comes to rest."""
        late = speed[len(speed) // 2]
        if len(speed) > BLOCK and self.step * speed[-1] > 0.05 * spread and speed[-1] > 0.5 * late:
            text = f"Particles still move by {self.step * speed[-1]:.3g} in a step: take a smaller step, or more steps."
            warnings.warn(text, PathlinesWarning, stacklevel=3)


@eqx.filter_jit
def _look(model: ProximalAttention, x: Float[Array, "n d"]) -> Float[Array, " 2"]:
    return _watched(model, x)[1]


@eqx.filter_jit
def _density(model: ProximalAttention, particles: Array, points: Array) -> Array:
    return model.log_density(particles, points)


def _watched(model: ProximalAttention, x: Float[Array, "n d"]) -> tuple[Array, Float[Array, " 2"]]:
    """The velocity, mean potential and root mean square speed."""
    move = model.drift(x, jnp.zeros(()))
    speed = jnp.sqrt(jnp.mean(jnp.sum(move**2, axis=1)))
    return move, jnp.stack([jnp.mean(jax.vmap(model.potential.value)(x)), speed])


@eqx.filter_jit
def _steps(model: ProximalAttention, x: Float[Array, "n d"], eta: Array, count: int) -> tuple[Array, Array]:
    """``count`` steps, and what is seen before each."""

    def one(x: Array, _: None) -> tuple[Array, Array]:
        move, seen = _watched(model, x)
        return x + eta * move, seen

    return jax.lax.scan(one, x, None, length=count)
