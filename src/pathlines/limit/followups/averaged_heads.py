"""Deep chains of random heads: averaged drift by quadrature, law of fluctuations, AdamW by hand (arXiv:2605.11059)."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp

from pathlines.foundation.errors import ArgumentError, finite_array, finite_number, positive_integer
from pathlines.foundation.papers.followups import ADAMW

SOURCES = (ADAMW,)
Reals = NDArray[Any]
MOST_NODES = 5000
MOST_WEIGHTS = 20_000_000


class Fluctuation(msgspec.Struct, frozen=True):
    """Root mean square errors per token of the last tokens, and of n times the gradient at the first layer.

    Each comes with the standard error that the sampled covariance leaves. ``beyond`` is the relative variance of what
    the derivatives of random heads do to a gradient, Σ_l T²/(L²H) Var(Dφᵀp_l)/|p_l|²: the size of the next order in
    1/(LH), of which 0.3 is left in the tokens and 1.2 in the gradient where we looked (σ = 0.5..2, T = 1, 2, d = 2, 3).
    """

    tokens: float
    tokens_error: float
    gradient: float
    gradient_error: float
    beyond: float


class AveragedHeads:
    """f(X)_i = E Σ_j softmax_j(x_iᵀBx_j) V x_j over B = B̄ + σ_B G, V = V̄ + σ_V G', and chains around it.

    Given x_i the scores are x_iᵀB̄x_j + σ_B|x_i|⟨g, x_j⟩ with one Gaussian vector g, so that the expectation is an
    integral over R^d, here by Gauss-Hermite nodes (``order`` per dimension, by default 7 or what 5000 nodes in all
    allow) [derived]. Steep scores need more: ``resolved`` compares orders.
    """

    def __init__(
        self, mean_score: ArrayLike, mean_value: ArrayLike, sigma_b: float, sigma_v: float, order: int | None = None
    ) -> None:
        self.b = finite_array("mean_score", mean_score, ("d", "d")).astype(float)
        d, most = len(self.b), most_order(len(self.b))
        if most < 2:
            raise ArgumentError(f"Argument `mean_score` must be at most 12 × 12, but is {d} × {d}.")
        count = min(7, most) if order is None else positive_integer("order", order)
        self.v = finite_array("mean_value", mean_value, (d, d)).astype(float)
        self.sigma_b, self.sigma_v = finite_number("sigma_b", sigma_b, 0.0), finite_number("sigma_v", sigma_v, 0.0)
        if count > most:
            raise ArgumentError(f"Argument `order` must be at most {most} for d = {d}, but is {count}.")
        nodes, weights = np.polynomial.hermite_e.hermegauss(count)
        self.g = np.array(list(itertools.product(nodes, repeat=d)))
        self.w = np.prod(list(itertools.product(weights / weights.sum(), repeat=d)), axis=1)

    def _heard(self, x: Reals) -> tuple[Reals, Reals, Reals]:
        """Weights (n, g, n), means (n, g, d) and lengths of the tokens."""
        size = np.sqrt(np.sum(x * x, axis=1))
        scores = (x @ self.b @ x.T)[:, None, :] + self.sigma_b * size[:, None, None] * (self.g @ x.T)
        a = np.exp(scores - scores.real.max(axis=-1, keepdims=True))
        a = a / a.sum(axis=-1, keepdims=True)
        return a, a @ x, size

    def drift(self, x: Reals) -> Reals:
        """f(X)."""
        return np.einsum("g,igd->id", self.w, self._heard(x)[1], optimize=True) @ self.v.T

    def jacobian(self, x: Reals) -> Reals:
        """∂f_ia/∂x_kb, of shape (nd, nd)."""
        (n, d), (a, m, size) = x.shape, self._heard(x)
        weighed = self.w[None, :, None] * a
        total, along = weighed.sum(axis=1), np.einsum("igk,gb->ikb", weighed, self.g, optimize=True)
        mean = np.einsum("igk,igp->ikp", weighed, m, optimize=True)
        bent = np.einsum("igk,igp,gb->ikpb", weighed, m, self.g, optimize=True)
        keys, pull = x @ self.b, self.sigma_b * size
        out = np.einsum("ik,pb->ipkb", total, np.eye(d))
        out = out + np.einsum("ikp,ib->ipkb", total[..., None] * x - mean, keys)
        out = out + np.einsum("i,ipkb->ipkb", pull, np.einsum("kp,ikb->ipkb", x, along) - bent.transpose(0, 2, 1, 3))
        # as the one who asks: Σ_j a_ij (x_j - m_i) ⊗ (B̄ x_j + σ⟨g, x_j⟩ x_i/|x_i|)
        answers = x @ self.b.T
        asked = np.einsum("ikp,kb->ipb", total[..., None] * x - mean, answers)
        swing = np.einsum("ikb,kp,kb->ip", along, x, x) - np.einsum("ikpb,kb->ip", bent, x)
        asked = asked + self.sigma_b * swing[:, :, None] * (x / size[:, None])[:, None, :]
        out[np.arange(n), :, np.arange(n)] += asked
        return np.einsum("ap,ipkb->iakb", self.v, out).reshape(n * d, n * d)

    def bend(self, x: Reals, p: Reals) -> Reals:
        """∂(Jᵀp)/∂X, by complex steps."""
        columns = []
        for k in range(x.size):
            moved = x.astype(complex).ravel()
            moved[k] += 1e-20j
            columns.append((self.jacobian(moved.reshape(x.shape)).T @ p).imag / 1e-20)
        return np.array(columns).T

    def limit(self, x: ArrayLike, target: ArrayLike, until: float = 1.0) -> tuple[Reals, Reals]:
        """X(T) of dX/ds = f(X), and the gradient of ½|mean X(T) - target|² in X(0), by the adjoint."""
        first = finite_array("x", x, ("n", "d")).astype(float)
        n, d = first.shape

        def along(s: float, flat: Reals) -> Reals:
            now, tangent = flat[: n * d].reshape(n, d), flat[n * d :].reshape(n * d, n * d)
            return np.concatenate([self.drift(now).ravel(), (self.jacobian(now) @ tangent).ravel()])

        start = np.concatenate([first.ravel(), np.eye(n * d).ravel()])
        last = solve_ivp(along, (0, until), start, "RK45", rtol=1e-7, atol=1e-9).y[:, -1]
        end, tangent = last[: n * d].reshape(n, d), last[n * d :].reshape(n * d, n * d)
        slope = np.broadcast_to((end.mean(axis=0) - target) / n, (n, d)).ravel()
        return end, (tangent.T @ slope).reshape(n, d)

    def last_tokens(self, x: ArrayLike, until: float = 1.0) -> Reals:
        """X(T) alone, for many tokens."""
        first = finite_array("x", x, ("n", "d")).astype(float)
        velocity = lambda s, flat: self.drift(flat.reshape(first.shape)).ravel()  # noqa: E731
        return solve_ivp(velocity, (0, until), first.ravel(), rtol=1e-7, atol=1e-9).y[:, -1].reshape(first.shape)

    def fluctuation(
        self, x: ArrayLike, target: ArrayLike, depth: int, heads: int, until: float = 1.0, draws: int = 20_000,
        seed: int = 0, gradient: bool = True,
    ) -> Fluctuation:  # fmt: skip
        """Errors of X_{l+1} = X_l + (T/LH) Σ_h Att(X_l) and of its backpropagated gradient, to leading order in 1/LH.

        At H = ∞ the chain is Euler's method for the averaged drift: that part of the error is exact. Around it each
        layer adds an independent error of covariance T²/(L²H) cov φ, φ one random head, which the later layers carry to
        the end; in the gradient at the first layer it adds D_{X_0}⟨p_{l+1}, φ(X_l)⟩ = Φ_lᵀ(Dφᵀp_{l+1} + A_lᵀH_{l+1}φ),
        Φ the tangent map, A = I + (T/L) Df and H the Hessian of the loss that is left. Covariances of one head are
        sampled."""
        now, rng = finite_array("x", x, ("n", "d")).astype(float), np.random.default_rng(seed)
        (n, d), size = now.shape, until / positive_integer("depth", depth)
        path, steps = [now], []
        for _ in range(depth):
            steps.append(np.eye(n * d) + size * self.jacobian(path[-1]))
            path.append(path[-1] + size * self.drift(path[-1]))
        end, first_slope = self.limit(now, target, until) if gradient else (self.last_tokens(now, until), now)
        carried, slope, beyond = np.eye(n * d), np.tile((path[-1].mean(axis=0) - target) / n, n), 0.0
        curved = np.tile(np.eye(d), (n, n)) / n**2
        tangents = [np.eye(n * d)]
        for step in steps:
            tangents.append(step @ tangents[-1])
        each, totals = max(2, draws // depth), np.zeros((2, 2))
        for layer in reversed(range(depth)):
            phi, pulled = self._heads(path[layer], slope.reshape(n, d), each, rng)
            beyond += size**2 / heads * pulled.var(axis=0).sum() / max(float(slope @ slope), 1e-300)
            sizes = [np.sum(((phi - phi.mean(axis=0)) @ carried.T) ** 2, axis=1)]
            if gradient:
                influence = (pulled + phi @ (steps[layer].T @ curved).T) @ tangents[layer]
                sizes.append(n**2 * np.sum((influence - influence.mean(axis=0)) ** 2, axis=1))
                curved = steps[layer].T @ curved @ steps[layer] + size * self.bend(path[layer], slope)
            for k, of in enumerate(sizes):
                totals[k] += of.sum() / (each - 1), of.var() / each
            carried, slope = carried @ steps[layer], steps[layer].T @ slope
        means = totals[:, 0] * size**2 / heads / n
        errors = np.sqrt(totals[:, 1]) * size**2 / heads / n
        means[0] += np.sum((path[-1] - end) ** 2) / n
        means[1] += n * np.sum((slope - first_slope.ravel()) ** 2)
        rms = np.sqrt(np.maximum(means, 1e-300))
        return Fluctuation(rms[0], errors[0] / (2 * rms[0]), rms[1], errors[1] / (2 * rms[1]), beyond)

    def _heads(self, x: Reals, p: Reals, count: int, rng: np.random.Generator) -> tuple[Reals, Reals]:
        """φ(X) and Dφ(X)ᵀp of random heads, (count, nd) each."""
        d = x.shape[1]
        b = self.b + self.sigma_b * rng.standard_normal((count, d, d))
        v = self.v + self.sigma_v * rng.standard_normal((count, d, d))
        values, pulled, _, _ = head_and_pull(x[None], b, v, p[None])
        return values.reshape(count, -1), pulled.reshape(count, -1)


def most_order(d: int, n: int = 1) -> int:
    """Nodes per dimension that can be afforded for n tokens of d dimensions."""
    most = min(MOST_NODES, MOST_WEIGHTS // n**2)
    return next(k for k in range(int(MOST_NODES), 0, -1) if k**d <= max(most, 1))


def resolved(
    x: ArrayLike, mean_score: ArrayLike, mean_value: ArrayLike, sigma_b: float, sigma_v: float, until: float = 1.0,
    within: float = 1e-3,
) -> tuple[AveragedHeads, AveragedHeads]:  # fmt: skip
    """The averaged drift with the fewest nodes that suffice, and one of another order that tells what it misses.

    Orders are compared by the distance that tokens go astray until T, at the start and after one step of Euler's
    method, in units of the root mean square token. Where none that can be afforded is within, the largest of them is
    given, beside a coarser one: what it misses is then overstated.
    """
    first = finite_array("x", x, ("n", "d")).astype(float)
    most = min(41, max(2, most_order(first.shape[1], len(first))))
    given = (mean_score, mean_value, sigma_b, sigma_v)
    orders = list(range(3, most + 1, 2)) if most >= 5 else [most - 1, most]
    theories = [AveragedHeads(*given, orders[0])]
    for order in orders[1:]:
        theories.append(AveragedHeads(*given, order))
        if astray(theories[-2], theories[-1], first, until) < within * np.sqrt(np.mean(np.sum(first**2, axis=1))):
            return theories[-2], theories[-1]
    return theories[-1], theories[-2]


def astray(one: AveragedHeads, other: AveragedHeads, x: Reals, until: float) -> float:
    """Root mean square distance, per token, that two drifts grow apart until T, from their values at two places."""
    there = x + until * one.drift(x)
    apart = [np.mean(np.sum((one.drift(p) - other.drift(p)) ** 2, axis=1)) for p in (x, there)]
    return float(until * np.sqrt(max(apart)))


def head_and_pull(x: Reals, b: Reals, v: Reals, p: Reals) -> tuple[Reals, Reals, Reals, Reals]:
    """Att(X) of heads (…, d, d), and the derivatives of ⟨p, Att(X)⟩ in X, B and V."""
    scores = x @ b @ np.swapaxes(x, -1, -2)
    a = np.exp(scores - scores.max(axis=-1, keepdims=True))
    a = a / a.sum(axis=-1, keepdims=True)
    m = a @ x
    q = p @ v
    along = a * (q @ np.swapaxes(x, -1, -2) - np.sum(q * m, axis=-1, keepdims=True))
    turned = np.swapaxes(along, -1, -2)
    in_x = np.swapaxes(a, -1, -2) @ q + turned @ x @ b + along @ x @ np.swapaxes(b, -1, -2)
    return m @ np.swapaxes(v, -1, -2), in_x, np.swapaxes(x, -1, -2) @ along @ x, np.swapaxes(p, -1, -2) @ m


class AdamW(msgspec.Struct, frozen=True):
    """θ ← θ - η(m̂/(√v̂ + ε) + wθ), m ← b₁m + (1-b₁)g, v ← b₂v + (1-b₂)g², hats divided by 1 - b^k."""

    rate: float = 0.1
    b1: float = 0.9
    b2: float = 0.99
    eps: float = 1e-3
    decay: float = 0.01


def train_by_hand(
    x: ArrayLike, target: ArrayLike, weights: ArrayLike, steps: int, rule: AdamW, until: float = 1.0
) -> tuple[Reals, Reals]:
    """Losses (steps + 1, runs) and last tokens (runs, n, d) of AdamW on weights (runs, L, H, 2, d, d).

    Gradients are multiplied by LH, so that they do not depend on depth and width.
    """
    theta, first = np.array(weights, float), np.asarray(x, float)
    depth, heads = theta.shape[1:3]
    size, n = until / (depth * heads), len(first)
    memory, square, losses = np.zeros_like(theta), np.zeros_like(theta), []
    for k in range(steps + 1):
        path = [np.broadcast_to(first, (len(theta), *first.shape))]
        for layer in range(depth):
            moved = head_and_pull(path[-1][:, None], theta[:, layer, :, 0], theta[:, layer, :, 1], path[-1][:, None])[0]
            path.append(path[-1] + size * moved.sum(axis=1))
        missed = path[-1].mean(axis=1) - target
        losses.append(0.5 * np.sum(missed**2, axis=-1))
        if k == steps:
            break
        p, gradient = np.repeat(missed[:, None] / n, n, axis=1), np.zeros_like(theta)
        for layer in reversed(range(depth)):
            both = (theta[:, layer, :, 0], theta[:, layer, :, 1])
            _, in_x, in_b, in_v = head_and_pull(path[layer][:, None], *both, p[:, None])
            gradient[:, layer, :, 0], gradient[:, layer, :, 1] = until * in_b, until * in_v
            p = p + size * in_x.sum(axis=1)
        memory = rule.b1 * memory + (1 - rule.b1) * gradient
        square = rule.b2 * square + (1 - rule.b2) * gradient**2
        root = np.sqrt(square / (1 - rule.b2 ** (k + 1))) + rule.eps
        theta = theta - rule.rate * (memory / (1 - rule.b1 ** (k + 1)) / root + rule.decay * theta)
    return np.array(losses), path[-1]
