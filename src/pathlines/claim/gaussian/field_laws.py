"""What every kind of attention obeys: copies and order of tokens, equal kinds, stability in the law.

A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322 (the estimate); constants are derived.
"""

from __future__ import annotations

from typing import Annotated, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from pathlines.attention import ATTENTIONS
from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.fitting import Mistake
from pathlines.claim.tolerance import absolute, at_most
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import UNIFIED
from pathlines.foundation.setting import Setting, means
from pathlines.limit.gaussian.moments import head
from pathlines.limit.gaussian.stability import KINDS, law_constant
from pathlines.model import SelfAttention
from pathlines.observable.distances import cloud_distance
from pathlines.weights import FixedWeights, IdentityWeights

_drift = eqx.filter_jit(lambda model, x: model.drift(x, jnp.zeros(())))


def _field(kind: str, weights: Any, x: np.ndarray, masses: Any = None, **options: Any) -> np.ndarray:
    """Velocities of x; tokens of mass zero go before them to a common number, so that each kind compiles once."""
    count, missing = len(x), LARGEST - len(x)
    whole = np.concatenate([np.repeat(x[:1], missing, axis=0), x])
    multiplicities = np.concatenate([np.zeros(missing), np.ones(count) if masses is None else masses])
    beta = options.pop("beta", 1.0)
    model = SelfAttention(beta, attention=ATTENTIONS[kind](), weights=weights, multiplicities=multiplicities, **options)
    return np.asarray(_drift(model, jnp.asarray(whole)))[missing:]


# --- C27

LARGEST = 16


class Fields(Setting):
    """Tokens that are doubled, permuted and merged."""

    d: of.Dimension = 3
    beta: of.Beta = 2.0
    v: Annotated[float, means("value on the line", "v")] = 0.7
    a: Annotated[float, means("score on the line", "a")] = 0.5
    point: Annotated[float, means("place of the two opposite tokens on the line", "x")] = 1.3
    seed: of.Seed = 0


