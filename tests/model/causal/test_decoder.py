"""The causal decoder: reference trajectories, prefix sums against pairs, both paths, derivatives, the estimator."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from pathlines.attention.masks import AlibiMask, MatrixMask, StridedMask, WindowMask, read_mask
from pathlines.foundation.errors import ArgumentError
from pathlines.integrate import flow, layers
from pathlines.integrate.influence import decoder_kernel
from pathlines.integrate.prompts import decoded
from pathlines.integrate.retrieval import retrieval
from pathlines.limit.causal.paths import path_profile
from pathlines.limit.causal.profile import retrieval_profile
from pathlines.model import SelfAttention
from pathlines.model.causal.decoder import CausalDecoder

START = (2.399963229728653 * np.arange(1, 7)) % (2 * np.pi)
ENDS = {
    False: [2.39996322973, 3.28997037073, 2.24596817767, 2.74833896694, 5.24192161872, 2.31372660345],
    True: [2.39996322973, 3.06989687905, 2.19768282202, 2.89708537059, 4.76150484086, 2.27802959826],
}
GRADIENTS = {
    False: [0.58009186572, -0.65728763578, 0.68940468892, 0.023779674513, -0.35209053026, 0.71610193687],
    True: [0.38121612127, -0.16499126987, 0.39862089237, -0.0062671374925, -0.33537586002, 0.72679725374],
}


def as_matrix(slope, n):
    return MatrixMask(np.asarray(AlibiMask(slope).rows(n)))


@pytest.mark.parametrize("softmax", [False, True])
@pytest.mark.parametrize("prompts", [1, 5])
@pytest.mark.parametrize("dense", [False, True])
def test_reference_trajectory_and_adjoint(softmax, prompts, dense):
    model = CausalDecoder(1.0, as_matrix(1.5, 6) if dense else 1.5, softmax=softmax)
    ends, gradient = decoded(model, np.tile(START, (prompts, 1)), 2.0, steps=400)
    np.testing.assert_allclose(ends, np.tile(ENDS[softmax], (prompts, 1)), atol=2e-10)
    np.testing.assert_allclose(gradient, np.tile(GRADIENTS[softmax], (prompts, 1)), atol=2e-10)


@pytest.mark.parametrize("softmax", [False, True])
def test_flow_of_the_engine_has_the_same_end(softmax):
    tokens = np.stack([np.cos(START), np.sin(START)], axis=1)
    run = flow(CausalDecoder(1.0, 1.5, softmax=softmax), tokens, until=2.0, rtol=1e-10, record="tokens")
    np.testing.assert_allclose(
        run["tokens"].values[-1], np.stack([np.cos(ENDS[softmax]), np.sin(ENDS[softmax])], 1), atol=1e-8
    )


@pytest.mark.parametrize("softmax", [False, True])
@pytest.mark.parametrize("slope", [0.0, 2.0, -3.0, 80.0])
@pytest.mark.parametrize("beta", [0.3, 4.0])
def test_prefix_sums_vs_pairs(softmax, slope, beta):
    angles = jnp.asarray(np.random.default_rng(1).uniform(-4, 9, 50))
    fast = CausalDecoder(beta, slope, softmax=softmax).drift(angles, 0.0)
    dense = CausalDecoder(beta, as_matrix(slope, 50), softmax=softmax).drift(angles, 0.0)
    np.testing.assert_allclose(fast, dense, atol=1e-11 * max(1.0, float(special.iv(1, beta))))
    assert fast[0] == 0


@pytest.mark.parametrize("softmax", [False, True])
def test_native_vs_portable(softmax, monkeypatch):
    starts = np.random.default_rng(2).uniform(0, 2 * np.pi, (3, 40))
    model = CausalDecoder(2.0, 1.0, softmax=softmax)
    native = decoded(model, starts, 0.7)
    monkeypatch.setattr("pathlines.integrate.prompts.native_serves", lambda dtype: False)
    for a, b in zip(native, decoded(model, starts, 0.7), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


@pytest.mark.parametrize("mask", [AlibiMask(2.0), WindowMask(4, sinks=1, slope=1.0), StridedMask(3)])
def test_adjoint_vs_differences_and_sum(mask):
    model, h = CausalDecoder(1.5, mask), 1e-6
    starts = np.random.default_rng(3).uniform(0, 2 * np.pi, (1, 12))
    _, gradient = decoded(model, starts, 0.9)
    moved = np.concatenate([starts + h * np.eye(12), starts - h * np.eye(12)])
    ends = decoded(model, moved, 0.9, adjoint=False)[0][:, -1]
    np.testing.assert_allclose(gradient[0], (ends[:12] - ends[12:]) / (2 * h), atol=1e-8)
    assert gradient.sum() == pytest.approx(1.0, abs=1e-12)


def test_layers_are_residual_steps():
    model = CausalDecoder(1.0, 1.5)
    tokens = np.stack([np.cos(START), np.sin(START)], axis=1)
    run = layers(model, tokens, depth=3, step=0.5, record="tokens")
    ends, gradient = decoded(model, START[None], 1.5, layers=3)
    np.testing.assert_allclose(run["tokens"].values[-1], np.stack([np.cos(ends[0]), np.sin(ends[0])], 1), atol=1e-12)
    assert gradient.sum() == pytest.approx(1.0, abs=1e-13)


@pytest.mark.parametrize("vocabulary", [2, 3, 8, 32])
def test_kernels_of_decoders_are_their_series(vocabulary):
    d, n = np.linspace(-7, 7, 41), np.arange(1, 400)
    soft = np.exp(-((np.pi * n / vocabulary) ** 2) / 2) @ np.cos(np.multiply.outer(n, d))
    np.testing.assert_allclose(decoder_kernel(d, vocabulary), soft, atol=1e-12)
    hard = decoder_kernel(np.linspace(-np.pi, np.pi, 20001), vocabulary, "hard")
    assert abs(hard.mean()) < 1e-3
    assert np.mean(hard * np.cos(np.linspace(-np.pi, np.pi, 20001))) == pytest.approx(
        np.sin(np.pi / vocabulary) / np.pi / 2, abs=1e-3
    )


@pytest.mark.parametrize("mask", [AlibiMask(1.0), WindowMask(6, sinks=1)])
def test_estimator_vs_paths(mask):
    profile = retrieval_profile(0.6, 1.0, 8, 0.4)
    found = retrieval(CausalDecoder(0.6, mask), 40, 0.4, key=jax.random.key(5), prompts=1500)
    paths = path_profile(np.asarray(mask.rows(40)), np.asarray(profile.weights), np.asarray(profile.rates), 0.4)[:-1]
    # third cumulants are of relative order e^{2x}/N = 4 %, one and a half times that at most
    allowed = 5 * found["error"].values + 0.06 * paths + 1e-3
    assert np.all(np.abs(found["profile"].values - paths) < allowed)
    assert found.attrs["warning"] == ""


def test_prompts_do_not_depend_on_memory_and_errors_scale():
    model, key = CausalDecoder(1.0, 2.0), jax.random.key(1)
    one = retrieval(model, 16, 0.5, key=key, prompts=200)
    two = retrieval(model, 16, 0.5, key=key, prompts=200, memory=1.0)
    np.testing.assert_allclose(one["profile"], two["profile"], rtol=1e-12)
    np.testing.assert_allclose(one["error"], two["error"], rtol=1e-9)


def test_deep_prompts_are_warned_of():
    found = retrieval(CausalDecoder(2.0, 2.0), 16, 1.0, key=jax.random.key(1), prompts=64)
    assert "meaningful" in found.attrs["warning"]


def test_long_prompts_need_no_matrix():
    # a matrix of 60,000 positions would take 29 GB
    found = retrieval(CausalDecoder(1.0, 2.0), 60_000, 0.2, key=jax.random.key(0), prompts=2)
    assert np.isfinite(found["profile"]).all()


def test_masks():
    window = np.asarray(WindowMask(2, sinks=1).weights(5))
    np.testing.assert_array_equal(window[4], [1, 0, 1, 1, 0])
    np.testing.assert_array_equal(np.asarray(StridedMask(2, 1).weights(5))[4], [1, 0, 1, 1, 0])
    np.testing.assert_allclose(np.asarray(AlibiMask(3.0).rows(9)).sum(axis=1), [0] + [1] * 8)
    np.testing.assert_allclose(np.asarray(AlibiMask(3.0, strict=False).rows(9)).sum(axis=1), 1)
    for text, kind in (
        ("window:3", WindowMask),
        ("sink:2:8", WindowMask),
        ("strided:4", StridedMask),
        ("causal", AlibiMask),
        ("alibi:2", AlibiMask),
    ):
        assert isinstance(read_mask(text), kind)


def test_matrix_masks_are_read_from_files(tmp_path):
    rows = np.asarray(AlibiMask(1.0).rows(7))
    np.save(tmp_path / "mask.npy", rows)
    np.testing.assert_array_equal(read_mask(str(tmp_path / "mask.npy")).weights(7), rows)
    (tmp_path / "bad.npy").write_bytes(b"nothing")
    with pytest.raises(ArgumentError, match="no matrix"):
        read_mask(str(tmp_path / "bad.npy"))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: read_mask("windw:3"), "There is no mask"),
        (lambda: read_mask("window:x"), "`width`"),
        (lambda: read_mask("window:2.5"), "`width`"),
        (lambda: read_mask("window"), "There is no mask"),
        (lambda: MatrixMask(np.eye(3, k=1)), r"entry \(1, 2\)"),
        (lambda: MatrixMask(0.5 * np.eye(3, k=-1)), "row 2 sums to 0.5"),
        (lambda: MatrixMask(np.tri(3, k=-1)[:, ::-1]), "lower triangular"),
        (lambda: CausalDecoder(np.inf), "`beta`"),
        (lambda: CausalDecoder(1.0, "windw:3"), "There is no mask"),
        (lambda: AlibiMask(np.nan), "`slope`"),
        (lambda: retrieval(CausalDecoder(), 1, 1.0, key=jax.random.key(0)), "`n`"),
        (lambda: retrieval(CausalDecoder(), 8, 0.0, key=jax.random.key(0)), "`depth`"),
        (lambda: retrieval(CausalDecoder(), 8, 1.0, key=jax.random.key(0), prompts=1), "`prompts`"),
        (lambda: retrieval(CausalDecoder(), 8, 1.0, key=jax.random.key(0), vocabulary=1), "`vocabulary`"),
        (lambda: retrieval(CausalDecoder(), 8, 1.0, key=0), "`key`"),
        (lambda: retrieval(CausalDecoder(1.0, as_matrix(1.0, 5)), 8, 1.0, key=jax.random.key(0)), "5 positions"),
    ],
)
def test_bad_input_is_one_line(call, words):
    with pytest.raises(ArgumentError, match=words) as error:
        call()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("beta", "softmax"), [(25.0, True), (8.0, True), (6.0, False)])
def test_cold_decoders_against_pairs_in_longer_floats(beta, softmax):
    angles = np.random.default_rng(4).uniform(0, 2 * np.pi, 9)
    apart = (angles[:, None] - angles).astype(np.longdouble)
    heard = np.asarray(AlibiMask(1.0).rows(9)) * np.exp(beta * (np.cos(apart) - 1))
    slope = -np.sum(heard * np.sin(apart), axis=1)[1:]
    scale = np.sum(heard, axis=1)[1:] if softmax else np.exp(-np.longdouble(beta)) / beta
    found = CausalDecoder(beta, 1.0, softmax=softmax).drift(jnp.asarray(angles), 0.0)[1:]
    np.testing.assert_allclose(
        found, np.asarray(slope / scale, float), rtol=1e-6, atol=1e-10 * np.exp(0 if softmax else beta)
    )


@pytest.mark.parametrize("slope", [200.0, 600.0, -600.0])
def test_prefix_sums_of_steep_slopes(slope):
    angles = jnp.asarray(np.random.default_rng(5).uniform(0, 6, 16))
    fast = CausalDecoder(1.0, slope).drift(angles, 0.0)
    np.testing.assert_allclose(fast, CausalDecoder(1.0, as_matrix(slope, 16)).drift(angles, 0.0), atol=1e-12)


@pytest.mark.parametrize(("beta", "softmax"), [(1.0, False), (6.0, False), (8.0, True)])
def test_default_steps_are_enough(beta, softmax):
    starts = np.random.default_rng(6).uniform(0, 2 * np.pi, (8, 12))
    model, depth = CausalDecoder(beta, 1.0, softmax=softmax), 0.5 if softmax else 0.5 / float(special.iv(1, beta))
    rate = 1 + beta if softmax else beta * np.exp(beta)
    fine = decoded(model, starts, depth, steps=int(40 * np.ceil(depth * rate / 0.3)))
    for a, b in zip(decoded(model, starts, depth), fine, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4 * np.abs(b).max())


def test_a_diagonal_only_dilutes():
    angles = jnp.asarray(START)
    half = MatrixMask(np.vstack([np.eye(6)[:1], 0.5 * np.eye(6)[1:] + 0.5 * np.asarray(AlibiMask(1.5).rows(6))[1:]]))
    np.testing.assert_allclose(
        CausalDecoder(1.0, half).drift(angles, 0.0), 0.5 * CausalDecoder(1.0, 1.5).drift(angles, 0.0), atol=1e-14
    )
    softmax = CausalDecoder(1.0, AlibiMask(0.0, strict=False), softmax=True).drift(angles, 0.0)
    tokens = np.stack([np.cos(START), np.sin(START)], 1)
    attention = SelfAttention(1.0, mask="causal").drift(jnp.asarray(tokens), jnp.zeros(()))
    np.testing.assert_allclose(
        np.sum(np.asarray(attention) * np.stack([-tokens[:, 1], tokens[:, 0]], 1), axis=1), softmax, atol=1e-14
    )


def test_masks_with_a_diagonal_are_not_strict():
    assert not MatrixMask([[1.0, 0.0], [0.5, 0.5]]).strict
    assert not MatrixMask([[0.0, 0.0], [0.5, 0.5]]).strict
