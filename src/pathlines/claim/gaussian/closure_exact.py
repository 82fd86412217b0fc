"""Gaussians stay Gaussian: weighted tokens against the equations for mean and covariance.

A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322. Tokens are Gauss-Hermite nodes of the
Gaussian, so that their own attention is its mean field to quadrature accuracy.
"""

from __future__ import annotations

from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np

from pathlines.attention import ATTENTIONS
from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.gaussian import reference_set as R
from pathlines.claim.tolerance import absolute, standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import UNIFIED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.integrate.run import Run
from pathlines.limit.gaussian.moments import Head, Moments, head, moments
from pathlines.model import SelfAttention
from pathlines.model.gaussian.closure import Cloud, gaussian_closure, sigma_points
from pathlines.model.gaussian.normalised import L2Gaussian
from pathlines.numerics.quadrature import gauss_hermite
from pathlines.weights import FixedWeights

ItsClosures = Annotated[tuple[str, ...], means("attentions whose moment equations are compared")]
Particles = Annotated[tuple[str, ...], means("attentions whose tokens are compared")]


class Closures(Setting):
    """One cloud under every attention that keeps Gaussians."""

    A: of.QueryKey = R.A
    V: of.ValueMatrix = R.V
    A2: Annotated[of.Matrix, means("query-key matrix of the second head", "A₂")] = R.A2
    V2: Annotated[of.Matrix, means("value matrix of the second head", "V₂")] = R.V2
    Q: Annotated[of.Matrix, means("query matrix of l2, Sinkhorn and linear attention", "Q")] = R.Q
    K: Annotated[of.Matrix, means("key matrix of l2, Sinkhorn and linear attention", "K")] = R.K
    mean: of.CloudMean = R.MEAN
    covariance: of.Covariance = R.COVARIANCE
    eps: of.Epsilon = 0.7
    until: of.Until = 1.0
    nodes: of.Nodes = 20
    drop: of.LeftOut = 1e-22
    rtol: of.Rtol = 1e-10
    closures: ItsClosures = ("softmax", "softmax-2", "l2", "sinkhorn", "linear")
    particles: Particles = ("softmax", "softmax-2", "l2", "sinkhorn", "linear")


def _weights(s: Closures, case: str) -> tuple[str, Any, Any, Any]:
    """(kind, V, Q, K) of a case; "softmax-2" has two heads."""
    if case == "l2":
        return "l2", s.V, s.Q, s.K
    if case == "softmax-2":
        d = len(s.V)
        return "softmax", [s.V, s.V2], [s.A, s.A2], [np.eye(d)] * 2
    return case, s.V, s.A, np.eye(len(s.V))


def _options(s: Closures, kind: str) -> dict[str, Any]:
    return {"eps": s.eps, "prefactor": "1"} if kind == "sinkhorn" else {}


def _closure(s: Closures, case: str) -> Run:
    kind, value, query, key = _weights(s, case)
    model = gaussian_closure(kind, np.asarray(value), np.asarray(query), np.asarray(key), **_options(s, kind))
    start = sigma_points(s.mean, s.covariance)
    return flow(model, start, times=[s.until], record=("cloud_mean", "covariance"), method="dop853", rtol=1e-12)


def _particles(s: Closures, case: str, fewer: int = 0) -> Run:
    """Nodes of the law as tokens; tokens of mass zero go before ``fewer`` nodes, so that each case compiles once."""
    kind, value, query, key = _weights(s, case)
    whole, _ = gauss_hermite(s.mean, s.covariance, s.nodes, s.drop)
    nodes, weighed = gauss_hermite(s.mean, s.covariance, s.nodes - fewer, s.drop)
    unheard = max(0, len(whole) - len(nodes))
    tokens, masses = np.concatenate([whole[:unheard], nodes]), np.concatenate([np.zeros(unheard), weighed])
    weights = FixedWeights(np.asarray(value), np.asarray(query), np.asarray(key))
    attention = ATTENTIONS[kind](**_options(s, kind))
    model = SelfAttention(1.0, attention=attention, weights=weights, multiplicities=masses, space="euclidean")
    record = ("cloud_mean", "covariance")
    return flow(model, tokens, times=[s.until], record=record, method="dop853", rtol=s.rtol)


def _row(run: Run) -> list[float]:
    return [*run["cloud_mean"].values[-1], *run["covariance"].values[-1].ravel()]


