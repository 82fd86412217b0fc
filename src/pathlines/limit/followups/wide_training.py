"""Wide shallow models in closed form: gradients by hand, gradient flow, escape rates, fluctuations."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp

from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.foundation.numbers import real_array
from pathlines.foundation.papers.followups import WIDE_SHALLOW

SOURCES = (WIDE_SHALLOW,)
Reals = NDArray[np.float64]


@runtime_checkable
class Features(Protocol):
    """φ(w; x) and the gradient of Σ_n ⟨q_n, φ(w; x_n)⟩ in w, for batches of particles."""

    size: int

    def value(self, w: Reals) -> Reals:
        """(…, N, k) of w (…, q)."""
        ...

    def pull(self, w: Reals, q: Reals) -> Reals:
        """(…, q) of w (…, q) and q (…, N, k)."""
        ...


class Neurons:
    """φ = tanh(w·(x, 1)), φ' = 1 - φ²."""

    size = 1

    def __init__(self, inputs: Reals) -> None:
        self.raised = np.concatenate([inputs, np.ones((len(inputs), 1))], axis=1)

    def value(self, w: Reals) -> Reals:
        """tanh."""
        return np.tanh(w @ self.raised.T)[..., None]

    def pull(self, w: Reals, q: Reals) -> Reals:
        """Σ_n q_n φ'_n (x_n, 1)."""
        return (q[..., 0] * (1 - np.tanh(w @ self.raised.T) ** 2)) @ self.raised


class AttentionHeads:
    """φ = Σ_j s_j x_j, s = softmax_j(x_lastᵀ B x_j); ∂⟨q, φ⟩/∂B = Σ_j s_j ⟨q, x_j - φ⟩ x_last x_jᵀ."""

    def __init__(self, inputs: Reals) -> None:
        self.x, self.last, self.size = inputs, inputs[:, -1], inputs.shape[-1]

    def _weights(self, w: Reals) -> Reals:
        asked = self.last @ w.reshape(*w.shape[:-1], self.size, self.size)
        scores = np.matmul(self.x, asked[..., None])[..., 0]
        raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return raised / raised.sum(axis=-1, keepdims=True)

    def value(self, w: Reals) -> Reals:
        """Means of the tokens."""
        return np.matmul(self._weights(w)[..., None, :], self.x)[..., 0, :]

    def pull(self, w: Reals, q: Reals) -> Reals:
        """In B, flattened."""
        s = self._weights(w)
        along = np.matmul(self.x, q[..., None])[..., 0]
        spread = s * (along - np.sum(s * along, axis=-1, keepdims=True))
        heard = np.matmul(spread[..., None, :], self.x)[..., 0, :]
        return np.matmul(self.last.T, heard).reshape(w.shape)


def features_of(inputs: Reals) -> Features:
    """Neurons for rows, attention heads for contexts."""
    return Neurons(inputs) if inputs.ndim == 2 else AttentionHeads(inputs)


def _split(theta: Reals, p: int, k: int) -> tuple[Reals, Reals]:
    return theta[..., : p * k].reshape(*theta.shape[:-1], p, k), theta[..., p * k :]


def loss_and_velocity(phi: Features, y: Reals, theta: Reals, masses: Reals) -> tuple[Reals, Reals]:
    """(½ mean |f - y|², -∇ of the first variation) of particles (…, m, D)."""
    a, w = _split(theta, y.shape[1], phi.size)
    seen = phi.value(w)
    left = np.einsum("m,...mnk,...mpk->...np", masses, seen, a, optimize=True) - y
    q = np.einsum("...np,...mpk->...mnk", left, a, optimize=True) / len(y)
    da = np.einsum("...np,...mnk->...mpk", left, seen, optimize=True) / len(y)
    loss = 0.5 * np.mean(np.sum(left**2, axis=-1), axis=-1)
    return loss, -np.concatenate([da.reshape(*theta.shape[:-1], -1), phi.pull(w, q)], axis=-1)


def _even(masses: ArrayLike | None, count: int) -> Reals:
    given = np.ones(count) if masses is None else real_array("masses", masses, 0.0)
    return given / given.sum()


def descent_losses(
    inputs: ArrayLike, targets: ArrayLike, start: ArrayLike, step: float, steps: int, masses: ArrayLike | None = None
) -> Reals:
    """Losses (steps + 1, …) of gradient descent from starts (…, m, D), rows (a, w)."""
    eta, count = finite_number("step", step, 0.0), positive_integer("steps", steps, 0)
    phi, y, theta = features_of(np.asarray(inputs, float)), np.asarray(targets, float), np.asarray(start, float)
    share, losses = _even(masses, theta.shape[-2]), []
    for _ in range(count):
        loss, velocity = loss_and_velocity(phi, y, theta, share)
        losses.append(loss)
        theta = theta + eta * velocity
    return np.array([*losses, loss_and_velocity(phi, y, theta, share)[0]])


def flow_losses(
    inputs: ArrayLike,
    targets: ArrayLike,
    start: ArrayLike,
    times: ArrayLike,
    masses: ArrayLike | None = None,
    rtol: float = 1e-9,
) -> Reals:
    """Losses at the times along the gradient flow (SciPy's DOP853)."""
    grid, first = real_array("times", times, 0.0), np.asarray(start, float)
    phi, y, share = features_of(np.asarray(inputs, float)), np.asarray(targets, float), _even(masses, len(first))
    velocity = lambda t, flat: loss_and_velocity(phi, y, flat.reshape(first.shape), share)[1].ravel()  # noqa: E731
    found = solve_ivp(velocity, (0, grid.max()), first.ravel(), "DOP853", grid, rtol=rtol, atol=rtol * 1e-2)
    return np.array([loss_and_velocity(phi, y, s.reshape(first.shape), share)[0] for s in found.y.T])


