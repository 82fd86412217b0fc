"""Random layers: the equation, its symmetries, and samplers that agree in law."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats as st

from pathlines.domain import Sphere
from pathlines.domain.span import reduced
from pathlines.foundation.errors import ArgumentError, FormError
from pathlines.integrate import chain
from pathlines.model.capability import HasRandomLayers
from pathlines.model.homogenized.random_transformer import RandomTransformer
from pathlines.model.homogenized.samplers import SAMPLERS, choose_sampler
from pathlines.model.homogenized.samplers.layer import GaussianLayer
from pathlines.model.homogenized.samplers.linear import LinearSampler
from pathlines.weights import LAWS, GaussianHeads, MixtureHeads, fixed_heads, random_values
from pathlines.weights.heads import Heads

KEY = jax.random.key(5)
RNG = np.random.default_rng(5)
one_layer = eqx.filter_jit(lambda model, x: model.random_layer(x, 0, KEY))
drawn_heads = eqx.filter_jit(lambda law, count: law.heads(KEY, count))


def matrices(d, count=1):
    return np.random.default_rng(d).normal(size=(2, count, d, d))


# --- the layer itself ---


def written_out(x, heads, beta, step, masses, tangent):
    """The equation with sums over tokens written out, in NumPy."""
    n, d = x.shape
    new = np.zeros_like(x)
    for i in range(n):
        total = np.zeros(d)
        for value, score in heads:
            weight = np.array([masses[k] * np.exp(beta * x[k] @ score @ x[i]) for k in range(n)])
            weight /= weight.sum()
            total += value @ sum(weight[k] * x[k] for k in range(n))
        total *= step / len(heads)
        if tangent:
            total -= (total @ x[i]) * x[i]
        new[i] = (x[i] + total) / np.linalg.norm(x[i] + total)
    return new


@pytest.mark.parametrize("update", ["ambient", "tangent"])
def test_layer_vs_equation(update):
    n, d = 5, 3
    masses = np.array([1.0, 2.0, 0.5, 1.0, 1.5])
    law = GaussianHeads(d, sigma_v=0.7, sigma_a=0.9, qk_dim=2, value_mean=matrices(d)[0, 0], score_mean=0.3)
    model = RandomTransformer(law=law, heads=3, step=0.8, beta=1.3, update=update, multiplicities=masses)
    x = Sphere(d).sines(n)
    drawn = drawn_heads(law, 3)
    heads = [(np.asarray(v), np.asarray(a)) for v, a in zip(drawn.value, drawn.query, strict=True)]
    found = one_layer(model, x)
    np.testing.assert_allclose(
        found, written_out(np.asarray(x), heads, 1.3, 0.8, masses, update == "tangent"), atol=1e-13
    )
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-15)


def test_low_rank_scores_are_products():
    """Without a mean the heads come as (W', W); A = W W'ᵀ gives the same layer."""
    law = GaussianHeads(4, qk_dim=2)
    model = RandomTransformer(law=law, heads=2, beta=2.0)
    x = Sphere(4).sines(6)
    heads = drawn_heads(law, 2)
    product = Heads(heads.key.mT @ heads.query, None, heads.value)
    np.testing.assert_allclose(model.attended(x, heads), model.attended(x, product), atol=1e-13)


def test_rotations_and_permutations():
    """X → XO with V → OᵀVO, A → OᵀAO rotates the layer; permuted tokens give the permuted layer."""
    d = 4
    values, scores = matrices(d, 2)
    turn = np.linalg.qr(RNG.normal(size=(d, d)))[0]
    model = RandomTransformer(law=MixtureHeads(values, scores), beta=0.7)
    x = np.asarray(Sphere(d).sines(6))
    plain = model.attended(jnp.asarray(x), Heads(jnp.asarray(scores), None, jnp.asarray(values)))
    rotated = Heads(jnp.asarray(turn.T @ scores @ turn), None, jnp.asarray(turn.T @ values @ turn))
    np.testing.assert_allclose(model.attended(jnp.asarray(x @ turn), rotated), plain @ turn, atol=1e-13)
    order = RNG.permutation(6)
    np.testing.assert_allclose(one_layer(model, x[order]), np.asarray(one_layer(model, x))[order], atol=1e-14)


def test_multiplicities_stand_for_copies():
    model = RandomTransformer(3, heads=2, step=0.5, logit_scale=1.5)
    weighted = RandomTransformer(3, heads=2, step=0.5, logit_scale=1.5, multiplicities=[3, 1, 2])
    x = np.asarray(Sphere(3).sines(3))
    copies = np.asarray(one_layer(model, np.repeat(x, [3, 1, 2], axis=0)))
    np.testing.assert_allclose(one_layer(weighted, x), copies[[0, 3, 4]], atol=1e-14)


@pytest.mark.parametrize("law", [None, MixtureHeads(*matrices(3, 2))])
def test_listeners_are_not_heard(law):
    """A token of mass zero moves as it would among the others; they move as they would without it."""
    options = {"law": law, "d": None if law else 3, "heads": 2, "step": 0.5, "beta": 1.5}
    x = np.asarray(Sphere(3).sines(4))
    listening = RandomTransformer(**options, multiplicities=[1.0, 0.0, 1.0, 2.0])
    without = RandomTransformer(**options, multiplicities=[1.0, 1.0, 2.0])
    heard = [0, 2, 3]
    found, alone = np.asarray(one_layer(listening, x)), np.asarray(one_layer(without, x[heard]))
    np.testing.assert_allclose(found[heard], alone, rtol=0, atol=1e-15)
    light = np.asarray(one_layer(RandomTransformer(**options, multiplicities=[1.0, 1e-12, 1.0, 2.0]), x))
    np.testing.assert_allclose(found[1], light[1], rtol=0, atol=1e-11)


# --- derived parameters and laws ---


def test_derived_parameters():
    p = RandomTransformer(16, heads=4, step=0.6, beta=3.0, sigma_a=0.5, qk_dim=9).parameters
    assert p.variance_proxy == pytest.approx(15 / 16)
    assert p.noise == pytest.approx(0.6 * 15 / 16 / 4)
    assert p.layer_time == pytest.approx(0.09)
    assert p.logit_scale == pytest.approx(3 * 0.25 * 3)
    assert p.effective_beta == pytest.approx(3 * 0.25 * 3 * 4)
    assert p.diffusive_time(11) == pytest.approx(0.99)
    given = RandomTransformer(16, logit_scale=2.0, sigma_a=0.5, qk_dim=9)
    assert given.parameters.logit_scale == pytest.approx(2) and float(given.beta) == pytest.approx(2 / 0.75)
    assert RandomTransformer(16, beta=2.0).parameters.logit_scale == pytest.approx(2)
    assert RandomTransformer(16, beta=2.0).clocks == {"tau": pytest.approx(0.09), "t": pytest.approx(0.3)}


def test_variance_proxy_is_attained_at_the_collapsed_state():
    """ς² = max_X E|P_x V m|² = σ_V²(d - 1) (arXiv:2604.01978), attained when tokens coincide (5 s.e., 4000 draws)."""
    d = 8
    model = RandomTransformer(d, beta=2.0)
    sphere = Sphere(d)

    def square(x, key):
        return jnp.sum(sphere.tangent(x, model.attended(x, model.law.heads(key, 1)))[0] ** 2)

    keys = jax.random.split(KEY, 4000)
    squares = jax.jit(jax.vmap(square, in_axes=(None, 0)))
    for tokens, attained in ((sphere.sines(3)[np.array([0, 0, 0])], True), (sphere.sines(3), False)):
        sample = np.asarray(squares(tokens, keys))
        excess = sample.mean() - model.parameters.variance_proxy
        error = sample.std() / math.sqrt(4000)
        assert abs(excess) < 5 * error if attained else excess < -5 * error


@pytest.mark.parametrize("p", [3, math.inf])
def test_gaussian_heads_have_the_stated_moments(p):
    law = GaussianHeads(4, sigma_v=0.3, qk_dim=p, value_mean=0.2, score_mean=-0.1)
    heads = drawn_heads(law, 20_000)
    for matrix, mean, spread in ((heads.value, law.mean_value, 0.3), (heads.query, law.mean_score, law.score_std)):
        values = np.asarray(matrix)
        assert np.abs(values.mean(0) - mean).max() < 5 * spread / math.sqrt(20_000)
        assert values.std(0) == pytest.approx(spread, rel=0.05)
    assert law.score_std == pytest.approx(1.0)


def test_mixture_is_a_finite_sum():
    values, scores = matrices(3, 3)
    law = MixtureHeads(values, scores, [0.5, 0.2, 0.3])
    np.testing.assert_allclose(law.mean_value, np.tensordot([0.5, 0.2, 0.3], values, 1), atol=1e-15)
    assert law.atoms is not None and law.atoms.scores.shape == (3, 3, 3)
    drawn = np.asarray(drawn_heads(law, 10_000).value)[:, 0, 0]
    for weight, matrix in zip((0.5, 0.2, 0.3), values, strict=True):
        share = np.mean(drawn == matrix[0, 0])
        assert abs(share - weight) < 5 * math.sqrt(weight * (1 - weight) / 10_000)
    assert fixed_heads(values[0], scores[0]).atoms.probabilities.tolist() == [1.0]
    assert {"gaussian", "random-values", "mixture", "fixed"} <= set(LAWS)
    assert GaussianHeads(3).atoms is None and GaussianHeads(3).centred


# --- samplers: one law ---

RUNS = 20_000
LEVEL = 1e-4
CASES = {
    "head dimension d": (4, {"d": 9, "heads": 2, "logit_scale": 3.0}, ("low-rank", "gram")),
    "head dimension below n, n above d": (
        5,
        {"law": GaussianHeads(4, qk_dim=2), "heads": 3, "logit_scale": 3.0},
        ("low-rank",),
    ),
    "field scores, matrix means, tangent update, masses": (
        3,
        {
            "law": GaussianHeads(5, qk_dim=math.inf, value_mean=0.4 * matrices(5)[0, 0], score_mean=matrices(5)[1, 0]),
            "logit_scale": 1.5,
            "update": "tangent",
            "multiplicities": [1.0, 2.0, 4.0],
        },
        ("low-rank",),
    ),
    "fixed scores, a listener": (
        3,
        {
            "law": random_values(7, 1.0),
            "heads": 2,
            "beta": 1.5,
            "update": "tangent",
            "multiplicities": [1.0, 0.0, 2.0],
        },
        ("low-rank", "gram"),
    ),
    "scalar means": (
        2,
        {"law": GaussianHeads(5, qk_dim=3, value_mean=0.7, score_mean=-0.8), "beta": 1.2},
        ("gram",),
    ),
    "uniform attention": (
        3,
        {
            "law": GaussianHeads(4, value_mean=0.5 * matrices(4)[0, 0]),
            "heads": 2,
            "beta": 0.0,
            "multiplicities": [3, 0, 1],
        },
        ("uniform",),
    ),
}


def overlaps_after(sampler, start, layers=2):
    """Upper triangle of the Gram matrix of RUNS independent chains."""

    def one(key):
        layer = lambda number, x: sampler.random_layer(x, number, jax.random.fold_in(key, number))  # noqa: E731
        state = jax.lax.fori_loop(0, layers, layer, sampler.initial(start))
        gram = state @ state.T
        return gram[jnp.triu_indices(len(gram), 1)]

    chunks = jax.random.split(KEY, (10, RUNS // 10))
    return np.asarray(jax.jit(lambda keys: jax.lax.map(jax.vmap(one), keys))(chunks)).reshape(RUNS, -1)


@pytest.mark.parametrize("case", CASES)
def test_samplers_agree_in_law(case):
    """Means and covariances of all overlaps within 5 s.e., each overlap by a two-sample Kolmogorov-Smirnov test.

    Values that are 5% too long fail five of the six cases by far (Kolmogorov-Smirnov 1e-7 to 1e-14); logits are tested
    where they are sharper, below. At this level and with fixed seeds a correct sampler has no reason to fail.
    """
    n, settings, names = CASES[case]
    model = RandomTransformer(step=1.2, **settings)
    start = Sphere(model.d).sines(n)
    reference = overlaps_after(SAMPLERS["naive"].build(model, n), start)
    for name in names:
        chosen, _, _ = choose_sampler(model, n, False, name)
        sample = overlaps_after(chosen, start)
        pairs = [(reference, sample)]
        centred = [s - reference.mean(0) for s in pairs[0]]
        pairs.append(tuple(np.einsum("ra,rb->rab", c, c).reshape(RUNS, -1) for c in centred))
        for one, two in pairs:
            error = np.sqrt((one.var(0) + two.var(0)) / RUNS)
            assert np.all(np.abs(one.mean(0) - two.mean(0)) < 5 * error), name
        for a, b in zip(reference.T, sample.T, strict=True):
            assert st.ks_2samp(a, b).pvalue > LEVEL, name


@pytest.mark.parametrize(
    ("n", "law"),
    [(3, GaussianHeads(4)), (4, GaussianHeads(6, qk_dim=2)), (3, GaussianHeads(4, qk_dim=math.inf, score_mean=0.5))],
)
def test_logits_agree_in_law(n, law):
    """Contrasts c_ik = logit_ik - logit_i1 of the fast attention against those of drawn matrices.

    Second moments (all pairs of queries and keys) and fourth moments within 5 s.e. of 20 000 draws: a logit scale that
    is 6% off fails, and so does p = ∞ in place of p = 4 (Kolmogorov-Smirnov 1e-13).
    """
    model = RandomTransformer(law=law, logit_scale=1.5)
    x = Sphere(law.d).sines(n)
    layer = GaussianLayer(model, min(n, law.d))
    contrast = lambda logits: (logits - logits[:, :1])[:, 1:].ravel()  # noqa: E731

    def fast(key):
        return contrast(jnp.log(layer.fresh_attention(key, reduced(x), x)[0]))

    def drawn(key):
        heads = law.heads(key, 1)
        return contrast(model.beta * (x @ heads.query[0].T) @ (x if heads.key is None else x @ heads.key[0].T).T)

    first, second = (np.asarray(jax.jit(jax.vmap(f))(jax.random.split(KEY, RUNS))) for f in (fast, drawn))
    for a, b in zip(first.T, second.T, strict=True):
        assert st.ks_2samp(a, b).pvalue > LEVEL
    products = [np.einsum("ra,rb->rab", s, s).reshape(RUNS, -1) for s in (first, second)]
    for one, two in (products, [p**2 for p in products]):
        assert np.all(np.abs(one.mean(0) - two.mean(0)) < 5 * np.sqrt((one.var(0) + two.var(0)) / RUNS))


@pytest.mark.parametrize("sampler", ["low-rank", "gram"])
def test_coincident_tokens_stay_together(sampler):
    """Equal tokens hear equal heads: no sampler may tear them apart, whatever is between the other tokens."""
    tokens = np.array(Sphere(32).uniform(jax.random.key(0), 8))
    tokens[1] = tokens[0]
    model = RandomTransformer(32, step=0.3, logit_scale=40.0)
    run = chain(model, tokens, depth=40, every=10, key=jax.random.key(1), record="deficits", sampler=sampler)
    u = run["deficits"].values
    assert u[:, 0, 1].max() < 1e-20
    assert u[-1, 0, 2:].min() > 1e-3


@pytest.mark.parametrize("overlap", [1e-4, 5e-4, 0.01, 0.3])
def test_nearly_orthogonal_gram_matrices_are_not_taken_for_tokens(overlap):
    gram = np.eye(3) + overlap * (1 - np.eye(3))
    factor = np.asarray(RandomTransformer(8).as_tokens(gram))
    np.testing.assert_allclose(factor @ factor.T, gram, atol=1e-14)


def test_gram_at_a_million_dimensions():
    """At d = ∞ one layer of uniform attention is K' = (K + vm)/(1 + vm); fluctuations at d = 10⁶ are 1e-3."""
    model = RandomTransformer(10**6, step=0.6, heads=4, beta=0.0)
    gram, name, _ = choose_sampler(model, 4, False, "gram")
    rows = jax.jit(lambda x: gram.random_layer(gram.initial(x), 0, KEY))(Sphere(4).simplex(4, 0.2))
    m = 0.25 + 0.75 * 0.2
    wanted = (0.2 + 0.09 * m) / (1 + 0.09 * m)
    found = np.asarray(rows @ rows.T)[np.triu_indices(4, 1)]
    np.testing.assert_allclose(found, wanted, atol=5e-3)
    assert name == "gram" and np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-14)


