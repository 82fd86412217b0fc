"""The closure of masked linear attention against tokens, SciPy and the unmasked closure."""

import numpy as np
import pytest

from pathlines.attention import LinearAttention, PlacedMask
from pathlines.foundation.errors import ArgumentError, FormError
from pathlines.integrate import flow, layers
from pathlines.limit.gaussian.masked import masked_linear_moments
from pathlines.limit.gaussian.moments import head
from pathlines.model import MODELS, SelfAttention
from pathlines.model.gaussian.closure import LinearGaussian
from pathlines.model.gaussian.masked import MaskedLinearGaussian
from pathlines.weights import FixedWeights

RNG = np.random.default_rng(8)
V, A, W, B = RNG.standard_normal((4, 2, 2)) * 0.3
SIZES = (3, 1, 5)
PLACE = np.repeat(np.arange(3), SIZES)
TOKENS = RNG.standard_normal((9, 2)) + PLACE[:, None] * 0.2
LOOK = ("block_means", "block_covariances")
ALIKE = {"until": 0.8, "method": "dop853", "rtol": 1e-11, "atol": 1e-13}


def moments_of(x):
    parts = np.split(x, np.cumsum(SIZES)[:-1])
    return np.stack([p.mean(axis=0) for p in parts]), np.stack([np.cov(p.T, bias=True) for p in parts])


@pytest.mark.parametrize("prefix", ["sum", "mean"])
@pytest.mark.parametrize("heads", [1, 2])
def test_closure_vs_tokens_vs_scipy(prefix, heads):
    """Nine tokens at three positions, no Gaussian law in sight: all moments of all blocks."""
    values, scores = np.stack([V, W])[:heads], np.stack([A, B])[:heads]
    model = MaskedLinearGaussian(values, scores, blocks=PLACE, reduce=prefix)
    run = flow(model, TOKENS, record=LOOK, **ALIKE)
    weights = FixedWeights(values, scores)
    tokens = SelfAttention(
        1.0, attention=LinearAttention(), weights=weights, space="euclidean", mask=PlacedMask(PLACE, reduce=prefix)
    )
    seen = moments_of(flow(tokens, TOKENS, record="tokens", **ALIKE)["tokens"].values[-1])
    start = moments_of(TOKENS)
    drawn = [head(v, a) for v, a in zip(values, scores, strict=True)]
    other = masked_linear_moments(drawn, np.array(SIZES) / 9, *start, [ALIKE["until"]], prefix)
    for name, from_tokens, from_scipy in zip(LOOK, seen, (other.mean[-1], other.covariance[-1]), strict=True):
        found = run[name].values[-1]
        assert np.abs(found - run[name].values[0]).max() > 0.02
        np.testing.assert_allclose(found, from_tokens, atol=1e-9)
        np.testing.assert_allclose(found, from_scipy, atol=1e-9)


def test_one_block_is_linear_attention():
    one = flow(MaskedLinearGaussian(V, A, blocks=1), TOKENS, record=("cloud_mean", "covariance"), **ALIKE)
    plain = flow(LinearGaussian(V, A), TOKENS, record=("cloud_mean", "covariance"), **ALIKE)
    for name in ("cloud_mean", "covariance"):
        np.testing.assert_allclose(one[name].values[-1], plain[name].values[-1], atol=1e-10)


def test_later_blocks_change_nothing_and_shares_count():
    """The first block alone, with the share it has among three; shares of a block are those of its tokens."""
    whole = flow(MaskedLinearGaussian(V, A, blocks=PLACE), TOKENS, record=LOOK, **ALIKE)
    first = flow(MaskedLinearGaussian(V * 3 / 9, A, blocks=1), TOKENS[:3], record=LOOK, **ALIKE)
    given = MaskedLinearGaussian(V, A, blocks=PLACE, shares=[6, 2, 10])
    again = flow(given, TOKENS, record=LOOK, **ALIKE)
    for name in LOOK:
        np.testing.assert_allclose(whole[name].values[-1][0], first[name].values[-1][0], atol=1e-10)
        np.testing.assert_allclose(whole[name].values[-1], again[name].values[-1], atol=1e-12)


def test_layers_are_those_of_tokens():
    closed = layers(MaskedLinearGaussian(V, A, blocks=PLACE), TOKENS, step=0.1, depth=5, record="covariance")
    tokens = SelfAttention(
        1.0,
        attention=LinearAttention(),
        weights=FixedWeights(V, A),
        space="euclidean",
        mask=PlacedMask(PLACE, reduce="sum"),
    )
    rows = layers(tokens, TOKENS, step=0.1, depth=5, record="covariance")
    np.testing.assert_allclose(closed["covariance"].values, rows["covariance"].values, atol=1e-13)


def test_registered_and_refusals():
    run = flow(MODELS["masked-gaussian-linear"].build(blocks=3), TOKENS, until=0.5, record="block_means")
    assert run["block_means"].shape[-2:] == (3, 2)
    with pytest.raises(ArgumentError, match="multiple of 2 rows"):
        flow(MaskedLinearGaussian(V, A), TOKENS, until=0.5)
    with pytest.raises(ArgumentError, match=r"one position a token \(8\), not 9"):
        flow(MaskedLinearGaussian(V, A, blocks=PLACE), TOKENS[:8], until=0.5)
    with pytest.raises(ArgumentError, match="do not decrease"):
        MaskedLinearGaussian(V, A, blocks=PLACE[::-1])
    with pytest.raises(ArgumentError, match="`shares`"):
        MaskedLinearGaussian(V, A, shares=[1, 0])
    with pytest.raises(ArgumentError, match="`reduce`"):
        MaskedLinearGaussian(V, A, reduce="all")
    with pytest.raises(FormError, match="blocks"):
        flow(LinearGaussian(V, A), TOKENS, until=0.5, record="block_means")
