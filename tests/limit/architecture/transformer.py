"""A transformer at initialisation in plain NumPy, every matrix formed: what the Gram map is asked to predict."""

import numpy as np
from scipy.special import erf, expit

FUNCTIONS = {
    "gelu": lambda z: z * 0.5 * (1 + erf(z / np.sqrt(2))),
    "silu": lambda z: z * expit(z),
    "erf": erf,
}


def normed(a, h):
    h = h - h.mean(-1, keepdims=True) if a.norm == "layer" else h
    return a.norm_gain * h / np.sqrt((h * h).mean(-1, keepdims=True) + a.norm_epsilon)


def embedded(a, ids, normal):
    sigma, n = a.deviations, len(ids)
    width = a.embedding_width or a.width
    _, rows = np.unique(ids, return_inverse=True)
    h = a.embedding_scale * normal(sigma.embedding, rows.max() + 1, width)[rows]
    if a.positions == "learned":
        h = h + normal(sigma.position, n, width)
    if a.types:
        h = h + normal(sigma.type, 1, width)
    h = normed(a, h) if a.embedding_norm else h
    return h @ normal(sigma.projection, width, a.width) if a.embedding_width else h


def rotated(a, y):
    half = int(a.head_dim * a.rope_fraction) // 2
    turn = np.exp(1j * np.arange(len(y))[:, None, None] * a.rope_base ** (-np.arange(half) / half))
    z = (y[..., :half] + 1j * y[..., half : 2 * half]) * turn
    return np.concatenate([z.real, z.imag, y[..., 2 * half :]], -1)


def attention(a, x, normal):
    n, p, sigma = len(x), a.head_dim, a.deviations
    q = (x @ normal(sigma.query, a.width, a.heads * p)).reshape(n, a.heads, p)
    k, v = ((x @ normal(s, a.width, a.kv_heads * p)).reshape(n, -1, p) for s in (sigma.key, sigma.value))
    if a.qk_norm:
        q, k = (y / np.sqrt((y * y).mean(-1, keepdims=True)) for y in (q, k))
    if a.positions == "rope":
        q, k = rotated(a, q), rotated(a, k)
    k, v = (np.repeat(y, a.heads // a.kv_heads, 1) for y in (k, v))
    z = a.logit_multiplier * np.einsum("ihp,khp->hik", q, k)
    if a.positions == "alibi":
        slopes = 2.0 ** (-8 * np.arange(1, a.heads + 1) / a.heads)
        z = z - slopes[:, None, None] * np.abs(np.arange(n)[:, None] - np.arange(n))
    if a.mask == "causal":
        z = np.where(np.tri(n, dtype=bool), z, -np.inf)
    z = np.exp(z - z.max(-1, keepdims=True))
    heads = np.einsum("hik,khp->ihp", z / z.sum(-1, keepdims=True), v)
    return heads.reshape(n, -1) @ normal(sigma.output, a.heads * p, a.width)


def perceptron(a, x, normal):
    sigma, act = a.deviations, FUNCTIONS[a.activation]
    u = x @ normal(sigma.mlp_in, a.width, a.mlp_width)
    y = act(x @ normal(sigma.mlp_gate, a.width, a.mlp_width)) * u if a.gated else act(u)
    return y @ normal(sigma.mlp_out, a.mlp_width, a.width)


def run(a, ids, seed):
    """Hidden states after 0, 1, …, L layers."""
    rng = np.random.default_rng(seed)
    normal = lambda s, *shape: s * rng.standard_normal(shape)  # noqa: E731
    h = embedded(a, ids, normal)
    states = [h]
    for _ in range(a.layers):
        if a.shared:
            rng = np.random.default_rng([seed, 1])  # the same matrices again
        if a.placement == "parallel":
            x = normed(a, h)
            h = a.skip * h + a.attention_residual * attention(a, x, normal) + a.mlp_residual * perceptron(a, x, normal)
        else:
            branches = ((attention, a.attention_residual), (perceptron, a.mlp_residual))
            for branch, scale in branches[: 1 + bool(a.mlp_width)]:
                y = branch(a, h if a.placement == "post" else normed(a, h), normal)
                h = a.skip * h + scale * (normed(a, y) if a.placement == "sandwich" else y)
                h = normed(a, h) if a.placement == "post" else h
        states.append(h)
    return np.array(states)


def mean_cosines(states):
    unit = states / np.linalg.norm(states, axis=-1, keepdims=True)
    n = states.shape[1]
    return ((unit.sum(1) ** 2).sum(-1) - n) / (n * (n - 1))


def measured(a, ids, seeds):
    """Mean cosine over seeds: values (seeds, L+1), and the mean RMS of the stream."""
    runs = [run(a, ids, seed) for seed in range(seeds)]
    return np.array([mean_cosines(r) for r in runs]), np.mean([np.sqrt((r**2).mean((1, 2))) for r in runs], axis=0)