def pair_covariance(overlap, b):
    """s_11, s_12 of two tokens at p = ∞ by two-dimensional Gauss-Hermite quadrature.

    The logits of query i differ by δ_i, normal with covariance 2b²(1-R)K_ij, and s_ij = R + 2(1-R) E σ(δ_i)σ(δ_j).
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    scale = b * math.sqrt(2 * (1 - overlap))
    first, second = np.meshgrid(nodes, nodes, indexing="ij")
    other = overlap * first + math.sqrt(1 - overlap**2) * second
    logistic = lambda z: 1 / (1 + np.exp(-scale * z))  # noqa: E731
    weight = np.outer(weights, weights)
    means = [np.sum(weight * logistic(first) * logistic(z)) for z in (first, other)]
    return np.array([overlap + 2 * (1 - overlap) * e for e in means])


def test_linear_surrogate_is_fourth_order():
    overlap = 0.3
    errors = []
    for b in (0.4, 0.2, 0.1):
        model = RandomTransformer(3, qk_dim=math.inf, logit_scale=b)
        common, individual = LinearSampler(model, 2).pair_weights(Sphere(3).simplex(2, overlap))
        found = common + individual * np.array([1.0, overlap])
        errors.append(np.abs(found - pair_covariance(overlap, b)).max())
    assert errors[0] < 2e-3
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 16, rtol=0.2)


def test_linear_surrogate_is_never_chosen():
    model = RandomTransformer(8, logit_scale=0.1)
    assert choose_sampler(model, 100, True)[1] in ("low-rank", "naive")
    _, _, reason = choose_sampler(model, 100, True, "linear")
    assert "APPROXIMATE" in reason


@pytest.mark.parametrize(
    ("settings", "n", "ambient", "expected"),
    [
        ({"d": 10**6, "logit_scale": 2.0}, 64, False, "gram"),
        ({"d": 1024, "logit_scale": 2.0}, 64, True, "low-rank"),
        ({"d": 100, "logit_scale": 2.0, "heads": 8}, 64, False, "low-rank"),
        ({"d": 4, "beta": 0.0}, 2, False, "uniform"),
        ({"law": MixtureHeads(*matrices(3, 2)), "beta": 1.0}, 4, False, "naive"),
        ({"law": GaussianHeads(64, value_mean=matrices(64)[0, 0]), "beta": 1.0}, 4, False, "low-rank"),
    ],
)
def test_choice_of_sampler(settings, n, ambient, expected):
    _, name, reason = choose_sampler(RandomTransformer(**settings), n, ambient)
    assert name == expected
    assert "ms per layer" in reason


# --- what is refused ---


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "`d` must be given"),
        ({"d": 8, "heads": 0}, "`heads` must be an integer ≥ 1"),
        ({"d": 8, "step": 0.0}, "`step` must be a finite number > 0"),
        ({"d": 8, "beta": 1.0, "logit_scale": 1.0}, "either `beta` or `logit_scale`"),
        ({"d": 8, "qk_dim": math.inf, "beta": 1.0}, "`logit_scale` must be given"),
        ({"d": 8, "qk_dim": math.inf, "sigma_a": 1.0, "logit_scale": 1.0}, "`sigma_a` must be None"),
        ({"d": 8, "qk_dim": 0}, "`qk_dim` must be an integer ≥ 1"),
        ({"d": 8, "update": "euler"}, "'ambient' or 'tangent'"),
        ({"d": 8, "multiplicities": [1.0, -1.0]}, "be at least 0, with a positive sum"),
        ({"d": 8, "law": GaussianHeads(4)}, "`d` must be None or the law's 4"),
        ({"law": GaussianHeads(4), "sigma_v": 1.0}, "belongs to the law"),
        ({"law": random_values(4), "logit_scale": 1.0}, "scores are not random"),
        ({"law": "gaussian"}, "a law of heads"),
    ],
)
def test_bad_models(settings, message):
    with pytest.raises(ArgumentError, match=message):
        RandomTransformer(**settings)


def test_bad_laws():
    values, scores = matrices(3, 2)
    with pytest.raises(ArgumentError, match=r"`probabilities` must sum to 1, but is 1\.1"):
        MixtureHeads(values, scores, [0.5, 0.6])
    with pytest.raises(ArgumentError, match="`probabilities` must be at least 0"):
        MixtureHeads(values, scores, [1.5, -0.5])
    with pytest.raises(ArgumentError, match="`scores` must have the shape"):
        MixtureHeads(values, scores[:1])
    with pytest.raises(ArgumentError, match=r"`value_mean` must have shape \(4, 4\)"):
        GaussianHeads(4, value_mean=np.eye(3))


def test_samplers_say_why_not():
    model = RandomTransformer(10, logit_scale=1.0)
    for n, ambient, sampler, message in (
        (6, False, "gram", "it needs n ≤ d/2, but n = 6, d = 10"),
        (3, True, "gram", "ambient coordinates"),
        (3, False, "uniform", "it needs β = 0"),
        (3, False, "gibbs", "must be 'auto' or one of gram, linear, low-rank, naive, uniform"),
    ):
        with pytest.raises(ArgumentError, match=message):
            choose_sampler(model, n, ambient, sampler)
    mixture = RandomTransformer(law=MixtureHeads(*matrices(3, 2)))
    for sampler in ("low-rank", "gram", "uniform", "linear"):
        with pytest.raises(ArgumentError, match="it needs Gaussian heads"):
            choose_sampler(mixture, 1, False, sampler)
    with pytest.raises(ArgumentError, match="multiples of the identity"):
        choose_sampler(RandomTransformer(law=GaussianHeads(8, score_mean=matrices(8)[0, 0])), 2, False, "gram")


def test_starts_are_checked():
    model = RandomTransformer(4, multiplicities=[1.0, 1.0])
    for start, message in (
        (np.eye(4)[:2] * 2, "rows of length 1"),
        (np.eye(6)[:2], r"must have shape \(n, 4\)"),
        (np.eye(4)[:3], "one entry per token"),
    ):
        with pytest.raises(ArgumentError, match=message):
            model.check(start)
    for gram, message in (
        ([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]], "eigenvalue -0.8"),
        ([[1.0, 0.5], [0.2, 1.0]], "symmetric"),
        ([[2.0, 0.5], [0.5, 1.0]], "unit diagonal"),
        (0.5 * np.eye(5) + 0.5, "rank at most d = 4"),
    ):
        with pytest.raises(ArgumentError, match=message):
            model.as_tokens(np.asarray(gram))
    gram = 0.7 * np.eye(3) + 0.3
    factor = np.asarray(model.as_tokens(gram))
    np.testing.assert_allclose(factor @ factor.T, gram, atol=1e-14)


def test_chains_have_no_drift():
    model = RandomTransformer(4)
    assert isinstance(model, HasRandomLayers)
    with pytest.raises(FormError, match="use chain"):
        model.drift(None, jnp.zeros(()))
