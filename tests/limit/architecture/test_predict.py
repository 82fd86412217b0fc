"""The Gram map against transformers with every matrix formed, and against the values of the homogenized spec."""

import math

import numpy as np
import pytest

from pathlines.architecture import Architecture, Deviations
from pathlines.foundation.errors import ArgumentError
from pathlines.limit.architecture.predict import cosine_curve, predict
from pathlines.limit.architecture.rank import expected_rank
from pathlines.limit.architecture.start import embedded_gram, start_gram
from pathlines.limit.architecture.summary import simplex_summary

from .transformer import measured, run

D = Deviations.equal
SIZES = {"width": 96, "heads": 4, "mlp_width": 192, "layers": 6}
PLAIN = {"mlp_gate": 0.0, "position": 0.08}
IDS = np.array([0, 1, 2, 3, 1, 4, 5, 0, 6, 7, 8, 9, 2, 10, 11, 12])
CASES = {
    "gpt2": Architecture(**SIZES, deviations=D(0.08, output=0.03, mlp_out=0.03, **PLAIN)),
    "bert": Architecture(
        **SIZES, placement="post", mask="full", embedding_norm=True, types=2, deviations=D(0.08, type=0.08, **PLAIN)
    ),
    "neox": Architecture(
        **SIZES, placement="parallel", positions="rope", rope_fraction=0.25, deviations=D(0.06, mlp_gate=0.0)
    ),
    "llama": Architecture(
        **SIZES, kv_heads=2, norm="rms", gated=True, activation="silu", positions="rope", norm_epsilon=1e-4,
        deviations=D(0.06),
    ),
    "gemma": Architecture(
        **SIZES, placement="sandwich", norm="rms", gated=True, positions="rope", qk_norm=True,
        embedding_scale=math.sqrt(96), deviations=D(0.1),
    ),
    "alibi": Architecture(**SIZES, positions="alibi", deviations=D(0.06, mlp_gate=0.0)),
    "albert": Architecture(
        **SIZES, placement="post", mask="full", embedding_norm=True, embedding_width=32,
        deviations=D(0.08, projection=0.08, **PLAIN),
    ),
    "deepnorm": Architecture(**SIZES, placement="post", skip=1.8, deviations=D(0.1, **PLAIN)),
    "sharp": Architecture(**SIZES, deviations=D(0.1, query=0.16, key=0.16, **PLAIN)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_placement_vs_formed_matrices(name):
    """Mean cosine within four standard errors and 0.01 (second order in 1/width) at every layer; RMS within 3%."""
    found = predict(CASES[name], IDS)
    values, rms = measured(CASES[name], IDS, 24)
    error = values.std(axis=0, ddof=1) / math.sqrt(len(values))
    assert np.all(np.abs(values.mean(axis=0) - found.mean_cosine) < 4 * error + 0.01)
    np.testing.assert_allclose(found.residual_rms, rms, rtol=0.04)
    ratio = found.spread[1:] / values.std(axis=0, ddof=1)[1:]
    assert np.all((ratio > 0.5) & (ratio < 2.0))


RANKS = {
    **{name: CASES[name] for name in ("gpt2", "bert", "neox", "llama", "deepnorm")},
    "albert": CASES["albert"].changed(embedding_width=64),
    "narrow": CASES["gpt2"].changed(width=12, heads=2, mlp_width=24),
}


@pytest.mark.parametrize("name", RANKS)
def test_effective_rank_vs_formed_matrices(name):
    """Noise of every matrix counts: within four standard errors and 4% (8% where tokens outnumber coordinates)."""
    case, ids = RANKS[name], np.arange(40)
    runs = [run(case, ids, seed) for seed in range(16)]
    ranks = np.array([[rank_of(h) for h in states] for states in runs])
    error = ranks.std(axis=0, ddof=1) / math.sqrt(len(ranks))
    found, allowed = predict(case, ids).effective_rank, 0.04 if case.width > len(ids) else 0.08
    assert np.all(np.abs(ranks.mean(axis=0) - found) < 4 * error + allowed * found)


def rank_of(h):
    unit = h / np.linalg.norm(h, axis=1, keepdims=True)
    p = np.linalg.svd(unit, compute_uv=False) ** 2 / len(h)
    p = p[p > 1e-14]
    return math.exp(-np.sum(p * np.log(p)))


@pytest.mark.parametrize("size", [0.2, 0.5])
def test_sharp_attention_spreads_no_more(size):
    """Logits of deviation 4 and 24: the spread over 48 seeds (its own error is 10%) within 1.5; finite everywhere."""
    case = CASES["deepnorm"].changed(skip=1.0, placement="pre", layers=3, deviations={"query": size, "key": size})
    found, (values, _) = predict(case, IDS), measured(case, IDS, 48)
    ratio = found.spread[1:] / values.std(axis=0, ddof=1)[1:]
    assert np.all((ratio > 1 / 1.5) & (ratio < 1.5))


def test_two_tokens():
    """What attention leaves different between two tokens is of order b², so heads are drawn: four errors and 0.003."""
    case = Architecture(
        width=128, heads=4, layers=2, mask="full", positions="none", deviations=D(0.06, mlp_gate=0.0)
    )  # fmt: skip
    values, _ = measured(case, np.arange(2), 600)
    error = values.std(axis=0, ddof=1) / math.sqrt(len(values))
    assert np.all(np.abs(values.mean(axis=0) - predict(case, 2).mean_cosine) < 4 * error + 0.003)


def spec(layers=32, n=64, b=1.0, residual=0.4, placement="post", **changes):
    """The encoder of the spec's verification: d = 128, H = 8, σ = d^{-1/2}, attention alone, RMS norms."""
    d = 128
    size = math.sqrt(b / d)
    deviations = Deviations(embedding=1.0, query=size, key=size, value=d**-0.5, output=d**-0.5)
    sizes = {"width": d, "heads": 8, "layers": layers, "norm": "rms", "mask": "full", "positions": "none"}
    fields = {"placement": placement, "attention_residual": residual, "deviations": deviations, **sizes, **changes}
    return predict(Architecture(**fields), n)


@pytest.mark.parametrize(
    ("setting", "layers", "simulated", "errors"),
    [
        ({}, (8, 16, 24, 32), (0.035, 0.121, 0.309, 0.591), (0.003, 0.011, 0.025, 0.035)),
        ({"placement": "pre"}, (8, 16, 24, 32), (0.034, 0.120, 0.264, 0.409), (0.003, 0.010, 0.022, 0.025)),
        ({"residual": 1.0, "layers": 12}, (4, 8, 12), (0.176, 0.759, 0.982), (0.02, 0.03, 0.01)),
        ({"placement": "pre", "residual": 1.0, "b": 3.0}, (8, 16, 24, 32), (0.232, 0.487, 0.654, 0.748),
         (0.023, 0.032, 0.030, 0.020)),
    ],
)  # fmt: skip
def test_verification_lines_of_the_spec(setting, layers, simulated, errors):
    found = spec(**setting).mean_cosine[list(layers)]
    assert np.all(np.abs(found - simulated) < 3 * np.array(errors) + 0.005)


def test_saturating_perceptron_of_the_spec():
    d, inner = 128, 512
    deviations = Deviations(
        embedding=1.0, query=d**-0.5, key=d**-0.5, value=d**-0.5, output=d**-0.5, mlp_in=3 / math.sqrt(d),
        mlp_out=inner**-0.5,
    )  # fmt: skip
    found = spec(
        layers=60, n=48, mlp_width=inner, activation="erf", mlp_residual=0.8, deviations=deviations
    ).mean_cosine[[16, 30, 45, 60]]
    assert np.all(np.abs(found - (0.074, 0.176, 0.271, 0.373)) < 3 * np.array((0.006, 0.014, 0.024, 0.038)))


def test_causal_mask_of_the_spec():
    d, size = 256, math.sqrt(0.3 / 256)
    deviations = Deviations(embedding=1.0, query=size, key=size, value=d**-0.5, output=d**-0.5)
    common = {"b": 0.3, "residual": 0.5, "layers": 24, "mask": "causal", "deviations": deviations, "width": d}
    pre = spec(placement="pre", **common).mean_cosine[[8, 16, 24]]
    post = spec(**common).mean_cosine[[8, 16, 24]]
    np.testing.assert_allclose(pre, (0.163, 0.436, 0.616), atol=0.03)
    np.testing.assert_allclose(post, (0.172, 0.606, 0.875), atol=0.06)


def test_simplex_summary_of_the_spec():
    """GPT-2-small-like and BERT-base-like examples, attention alone, to all printed digits (d, p = ∞)."""
    std = 0.02
    gpt2 = Architecture(
        width=768, heads=12, layers=12, mask="full", deviations=D(std, output=std / math.sqrt(24), position=std)
    )
    found = simplex_summary(gpt2, 1024, finite_width=False).cosine[[1, 2, 3, 4, 6, 12]]
    np.testing.assert_allclose(found, (0.004775, 0.031962, 0.162858, 0.499428, 0.878877, 0.972111), atol=6e-7)
    bert = gpt2.changed(placement="post", embedding_norm=True, deviations={"output": std})
    curve = simplex_summary(bert, 512, layers=80, finite_width=False).cosine
    assert curve[12] == pytest.approx(0.003796, abs=6e-7) and np.argmax(curve >= 0.5) == 70


def test_simplex_summary_vs_gram_map():
    """Where nothing is masked and all tokens differ the two are one map, up to the order in b."""
    case = Architecture(
        **SIZES, mask="full", gated=True, norm="rms", activation="silu", positions="none", deviations=D(0.05)
    )
    curve = cosine_curve(case, 24)
    np.testing.assert_allclose(simplex_summary(case, 24).cosine, curve, atol=2e-3)
    np.testing.assert_allclose(predict(case, 24, spread=False).mean_cosine, curve, atol=1e-12)


def test_causes_add_up():
    found = predict(CASES["gpt2"], 12)
    np.testing.assert_allclose(np.cumsum(found.causes.sum(axis=1)), found.mean_cosine, atol=1e-12)
    assert found.shares["mean bias"] > 0.02
    assert predict(CASES["llama"], 12).shares["mean bias"] == 0
    parallel = predict(CASES["neox"], 12)
    np.testing.assert_allclose(np.cumsum(parallel.causes.sum(axis=1)), parallel.mean_cosine, atol=1e-12)


def test_start():
    bert = CASES["bert"]
    gram = start_gram(bert, [5, 6, 5])
    np.testing.assert_allclose(gram[np.triu_indices(3, 1)], [1 / 3, 2 / 3, 1 / 3], rtol=1e-12)
    rows = np.random.default_rng(0).standard_normal((4, 4000))
    np.testing.assert_allclose(embedded_gram(bert, rows), np.eye(4), atol=0.1)
    with pytest.raises(ArgumentError, match="between 0 and 9"):
        start_gram(bert.changed(vocabulary=10), [1, 10])
    with pytest.raises(ArgumentError, match="two token ids"):
        start_gram(bert, [3])
    with pytest.raises(ArgumentError, match="12 tokens, but positions for 10"):
        start_gram(bert.changed(context=10), 12)
    with pytest.raises(ArgumentError, match="tokens start at zero"):
        start_gram(CASES["llama"].changed(deviations={"embedding": 0.0}), 3)


def test_effective_rank_vs_gaussian_tokens():
    """Page's correction n/2d, and its generalisation to correlated tokens."""
    rng = np.random.default_rng(3)
    n, d = 24, 200
    for k in (np.eye(n), 0.6 * np.eye(n) + 0.4):
        root = np.linalg.cholesky(k)
        ranks = []
        for _ in range(100):
            x = root @ rng.standard_normal((n, d))
            p = np.linalg.svd(x, compute_uv=False) ** 2
            p = p / p.sum()
            ranks.append(np.exp(-np.sum(p * np.log(p))))
        assert expected_rank(k, d) == pytest.approx(np.mean(ranks), rel=0.02)
    for n, d in ((60, 20), (8, 128)):  # more tokens than coordinates; few tokens, where the unit diagonal shows
        ranks = [rank_of(rng.standard_normal((n, d))) for _ in range(100)]
        assert expected_rank(np.eye(n), d) == pytest.approx(np.mean(ranks), rel=0.01 if n < d else 0.03)


def test_kept_tokens():
    whole = predict(CASES["gpt2"], IDS)
    part = predict(CASES["gpt2"], IDS, keep=np.arange(8))
    np.testing.assert_array_equal(whole.cosines, part.cosines)
    assert part.mean_cosine[-1] == pytest.approx((whole.cosines[:8, :8].sum() - 8) / 56)
