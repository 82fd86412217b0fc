"""Gradients of a random transformer, every matrix formed: forward and reverse pass written out in NumPy.

What ``limit.architecture.predict_gradients`` is asked to predict, without its theory: a module with its weights,
the loss's gradient pushed back through norms, softmax and activations by the chain rule (tested against differences of
the loss). One seed is one module; NumPy needs no compilation, and a layer of width 192 with 48 tokens takes 10 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import erf, expit

from pathlines.architecture.record import Architecture

Array = np.ndarray
Pull = Callable[[Array], Array]
_ROOT = np.float32(np.sqrt(0.5))
_DENSITY = np.float32(1 / np.sqrt(2 * np.pi))


@dataclass
class DrawnMatrix:
    """y = xW, used once or at every depth; its gradient adds up over uses."""

    weight: Array
    gradient: Array | float = 0.0
    seen: Array = field(default_factory=lambda: np.zeros(0))

    def __call__(self, x: Array) -> tuple[Array, Pull]:
        """xW, and the way back."""
        self.seen = x

        def pull(g: Array) -> Array:
            self.gradient = self.gradient + x.T @ g
            return g @ self.weight.T

        return x @ self.weight, pull

    def moved(self, change: Array) -> float:
        """Relative root mean square change of the last output, if the weights change so."""
        return float(np.linalg.norm(self.seen @ change) / np.linalg.norm(self.seen @ self.weight))


def _gelu(z: Array) -> tuple[Array, Array]:
    below = 0.5 * (1 + erf(z * _ROOT))
    return z * below, below + z * np.exp(-0.5 * z * z) * _DENSITY


def _silu(z: Array) -> tuple[Array, Array]:
    s = expit(z)
    return z * s, s * (1 + z * (1 - s))


def _tanh(z: Array) -> tuple[Array, Array]:
    y = np.tanh(z)
    return y, 1 - y * y


ACTIVATIONS: dict[str, Callable[[Array], tuple[Array, Array]]] = {
    "gelu": _gelu,
    "silu": _silu,
    "tanh": _tanh,
    "relu": lambda z: (np.maximum(z, 0), (z > 0).astype(z.dtype)),
    "erf": lambda z: (erf(z), 2 / np.sqrt(np.pi) * np.exp(-z * z)),
    "linear": lambda z: (z, np.ones_like(z)),
}
"""Values and slopes."""


class GradientModule:
    """The layers of an architecture with their weights, forward and back."""

    def __init__(self, architecture: Architecture, rng: np.random.Generator, dtype: Any = np.float32) -> None:
        self.architecture, self.rng, self.dtype = architecture, rng, np.dtype(dtype)
        one = self._drawn_layer() if architecture.shared else None
        self.layers = [one or self._drawn_layer() for _ in range(architecture.layers)]
        self.pulls: list[Pull] = []

    def normal(self, sigma: float, *shape: int) -> Array:
        """Gaussian entries."""
        kind = np.float32 if self.dtype == np.float32 else np.float64
        return self.dtype.type(sigma) * self.rng.standard_normal(shape, dtype=kind)

    def _drawn_layer(self) -> dict[str, DrawnMatrix]:
        a, s = self.architecture, self.architecture.deviations
        d, heads, pairs = a.width, a.attention_width, a.kv_heads * a.head_dim
        shapes = {"query": (d, heads), "key": (d, pairs), "value": (d, pairs), "output": (heads, d)}
        if a.mlp_width:
            shapes |= {"mlp_in": (d, a.mlp_width), "mlp_out": (a.mlp_width, d)}
            shapes |= {"mlp_gate": (d, a.mlp_width)} if a.gated else {}
        return {name: DrawnMatrix(self.normal(getattr(s, name), *shape)) for name, shape in shapes.items()}

    def forward(self, h: Array) -> list[Array]:
        """The stream at every depth; the way back is kept."""
        states, self.pulls = [h], []
        for layer in self.layers:
            for step in self._steps():
                h, pull = step(layer, h)
                self.pulls.append(pull)
            states.append(h)
        return states

    def backward(self, gradient: Array) -> list[Array]:
        """Gradients of the stream at every depth from that at the top; those of weights add up in ``layers``."""
        found, every = [gradient], len(self._steps())
        for k, pull in enumerate(reversed(self.pulls), 1):
            gradient = pull(gradient)
            if k % every == 0:
                found.append(gradient)
        return found[::-1]

    def _steps(self) -> list[Callable[[dict[str, DrawnMatrix], Array], tuple[Array, Pull]]]:
        a = self.architecture
        if a.placement == "parallel":
            return [self._parallel]
        attention = lambda w, h: self._added(w, h, self._attention, a.attention_residual)  # noqa: E731
        perceptron = lambda w, h: self._added(w, h, self._perceptron, a.mlp_residual)  # noqa: E731
        return [attention, perceptron] if a.mlp_width else [attention]

    def _parallel(self, weights: dict[str, DrawnMatrix], h: Array) -> tuple[Array, Pull]:
        a = self.architecture
        x, to_norm = self.normed(h)
        one, first = self._attention(weights, x)
        two, second = self._perceptron(weights, x) if a.mlp_width else (np.zeros_like(one), lambda g: 0 * g)
        s, m = a.attention_residual, a.mlp_residual
        return a.skip * h + s * one + m * two, lambda g: a.skip * g + to_norm(first(s * g) + second(m * g))

    def _added(self, weights: dict[str, DrawnMatrix], h: Array, branch: Any, residual: float) -> tuple[Array, Pull]:
        a, same = self.architecture, lambda g: g
        x, to_norm = (h, same) if a.placement == "post" else self.normed(h)
        y, back = branch(weights, x)
        y, to_own = self.normed(y) if a.placement == "sandwich" else (y, same)
        total = a.skip * h + residual * y
        total, to_sum = self.normed(total) if a.placement == "post" else (total, same)

        def pull(g: Array) -> Array:
            g = to_sum(g)
            return a.skip * g + to_norm(back(to_own(residual * g)))

        return total, pull

    def normed(self, h: Array) -> tuple[Array, Pull]:
        """LayerNorm or RMSNorm with the gain of the start."""
        a = self.architecture
        return _normed(h, a.norm_gain, a.norm_epsilon, a.norm == "layer")

    def _attention(self, weights: dict[str, DrawnMatrix], x: Array) -> tuple[Array, Pull]:
        a, n = self.architecture, len(x)
        (q, to_q), (k, to_k), (v, to_v) = (weights[name](x) for name in ("query", "key", "value"))
        split = lambda y: y.reshape(n, -1, a.head_dim).swapaxes(0, 1)  # noqa: E731
        q, k, v = split(q), split(k), split(v)
        (q, norm_q), (k, norm_k) = (self._prepared(y) for y in (q, k))
        group = a.heads // a.kv_heads
        keys, values = (np.repeat(y, group, axis=0) for y in (k, v))
        z = a.logit_multiplier * (q @ keys.swapaxes(1, 2))
        slope: Array | float = 1.0
        if a.logit_cap:
            bent = np.tanh(z / a.logit_cap)
            z, slope = a.logit_cap * bent, 1 - bent * bent
        z = z + self._bias(n)
        pi = np.exp(z - z.max(axis=2, keepdims=True))
        pi /= pi.sum(axis=2, keepdims=True)
        joined, to_joined = weights["output"]((pi @ values).swapaxes(0, 1).reshape(n, -1))

        def pull(g: Array) -> Array:
            g = split(to_joined(g))
            paid = g @ values.swapaxes(1, 2)
            paid = a.logit_multiplier * slope * pi * (paid - (pi * paid).sum(axis=2, keepdims=True))
            join = lambda y: y.swapaxes(0, 1).reshape(n, -1)  # noqa: E731
            fold = lambda y: y.reshape(a.kv_heads, group, n, -1).sum(axis=1)  # noqa: E731
            down_q = norm_q(paid @ keys)
            down_k = norm_k(fold(paid.swapaxes(1, 2) @ q))
            down_v = fold(pi.swapaxes(1, 2) @ g)
            return to_q(join(down_q)) + to_k(join(down_k)) + to_v(join(down_v))

        return joined, pull

    def _prepared(self, y: Array) -> tuple[Array, Pull]:
        """Norm and rotation of queries or keys (heads, n, p)."""
        a = self.architecture
        y, back = _normed(y, 1.0, a.norm_epsilon, False) if a.qk_norm else (y, lambda g: g)
        half = int(a.head_dim * a.rope_fraction) // 2
        if a.positions != "rope" or half == 0:
            return y, back
        angles = np.arange(y.shape[1])[:, None] * a.rope_base ** (-np.arange(half) / half)
        cos, sin = np.cos(angles).astype(y.dtype), np.sin(angles).astype(y.dtype)
        return _turned(y, cos, sin), lambda g: back(_turned(g, cos, -sin))

    def _bias(self, n: int) -> Array:
        """-∞ where masked, slopes of ALiBi."""
        a, distance = self.architecture, np.arange(n)[:, None] - np.arange(n)
        found = np.zeros((1, n, n), self.dtype)
        if a.positions == "alibi":
            slopes = 2.0 ** (-8 * np.arange(1, a.heads + 1) / a.heads)
            found = (-slopes[:, None, None] * np.abs(distance)).astype(self.dtype)
        if a.mask == "causal":
            hidden = distance < 0
            if a.window:
                hidden |= distance >= a.window
            found = np.where(hidden, self.dtype.type(-np.inf), found)
        return found

    def _perceptron(self, weights: dict[str, DrawnMatrix], x: Array) -> tuple[Array, Pull]:
        a = self.architecture
        inner, to_inner = weights["mlp_in"](x)
        if not a.gated:
            value, slope = ACTIVATIONS[a.activation](inner)
            y, back = weights["mlp_out"](value)
            return y, lambda g: to_inner(slope * back(g))
        gate, to_gate = weights["mlp_gate"](x)
        value, slope = ACTIVATIONS[a.activation](gate)
        y, back = weights["mlp_out"](value * inner)

        def pull(g: Array) -> Array:
            g = back(g)
            return to_inner(g * value) + to_gate(g * inner * slope)

        return y, pull


def _normed(h: Array, gain: float, epsilon: float, centre: bool) -> tuple[Array, Pull]:
    h = h - h.mean(axis=-1, keepdims=True) if centre else h
    inverse = 1 / np.sqrt((h * h).mean(axis=-1, keepdims=True) + epsilon)
    x = h * inverse

    def pull(g: Array) -> Array:
        g = gain * inverse * (g - x * (g * x).mean(axis=-1, keepdims=True))
        return g - g.mean(axis=-1, keepdims=True) if centre else g

    return gain * x, pull


def _turned(y: Array, cos: Array, sin: Array) -> Array:
    half = cos.shape[1]
    one, two, rest = y[..., :half], y[..., half : 2 * half], y[..., 2 * half :]
    return np.concatenate([one * cos - two * sin, one * sin + two * cos, rest], axis=-1)


class GradientSample:
    """One seed: the module, the stream and its gradients, and those of embedding and head."""

    def __init__(
        self, architecture: Architecture, tokens: int | Sequence[int] | Array, seed: int | Sequence[int],
        loss: str | Array = "iid", labels: Array | None = None, head: float | None = None, dtype: Any = np.float32,
    ) -> None:  # fmt: skip
        a = architecture
        self.module = GradientModule(a, np.random.Generator(np.random.SFC64(seed)), dtype)
        ids = np.arange(tokens) if isinstance(tokens, (int, np.integer)) else np.asarray(tokens)
        self.words, self.rows = np.unique(ids, return_inverse=True)
        start, to_table = self._embedded(len(ids))
        self.states = self.module.forward(start)
        top = self._top(loss, labels, head)
        self.gradients = self.module.backward(top)
        self.table = np.zeros((len(self.words), self.width))
        np.add.at(self.table, self.rows, to_table(self.gradients[0]))
        if a.tied and self.head is not None:  # words that were not seen have a part too
            self.table += self.head[np.searchsorted(self.vocabulary, self.words)]
            self.unseen = np.delete(self.head, np.searchsorted(self.vocabulary, self.words), axis=0)

    @property
    def width(self) -> int:
        """Of the embeddings."""
        return self.module.architecture.embedding_width or self.module.architecture.width

    def _embedded(self, n: int) -> tuple[Array, Pull]:
        a, normal = self.module.architecture, self.module.normal
        self.head: Array | None = None
        self.vocabulary = np.arange(max(a.vocabulary, int(self.words.max()) + 1)) if a.tied else self.words
        self.embedding = normal(a.deviations.embedding, len(self.vocabulary), self.width)
        h = a.embedding_scale * self.embedding[np.searchsorted(self.vocabulary, self.words)][self.rows]
        if a.positions == "learned":
            h = h + normal(a.deviations.position, n, self.width)
        if a.types:
            h = h + normal(a.deviations.type, 1, self.width)
        back: Pull = lambda g: g  # noqa: E731
        if a.embedding_norm:
            h, back = self.module.normed(h)
        if a.embedding_width:
            projection = DrawnMatrix(normal(a.deviations.projection, self.width, a.width))
            h, to_inner = projection(h)
            norm = back
            back = lambda g: norm(to_inner(g))  # noqa: E731
        return h, lambda g: a.embedding_scale * back(g)

    def _top(self, loss: str | Array, labels: Array | None, head: float | None) -> Array:
        """The gradient at the last stream."""
        a, h = self.module.architecture, self.states[-1]
        x, back = (h, lambda g: g) if a.placement == "post" else self.module.normed(h)
        if not isinstance(loss, str):
            return self._gaussian(np.asarray(loss), h)
        if loss == "cross-entropy":
            return back(self._cross_entropy(x, np.asarray(labels), head))
        if loss in ("length", "distance", "normed distance"):
            target = 0 if loss == "length" else self.module.normal(1.0, *h.shape)
            return back(x - target) if loss == "normed distance" else h - target
        n = len(h)
        unit = np.eye(n)
        square = {
            "iid": unit, "common": np.ones((n, n)), "private": unit - 1 / n, "mean": np.full((n, n), 1 / n**2),
            "first": unit[:, :1] @ unit[:1], "last": unit[:, -1:] @ unit[-1:],
        }[loss]  # fmt: skip
        return back(self._gaussian(square, h))

    def _gaussian(self, square: Array, h: Array) -> Array:
        values, vectors = np.linalg.eigh(square)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return root.astype(h.dtype) @ self.module.normal(h.shape[1] ** -0.5, len(h), h.shape[1])

    def _cross_entropy(self, x: Array, labels: Array, head: float | None) -> Array:
        """Mean over counted positions of -log softmax(xW_Uᵀ) at the label; W_U the embedding where they are tied."""
        a = self.module.architecture
        sigma = a.deviations.embedding if head is None else head
        weight = self.embedding if a.tied else self.module.normal(sigma, a.vocabulary, x.shape[1])
        logits = x @ weight.T
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        counted = np.flatnonzero(labels >= 0)
        p[counted, labels[counted]] -= 1
        p[labels < 0] = 0
        p /= len(counted)
        self.head = p.T @ x
        return p @ weight

    def matrices(self) -> dict[str, Array]:
        """Frobenius norms of ∂W by kind and layer (one entry where the layer is shared)."""
        layers = self.module.layers[:1] if self.module.architecture.shared else self.module.layers
        return {name: np.array([np.linalg.norm(w[name].gradient) for w in layers]) for name in layers[0]}

    def stream(self) -> Array:
        """‖g_ℓ‖ over all tokens."""
        return np.array([np.linalg.norm(g.astype(float)) for g in self.gradients])

    def relative(self) -> Array:
        """ĝ_ℓ = √Σ r_i²‖g_i‖²."""
        pairs = zip(self.states, self.gradients, strict=True)
        return np.array([np.sqrt(np.sum((h**2).mean(axis=1) * (g**2).sum(axis=1), dtype=float)) for h, g in pairs])

    def cosine(self) -> Array:
        """Mean cosine of pairs of tokens."""
        found, n = [], len(self.rows)
        for h in self.states:
            unit = h.astype(float) / np.linalg.norm(h, axis=1, keepdims=True)
            found.append((np.sum(unit.sum(axis=0) ** 2) - n) / (n * (n - 1)))
        return np.array(found)

    def embedding_norm(self) -> float:
        """‖∂E‖."""
        rest = float(np.sum(self.unseen**2)) if self.module.architecture.tied and self.head is not None else 0.0
        return float(np.sqrt(np.sum(self.table**2) + rest))