def simulate(s: Closures) -> Evidence:
    """Mean and covariance at the end, of the closures and of the tokens, beside those of two nodes fewer."""
    closures = [_closure(s, case) for case in s.closures]
    particles = [_particles(s, case) for case in s.particles]
    values = {
        "closures": np.concatenate([_row(r) for r in closures]),
        "tokens": np.concatenate([_row(r) for r in particles]),
    }
    coarse = np.concatenate([_row(_particles(s, case, 2)) for case in s.particles])
    uncertainty = {"tokens": np.maximum(1e-8, 5 * np.abs(values["tokens"] - coarse).max())}
    entries = np.arange(len(_row(closures[0])))
    curves = tuple(Curve(f"tokens, {c}", entries, _row(r)) for c, r in zip(s.particles, particles, strict=True))
    return Evidence(values, uncertainty, curves=curves, runs=(*closures, *particles))


def _heads(s: Closures, case: str) -> tuple[str, list[Head]]:
    kind, value, query, key = _weights(s, case)
    if case == "softmax-2":
        return kind, [head(v, query=q, key=k) for v, q, k in zip(value, query, key, strict=True)]
    return kind, [head(value, query=query, key=key)]


def _moments(s: Closures, case: str) -> Moments:
    kind, heads = _heads(s, case)
    return moments(kind, heads, s.mean, s.covariance, [s.until], eps=s.eps)


def _flat(found: Moments) -> np.ndarray:
    return np.concatenate([found.mean[-1], found.covariance[-1].ravel()])


def predict(s: Closures) -> Evidence:
    """The equations for α and Σ by SciPy."""
    rows = {case: _flat(_moments(s, case)) for case in {*s.closures, *s.particles}}
    curves = tuple(Curve(f"α, Σ, {c}", np.arange(len(rows[c])), rows[c]) for c in s.particles)
    values = {
        "closures": np.concatenate([rows[c] for c in s.closures]),
        "tokens": np.concatenate([rows[c] for c in s.particles]),
    }
    return Evidence(values, curves=curves, source="SciPy, covariance form")


_QUADRATURE = standard_errors(1.0, "1e-8, or the quadrature: five times the change from two nodes fewer per dimension")

claim(
    "gaussian/C01",
    UNIFIED,
    "Gaussian clouds stay Gaussian",
    "Under softmax (any heads), l2, Sinkhorn and linear attention a Gaussian cloud stays Gaussian, and its mean and "
    "covariance solve α′ = c + Bα, Σ′ = BΣ + ΣBᵀ with the field Γ(x) = c + Bx of the cloud itself.",
    where="Gaussian closure: covariance equations of softmax, several heads, L2 and Sinkhorn; linear attention derived",
    models=(*(f"gaussian-{k}" for k in ("softmax", "l2", "sinkhorn", "linear", "affine")), "sa", "l2", "sinkhorn"),
    quick=Closures(),
    full=Closures(
        closures=("softmax", "softmax-2", "l2", "sinkhorn", "linear", "affine"),
        particles=("softmax", "softmax-2", "l2", "sinkhorn", "linear", "affine"),
    ),
    within={
        "closures": absolute(1e-9, "factor form against covariance form, solvers at 1e-12"),
        "tokens": _QUADRATURE,
    },
    simulate=simulate,
    predict=predict,
    axes=Axes("entries of α(1) and Σ(1)", "value"),
)


# --- ER-02: a linear term in the covariance equation


class SoftmaxRate(Setting):
    """One cloud at time zero."""

    A: of.QueryKey = R.A
    V: of.ValueMatrix = R.V
    mean: of.CloudMean = R.MEAN
    covariance: of.Covariance = R.COVARIANCE
    nodes: of.Nodes = 20
    drop: of.LeftOut = 1e-22


def simulate_rate(s: SoftmaxRate) -> Evidence:
    """dΣ/dt of the tokens of the cloud under softmax attention, beside that of two nodes fewer."""
    rate, coarse = _token_rate(s, s.nodes), _token_rate(s, s.nodes - 2)
    return Evidence({"rate": rate}, {"rate": np.maximum(1e-8, 5 * np.abs(rate - coarse).max())})


