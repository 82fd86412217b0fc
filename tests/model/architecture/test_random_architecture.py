"""The transformer of a configuration: against the encoder, against NumPy, and its start against the Gram matrix."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pathlines as pl
from pathlines.architecture import Architecture, Deviations
from pathlines.foundation.errors import ArgumentError, FormError
from pathlines.integrate import chain
from pathlines.limit.architecture.start import start_gram
from pathlines.model import SelfAttention
from pathlines.model.architecture.random_architecture import RandomArchitecture, Stream
from pathlines.model.architecture.random_encoder import RandomEncoder
from pathlines.model.architecture.rotary import distance_bias, rotated
from pathlines.model.architecture.token_embedding import TokenEmbedding
from pathlines.numerics.draws import Draws

KEY = jax.random.key(3)
RNG = np.random.default_rng(0)


def architecture(**changes):
    fields = {"width": 8, "heads": 4, "layers": 2, "mlp_width": 6, "deviations": Deviations.equal(0.4, position=0.2)}
    return Architecture(**{**fields, **changes})


def layer(model, hidden):
    return np.asarray(jax.jit(lambda h: model.random_layer(Stream(h), 0, KEY).hidden)(jnp.asarray(hidden)))


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_architecture_vs_encoder(placement):
    """The same normals in the same order: RMS norms and an erf perceptron are the encoder of the layer map."""
    n, d, heads, width = 5, 8, 2, 6
    encoder = RandomEncoder(
        d, heads, placement=placement, residual=0.7, mask="causal", width=width, sigma_q=0.9, sigma_v=0.3, sigma_2=0.2,
        perceptron_residual=1.3,
    )  # fmt: skip
    sizes = Deviations(embedding=1.0, query=0.9, key=d**-0.5, value=0.3, output=d**-0.5, mlp_in=d**-0.5, mlp_out=0.2)
    record = Architecture(
        width=d, heads=heads, layers=1, mlp_width=width, activation="erf", norm="rms", placement=placement,
        attention_residual=0.7, mlp_residual=1.3, deviations=sizes,
    )  # fmt: skip
    h = RNG.normal(size=(n, d))
    # The encoder normalises what its branches see also where the stream is normalised already.
    start = h / np.sqrt(np.mean(h * h, axis=1, keepdims=True)) if placement == "post" else h
    want = jax.jit(lambda state: encoder.random_layer(state, 0, KEY))(jnp.asarray(start))
    np.testing.assert_allclose(layer(RandomArchitecture(record), start), want, atol=1e-13)


def test_sandwich_layer_by_hand():
    """LayerNorm on both sides, grouped keys, rotary positions, capped logits, a window, a gated perceptron."""
    n, d, heads, groups, p, width = 5, 8, 4, 2, 4, 6
    sizes = Deviations(
        embedding=1.0, query=0.5, key=0.6, value=0.7, output=0.8, mlp_in=0.9, mlp_gate=1.1, mlp_out=1.2
    )  # fmt: skip
    record = Architecture(
        width=d, heads=heads, kv_heads=groups, head_dim=p, layers=1, mlp_width=width, gated=True, activation="silu",
        placement="sandwich", norm_gain=1.5, norm_epsilon=0.1, skip=0.9, attention_residual=0.7, mlp_residual=0.6,
        logit_cap=2.0, window=3, positions="rope", rope_fraction=0.5, deviations=sizes,
    )  # fmt: skip
    model = RandomArchitecture(record)
    start = h = RNG.normal(size=(n, d))
    draws = Draws(KEY, d * (2 * (heads + groups) * p + 3 * width), 0, float)
    shapes = [(d, heads * p), (d, groups * p), (d, groups * p), (heads * p, d), (d, width), (d, width), (width, d)]
    q, k, v, o, up, gate, down = (np.asarray(draws.normal(*shape)) for shape in shapes)

    def norm(y):
        y = y - y.mean(axis=1, keepdims=True)
        return 1.5 * y / np.sqrt(np.mean(y * y, axis=1, keepdims=True) + 0.1)

    def turned(y, i):
        c, s = np.cos(i), np.sin(i)  # one plane: base^0 = 1
        return np.concatenate([[c * y[0] - s * y[1], s * y[0] + c * y[1]], y[2:]])

    x, out = norm(h), np.zeros((n, heads * p))
    for head in range(heads):
        mine, group = slice(head * p, (head + 1) * p), slice(head // 2 * p, (head // 2 + 1) * p)
        query, key, value = 0.5 * x @ q[:, mine], 0.6 * x @ k[:, group], 0.7 * x @ v[:, group]
        for i in range(n):
            seen = range(max(0, i - 2), i + 1)
            scores = np.array([turned(query[i], i) @ turned(key[j], j) / 2 for j in seen])
            weights = np.exp(2 * np.tanh(scores / 2))
            out[i, mine] = weights / weights.sum() @ value[list(seen)]
    h = 0.9 * h + 0.7 * norm(out @ (0.8 * o))
    x = norm(h)
    active = x @ (1.1 * gate)
    inner = active / (1 + np.exp(-active)) * (x @ (0.9 * up))
    want = 0.9 * h + 0.6 * norm(inner @ (1.2 * down))
    np.testing.assert_allclose(layer(model, start), want, atol=1e-12)


def test_rotations_see_distances_only():
    y = RNG.normal(size=(7, 2, 6))
    same = np.broadcast_to(y[:1], y.shape)
    turned = np.asarray(rotated(jnp.asarray(same), 100.0))
    products = np.einsum("ihp,jhp->hij", turned, turned)
    np.testing.assert_allclose(products[:, 1:, 1:], products[:, :-1, :-1], atol=1e-12)
    assert np.abs(products[:, 0, 1] - products[:, 0, 0]).min() > 1e-3
    np.testing.assert_array_equal(np.asarray(rotated(jnp.asarray(y), 100.0, 0.4))[..., 2:], y[..., 2:])


def test_alibi_slopes():
    """Eight heads have the slopes 1/2, 1/4, …, 1/256 of the paper."""
    bias = np.asarray(distance_bias(3, 8, float))
    np.testing.assert_allclose(-bias[:, 2, 0], 2 * 0.5 ** np.arange(1, 9))
    assert np.all(bias[:, 1, 1] == 0)


def test_parallel_branches_read_the_same_norm():
    """Parallel is pre-normalisation with the perceptron at the old stream: with one branch silent the two agree."""
    sizes = Deviations.equal(0.4, mlp_gate=0.0)
    h = RNG.normal(size=(5, 8))
    for silent in ({"attention_residual": 0.0}, {"mlp_residual": 0.0}):
        pre, parallel = (
            layer(RandomArchitecture(architecture(deviations=sizes, placement=name, **silent)), h)
            for name in ("pre", "parallel")
        )
        np.testing.assert_allclose(pre, parallel, atol=1e-14)
    both = layer(RandomArchitecture(architecture(deviations=sizes, placement="parallel")), h)
    alone = [
        layer(
            RandomArchitecture(
                architecture(
                    deviations=sizes,
                    placement="parallel",
                    **{name: 0.0},
                )
            ),
            h,
        )
        for name in ("attention_residual", "mlp_residual")
    ]
    np.testing.assert_allclose(both - h, alone[0] - h + alone[1] - h, atol=1e-13)


ENCODER = Deviations.equal(0.1, position=0.1, type=0.1, projection=1.0)


@pytest.mark.parametrize(
    ("ids", "changes"),
    [
        ([4, 7, 4, 9], {"types": 2, "embedding_norm": True, "deviations": ENCODER}),
        ([4, 7, 4, 9], {"embedding_width": 32, "embedding_norm": True, "deviations": ENCODER}),
        ([0, 1, 2, 3], {"patch_inputs": 48, "class_token": True}),
        ([4, 7, 4, 9], {"positions": "rope", "embedding_scale": 8.0, "norm": "rms"}),
    ],
)
def test_start_vs_gram(ids, changes):
    """E[h_i·h_j]/d over draws is the Gram matrix of the theory, to 5 standard errors and the 1/d of the norms."""
    record = architecture(width=64, mlp_width=0, **changes)
    model, keys = RandomArchitecture(record), jax.random.split(KEY, 400)
    hidden = np.asarray(jax.jit(jax.vmap(lambda key: TokenEmbedding(model, ids)(key).hidden))(keys))
    products = np.einsum("rid,rjd->rij", hidden, hidden) / 64
    error, want = products.std(axis=0, ddof=1) / np.sqrt(len(keys)), start_gram(record, ids)
    np.testing.assert_array_less(np.abs(products.mean(axis=0) - want), 5 * error + 0.02 * want.max())


def test_shared_weights_are_those_of_the_run():
    record = architecture(shared=True)
    model = RandomArchitecture(record)
    law = TokenEmbedding(model, np.arange(5))
    run = chain(model, law, depth=2, runs=3, key=KEY, record="tokens")
    first = law(jax.random.fold_in(jax.random.fold_in(KEY, 1), 0))
    step = jax.jit(lambda state: model.random_layer(state, 0, KEY))
    again = step(step(first))
    np.testing.assert_allclose(run["tokens"].values[1, -1], model.tokens(again, 0.0), atol=1e-12)
    assert len({float(law(key).words[0]) for key in jax.random.split(KEY, 8)}) == 8
    with pytest.raises(ArgumentError, match="TokenEmbedding"):
        chain(model, np.ones((3, 8)), depth=1, key=KEY)


def test_observables_of_the_stream():
    """With zero queries attention is uniform over what is seen: entropy ln i, mean over i ≤ n; the RMS by hand."""
    sizes = Deviations.equal(0.4, mlp_gate=0.0)
    model = RandomArchitecture(architecture(deviations=sizes).changed(deviations={"query": 0.0}))
    h = RNG.normal(size=(6, 8))
    run = chain(model, h, depth=1, key=KEY, record=["attention_entropy", "residual_rms", "residual_norms"])
    assert run["attention_entropy"].values == pytest.approx(np.full(2, np.mean(np.log(np.arange(1, 7)))))
    assert run["residual_rms"].values[0] == pytest.approx(np.sqrt(np.mean(h * h)))
    np.testing.assert_allclose(run["residual_norms"].values[0], np.linalg.norm(h, axis=1))
    with pytest.raises(FormError, match="residual stream"):
        pl.flow(SelfAttention(1.0), pl.Sphere(3).uniform(KEY, n=4), until=0.1, record="residual_rms")


def test_what_ifs_share_a_program():
    """Deviations and multipliers are data of the program: changing them changes no static field."""
    one, two = RandomArchitecture(architecture()), RandomArchitecture(architecture(skip=0.5, attention_residual=0.1))
    assert jax.tree.structure(one) == jax.tree.structure(two)
    assert not np.allclose(one.numbers, two.numbers)


def test_arguments_are_checked():
    model = RandomArchitecture(architecture(context=4))
    with pytest.raises(ArgumentError, match="at most 4"):
        TokenEmbedding(model, np.arange(5))
    with pytest.raises(ArgumentError, match="whole numbers"):
        TokenEmbedding(model, [[1, 2]])
    with pytest.raises(ArgumentError, match="shape"):
        chain(model, np.ones((3, 7)), depth=1, key=KEY)
