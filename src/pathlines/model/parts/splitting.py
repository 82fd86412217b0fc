"""Steps of stochastic equations: the drift's own flow around the noise.

dX = D(X) dt + ε dM(X) with small noise. A step of length δ is (derived)

    x ↦ Φ_{δ/2} ∘ S ∘ Φ_{δ/2} (x),     Φ_h the flow of dX/dt = D(X),  S a noise step right in its first two moments,

with an error O(ε²δ² + ε⁴δ) of every smooth mean: what the drift does alone is exact, whatever δ. An Euler step has the
error O(δ) of the drift by itself, so with δ ~ η it hides the corrector of a homogenized drift, which is O(η) too. A
symmetric step costs eight evaluations of D and one of the noise; without drift Φ is the identity and S is the step.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

States = Float[Array, "..."]
Map = Callable[[States], States]
Field = Callable[[States, Array], States]

STAGES = ((0.0, 0.5, 0.5, 1.0), (1 / 6, 1 / 3, 1 / 3, 1 / 6))
"""Where the stages of the classical Runge-Kutta method stand, and their weights."""


def drift_flow(drift: Field, retract: Map, x: States, span: Array) -> States:
    """Φ_span(x) by one step of the classical Runge-Kutta method, every stage and the end retracted: error O(span⁵).

    ``drift(x, stage)`` hears the number 0..3 of the stage: a drift that is an average over random draws must draw them
    afresh for each, because draws shared by two stages leave their covariance in the mean, an error O(span²). The
    stages run in a loop, so that the drift is compiled once.
    """

    def one(carry: tuple[States, States], at: tuple[Array, Array, Array]) -> tuple[tuple[States, States], None]:
        slope, total = carry
        number, place, weight = at
        slope = drift(retract(x + span * place * slope), number)
        return (slope, total + weight * slope), None

    zero, (places, weights) = jnp.zeros_like(x), jnp.asarray(STAGES, x.dtype)
    (_, mean), _ = jax.lax.scan(one, (zero, zero), (jnp.arange(len(places)), places, weights))
    return retract(x + span * mean)


def split_step(drift: Field, noise: Map, retract: Map, x: States, delta: Array) -> States:
    """Φ_{δ/2}(S(Φ_{δ/2}(x))), S = ``noise``, a map that ends in the domain; ``drift`` hears stages 0..7."""
    count = len(STAGES[0])
    before = drift_flow(drift, retract, x, delta / 2)
    return drift_flow(lambda y, stage: drift(y, count + stage), retract, noise(before), delta / 2)