def _token_rate(s: SoftmaxRate, nodes: int) -> np.ndarray:
    """From the velocities of the tokens."""
    tokens, masses = gauss_hermite(s.mean, s.covariance, nodes, s.drop)
    weights = FixedWeights(np.asarray(s.V), np.asarray(s.A), np.eye(len(s.V)))
    model = SelfAttention(1.0, weights=weights, multiplicities=masses, space="euclidean")
    velocity = np.asarray(model.drift(jnp.asarray(tokens), jnp.zeros(())))
    centred = tokens - masses @ tokens
    half = (velocity * masses[:, None]).T @ centred
    return (half + half.T).ravel()


def predict_rate(s: SoftmaxRate, linear: bool) -> Evidence:
    """VΣAΣ + (·)ᵀ, with VΣ + ΣVᵀ in front if printed so."""
    V, cov = np.asarray(s.V), np.asarray(s.covariance)
    half = V @ cov @ np.asarray(s.A) @ cov + (V @ cov if linear else 0.0)
    return Evidence({"rate": (half + half.T).ravel()})


C01B = claim(
    "gaussian/C01b",
    UNIFIED,
    "the covariance equation of softmax has no linear term",
    "dΣ/dt = VΣAΣ + (VΣAΣ)ᵀ: V alone moves the mean, not the covariance.",
    where="Gaussian closure: covariance equation of softmax",
    models=("sa",),
    quick=SoftmaxRate(),
    within={"rate": _QUADRATURE},
    simulate=simulate_rate,
    predict=lambda s: predict_rate(s, False),
)

C01B.printed_as(
    "gaussian/ER-02",
    "a linear term in the covariance equation",
    "For softmax attention dΣ/dt = VΣ + ΣVᵀ + VΣAΣ + (VΣAΣ)ᵀ, as a summary of the paper prints.",
    where="a secondary summary of the paper, not the paper",
    predict=lambda s: predict_rate(s, True),
)


# --- ER-03: l2 with A scaled and KᵀK not


class L2Rate(Setting):
    """One cloud at time zero under l2 attention."""

    V: of.ValueMatrix = R.V
    Q: Annotated[of.Matrix, means("query matrix", "Q")] = R.Q
    K: Annotated[of.Matrix, means("key matrix", "K")] = R.K
    covariance: of.Covariance = R.COVARIANCE


def simulate_l2(s: L2Rate) -> Evidence:
    """dΣ/dt of the l2 closure with queries and keys scaled by d^{-1/4} each, so that scores have the usual 1/√d."""
    d = len(s.V)
    model = L2Gaussian(s.V, np.asarray(s.Q) / d**0.25, np.asarray(s.K) / d**0.25)
    cloud = Cloud(jnp.zeros(d), jnp.asarray(R.factor_of(s.covariance)))
    half = np.asarray(model.drift(cloud, jnp.zeros(())).factor @ cloud.factor.T)
    return Evidence({"rate": (half + half.T).ravel()})


def predict_l2(s: L2Rate, keys_scaled: bool) -> Evidence:
    """2VSA Σ/√d + (·)ᵀ, S = (Σ^{-1} + 2KᵀK/√d)^{-1}, or without the 1/√d in S as in the scripts."""
    V, Q, K, cov = (np.asarray(x, float) for x in (s.V, s.Q, s.K, s.covariance))
    root = np.sqrt(len(V))
    S = np.linalg.inv(np.linalg.inv(cov) + 2 * K.T @ K / (root if keys_scaled else 1.0))
    half = 2 * V @ S @ K.T @ Q @ cov / root
    return Evidence({"rate": (half + half.T).ravel()})


_ROUNDING = absolute(1e-12, "rounding")

C10B = claim(
    "gaussian/C10b",
    UNIFIED,
    "l2 closure with the usual 1/√d",
    "With Q and K scaled by d^{−1/4} each, dΣ/dt = 2VSKᵀQΣ/√d + (·)ᵀ with S = (Σ⁻¹ + 2KᵀK/√d)⁻¹: both "
    "matrices are scaled.",
    where="Gaussian closure: covariance equation of L2 attention, with scores over √d",
    models=("gaussian-l2",),
    quick=L2Rate(),
    within={"rate": _ROUNDING},
    simulate=simulate_l2,
    predict=lambda s: predict_l2(s, True),
)

C10B.printed_as(
    "gaussian/ER-03",
    "l2 closure of the published scripts",
    "The l2 closure with the usual scaling has A/√d but KᵀK unscaled in S, as the authors' scripts compute.",
    where="the authors' scripts, closure of L2 attention",
    predict=lambda s: predict_l2(s, False),
    note="It is the closure of neither kernel.",
)