def escape_rate(inputs: ArrayLike, targets: ArrayLike) -> float:
    """-dL/dt at t = 0, over ε, from (1-ε)δ_(0,0) + ε δ_0 ⊗ N(0, I): Σ_nn' y_n·y_n' E tanh(w·z_n) tanh(w·z_n') / N².

    z = (x, 1); the pair (w·z_n, w·z_n') is Gaussian, so each expectation is an integral over the plane. The velocity of
    a probe is mean_x y φ(w; x) in a, and zero in w while a = 0. Positive unless every neuron is blind to the targets:
    the atom is critical, and never stable [derived]. Cost O(N²k²) with some 14 nodes k per unit
    of the largest |z|.
    """
    x, y = np.asarray(inputs, float), np.asarray(targets, float)
    require(x.ndim == 2, "inputs", "have two axes (neurons)", inputs)
    z = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    size = np.linalg.norm(z, axis=1)
    cosine = np.clip(z @ z.T / np.outer(size, size), -1, 1)
    g, weight = _line(float(size.max()))
    total, products = 0.0, y @ y.T
    for n in range(len(x)):  # rows alone: all pairs at once would not fit for steep inputs
        one = weight * np.tanh(size[n] * g)
        for m in range(n, len(x)):
            both = cosine[n, m] * g[:, None] + np.sqrt(1 - cosine[n, m] ** 2) * g
            kernel = one @ (np.tanh(size[m] * both) @ weight)
            total += (1 + (m > n)) * kernel * products[n, m]
    return float(total / len(y) ** 2)


def _line(steep: float) -> tuple[Reals, Reals]:
    """Nodes and weights of a standard Gaussian for tanh(s g), s ≤ steep: the trapezoid rule.

    It misses exp(-π²/(s h)) with steps h, as tanh has poles at a distance π/2s, and Gauss-Hermite, for whole functions,
    converges much more slowly."""
    step, far = max(min(0.6, np.pi**2 / (14 * steep)), 10 / 1200), 5.0
    g = np.linspace(-far, far, 2 * int(np.ceil(far / step)) + 1)
    weight = np.exp(-0.5 * g**2)
    return g, weight / weight.sum()


def loss_fluctuation(inputs: ArrayLike, targets: ArrayLike, start: ArrayLike, step: float, steps: int) -> float:
    """lim √m · (standard deviation of the loss after some steps over independent starts), tanh neurons [derived].

    The loss is a smooth functional of the law of the start, so its fluctuation is that of a sum of influences
    ψ(θ) = dL/d(mass at θ) of single particles: m·var L → var ψ. The influences are those along one wide trajectory from
    ``start`` (m, D), found by running the descent backwards (its adjoint, by hand).
    """
    x, y, theta = np.asarray(inputs, float), np.asarray(targets, float), np.asarray(start, float)
    require(x.ndim == 2, "inputs", "have two axes (neurons)", inputs)
    phi, eta, mass = Neurons(x), finite_number("step", step, 0.0), 1 / len(theta)
    path = [theta]
    for _ in range(positive_integer("steps", steps, 0)):
        theta = theta + eta * loss_and_velocity(phi, y, theta, np.full(len(theta), mass))[1]
        path.append(theta)
    back, influence, pulled = np.zeros_like(theta), np.zeros(len(theta)), np.zeros_like(y)
    for k, now in enumerate(reversed(path)):
        left, answers = _residual(phi, y, now)
        if k == 0:
            pulled = left / len(y)
        else:
            along, curved = _second_order(phi, now, left, back)
            pulled, back = -eta * along, back - eta * curved
        influence += np.einsum("np,mnp->m", pulled, answers)
        back = back + mass * _slope(phi, now, pulled)
    return float(influence.std(ddof=1))


def _residual(phi: Neurons, y: Reals, theta: Reals) -> tuple[Reals, Reals]:
    a, w = _split(theta, y.shape[1], 1)
    answers = phi.value(w) * a[:, None, :, 0]
    return answers.mean(axis=0) - y, answers


def _slope(phi: Neurons, theta: Reals, q: Reals) -> Reals:
    """Gradient of Σ_n q_n·a φ(w; x_n) at each particle."""
    a, w = theta[:, : q.shape[1]], theta[:, q.shape[1] :]
    return np.concatenate([phi.value(w)[..., 0] @ q, phi.pull(w, (a @ q.T)[..., None])], axis=1)


def _second_order(phi: Neurons, theta: Reals, left: Reals, back: Reals) -> tuple[Reals, Reals]:
    """For G = ∇ mean_n left_n·a φ: Σ_j (∂G_j/∂left)ᵀ b_j (N, p), and its Hessian at each particle times b_j."""
    p, n = left.shape[1], len(left)
    (a, w), (ba, bw) = ((v[:, :p], v[:, p:]) for v in (theta, back))
    value = np.tanh(w @ phi.raised.T)
    slope, moved = 1 - value**2, bw @ phi.raised.T
    along = (value.T @ ba + (slope * moved).T @ a) / n
    in_a = (slope * moved) @ left / n
    in_w = ((ba @ left.T) * slope - (a @ left.T) * 2 * value * slope * moved) @ phi.raised / n
    return along, np.concatenate([in_a, in_w], axis=1)