def simulate_copies(s: Fields) -> Evidence:
    """Largest relative differences between fields that must agree."""
    rng = np.random.default_rng(s.seed)
    V, Q, K = 0.6 * rng.standard_normal((3, s.d, s.d))
    x, weights, worst = rng.standard_normal((LARGEST // 2, s.d)), FixedWeights(V, Q, K), {}
    order, counts = rng.permutation(len(x)), 1 + np.arange(len(x)) % 3
    for kind in ATTENTIONS:
        plain = _field(kind, weights, x, space="euclidean")
        size = np.abs(plain).max()
        doubled = _field(kind, weights, np.repeat(x, 2, axis=0), space="euclidean")[::2]
        permuted = _field(kind, weights, x[order], space="euclidean")
        copies = _field(kind, weights, np.repeat(x, counts, axis=0), space="euclidean")
        merged = _field(kind, weights, x, counts, space="euclidean")
        pairs = ((doubled, plain), (permuted, plain[order]), (copies, np.repeat(merged, counts, axis=0)))
        worst[kind] = max(float(np.abs(a - b).max()) for a, b in pairs) / size
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    l2 = _field("l2", IdentityWeights(), unit, beta=s.beta / 2)
    sphere = float(np.abs(l2 - _field("softmax", IdentityWeights(), unit, beta=s.beta)).max())
    pair = np.array([[s.point], [-s.point]])
    one = FixedWeights([[s.v]], [[s.a]])
    tanh = [float(_field(k, one, pair, space="euclidean")[0, 0]) for k in ("softmax", "sinkhorn")]
    curves = (Curve("largest difference, by kind", np.arange(len(worst)), np.maximum(list(worst.values()), 1e-18)),)
    return Evidence({"copies": max(worst.values()), "sphere": sphere, "pair": tanh}, curves=curves)


def predict_copies(s: Fields) -> Evidence:
    """Zero, and v x tanh(ax²) for two opposite tokens."""
    value = s.v * s.point * np.tanh(s.a * s.point**2)
    return Evidence({"copies": 0.0, "sphere": 0.0, "pair": [value, value]})


def _hotter(right: Any, size: float) -> Any:
    """l2 attention at another temperature, where it has one."""
    factor = {"l2": 1 + size}
    return lambda kind, *a, beta=1.0, **k: right(kind, *a, beta=beta * factor.get(kind, 1.0), **k)


_EXACT = absolute(1e-12, "rounding, and the tolerance 1e-12 of Sinkhorn's iteration")

claim(
    "gaussian/C27",
    UNIFIED,
    "the field is one of measures",
    "Doubling all tokens, permuting them or merging equal ones into a weight changes no field, of any kind; l2 at β/2 "
    "is softmax at β on the sphere; two opposite tokens on a line feel v x tanh(ax²) under softmax and Sinkhorn.",
    where="definition of the fields on measures",
    models=("softmax", "l2", "sinkhorn", "sigmoid", "linear", "affine", "unnormalised"),
    quick=Fields(),
    within={"copies": _EXACT, "sphere": _EXACT, "pair": _EXACT},
    simulate=simulate_copies,
    predict=predict_copies,
    axes=Axes("kind, in alphabetical order", "largest relative difference", y_scale="log"),
    mistakes=(Mistake("_field", "β of l2 too large by {:g} of itself", _hotter, (1e-9, 1e-6, 0.01)),),
)


# --- C17


def _ball(rng: np.random.Generator, count: int, d: int, radius: float) -> np.ndarray:
    x = rng.standard_normal((count, d))
    return radius * x * (rng.uniform(size=(count, 1)) ** (1 / d)) / np.linalg.norm(x, axis=1, keepdims=True)


class Dobrushin(Setting):
    """Pairs of laws in a ball."""

    d: of.Dimension = 2
    atoms: Annotated[of.Count, means("tokens of each law")] = 12
    queries: Annotated[of.Count, means("points at which fields are compared")] = 20
    pairs: Annotated[of.Count, means("pairs of laws")] = 40
    radius: Annotated[of.Positive, means("radius of the ball", "R")] = 1.0
    strength: Annotated[of.NonNegative, means("size of the entries of Q, K and V")] = 0.7
    spread: Annotated[of.NonNegative, means("largest distance of the laws of a pair")] = 1.0
    seed: of.Seed = 0


def simulate_stability(s: Dobrushin) -> Evidence:
    """Largest |Γ_μ - Γ_ν|/W_1(μ, ν) over random pairs of laws with equally many atoms, at random points of the ball."""
    rng = np.random.default_rng(s.seed)
    V, Q, K = (s.strength * rng.standard_normal((3, s.d, s.d))) / np.sqrt(s.d)
    weights = FixedWeights(V, Q, K)
    found: dict[str, list[float]] = {k: [] for k in KINDS}
    masses = np.concatenate([np.ones(s.atoms), np.zeros(s.queries)])
    models = {
        k: SelfAttention(1.0, attention=ATTENTIONS[k](), weights=weights, multiplicities=masses, space="euclidean")
        for k in KINDS
    }
    for _ in range(s.pairs):
        one = _ball(rng, s.atoms, s.d, s.radius)
        near = one + s.spread * rng.uniform() * _ball(rng, s.atoms, s.d, s.radius)
        other = near * np.minimum(1, s.radius / np.linalg.norm(near, axis=1, keepdims=True))
        points = _ball(rng, s.queries, s.d, s.radius)
        distance = cloud_distance(one, other, 1).value
        for kind, model in models.items():
            fields = [np.asarray(_drift(model, jnp.asarray(np.concatenate([c, points])))) for c in (one, other)]
            gap = np.linalg.norm((fields[0] - fields[1])[s.atoms :], axis=1).max()
            found[kind].append(float(gap) / distance)
    curves = tuple(Curve(k, np.arange(s.pairs), sorted(v)) for k, v in found.items())
    return Evidence({"ratio": [max(found[k]) for k in KINDS]}, curves=curves)


def predict_stability(s: Dobrushin) -> Evidence:
    """L_μ(R) of each kind."""
    rng = np.random.default_rng(s.seed)
    V, Q, K = (s.strength * rng.standard_normal((3, s.d, s.d))) / np.sqrt(s.d)
    bounds = [law_constant(k, head(V, query=Q, key=K), s.radius) for k in KINDS]
    flat = np.ones(s.pairs)
    curves = tuple(Curve(f"bound, {k}", np.arange(s.pairs), b * flat) for k, b in zip(KINDS, bounds, strict=True))
    return Evidence({"ratio": bounds}, curves=curves)


claim(
    "gaussian/C17",
    UNIFIED,
    "Dobrushin: fields of near laws are near (constants derived)",
    "In a ball of radius R, |Γ_μ − Γ_ν| ≤ L_μ(R) W₁(μ, ν): |V|(1 + 2aR²)e^{2aR²} for softmax, and the like for l2, "
    "sigmoid and linear attention.",
    where="well-posedness: Dobrushin's estimate; the constants are derived",
    models=("softmax", "l2", "sigmoid", "linear"),
    quick=Dobrushin(),
    full=Dobrushin(pairs=300),
    within={"ratio": at_most("an upper bound; random pairs reach about a fifth of it")},
    simulate=simulate_stability,
    predict=predict_stability,
    axes=Axes("pair, sorted", "|Γ_μ − Γ_ν| / W₁", y_scale="log"),
)
