"""pl.retrieval on circle and sphere: identities against plain averages, memory, warnings, bad input."""

import jax
import numpy as np
import pytest
from scipy import special

import pathlines as pl
from pathlines.attention.masks import WindowMask
from pathlines.foundation.errors import ArgumentError
from pathlines.integrate.influence import SphereInfluence, zonal_polynomial
from pathlines.integrate.prompts import decoded
from pathlines.integrate.sphere_prompts import sphere_decoded
from pathlines.model.causal.decoder import CausalDecoder
from pathlines.model.clustering.gram import GramAttention
from pathlines.numerics.few_samples import ControlledSums, student

KEY = jax.random.key(3)


@pytest.mark.parametrize("d", [2, 3, 4, 7])
def test_zonal_polynomials_are_gegenbauers(d):
    s, a = np.linspace(-1, 1, 9), d / 2 - 1
    for degree in range(1, 6):
        exact = special.eval_chebyt(degree, s) if d == 2 else special.eval_gegenbauer(degree, a, s)
        top = 1.0 if d == 2 else special.eval_gegenbauer(degree, a, 1.0)
        np.testing.assert_allclose(zonal_polynomial(degree, d)(s), exact / top, atol=1e-12)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_sphere_in_the_plane_vs_circle(degree):
    """Causal softmax attention on S¹, self included, is the decoder with a diagonal: prompt by prompt the same."""
    angles = np.random.default_rng(1).uniform(0, 2 * np.pi, (4, 7))
    starts = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    end, jacobian = sphere_decoded(pl.SelfAttention(1.5, mask="causal"), starts, 0.8, steps=200)
    mask = pl.attention.AlibiMask(0.0, strict=False)
    ends, gradient = decoded(CausalDecoder(1.5, mask, softmax=True), angles, 0.8, steps=200)
    np.testing.assert_allclose(end, np.stack([np.cos(ends[:, -1]), np.sin(ends[:, -1])], -1), atol=1e-9)
    value = SphereInfluence(degree, 2, True).samples(starts, (end, jacobian), 0.0)[0]
    apart = ends[:, -1:] - angles[:, :-1]
    np.testing.assert_allclose(value, 7 * gradient[:, :-1] * np.cos(degree * apart), atol=1e-7)


@pytest.mark.parametrize(("d", "degree"), [(3, 1), (3, 2), (4, 3)])
def test_by_parts_vs_plain_average_on_the_sphere(d, degree):
    """Two estimators of one number from the same prompts; the plain one has the noise."""
    model = pl.SelfAttention(2.0, mask="causal")
    found = [
        pl.retrieval(model, 3, 1.5, key=KEY, prompts=20_000, mode=degree, d=d, estimator=e)
        for e in ("adjoint", "naive")
    ]
    apart = np.abs(found[0]["profile"] - found[1]["profile"])
    assert np.all(apart < 5 * np.hypot(found[0]["error"], found[1]["error"]))
    assert np.all(found[0]["error"] < found[1]["error"])


def test_layers_of_the_sphere_are_the_models_own():
    model = pl.SelfAttention(1.0, mask="causal")
    tokens = np.asarray(pl.Sphere(3).uniform(KEY, n=5))
    end, jacobian = sphere_decoded(model, tokens[None], 0.9, layers=3)
    run = pl.layers(model, tokens, depth=3, step=0.3, record="tokens")
    np.testing.assert_allclose(end[0], run["tokens"].values[-1, -1], atol=1e-12)
    moved = tokens + 1e-6 * np.eye(5)[2][:, None] * np.array([0.3, -0.5, 0.2])
    other, _ = sphere_decoded(model, moved[None] / np.linalg.norm(moved, axis=-1)[..., None], 0.9, layers=3)
    tangent = np.array([0.3, -0.5, 0.2]) - tokens[2] * (tokens[2] @ [0.3, -0.5, 0.2])
    np.testing.assert_allclose((other[0] - end[0]) / 1e-6, jacobian[0, :, 2] @ tangent, atol=1e-5)


@pytest.mark.parametrize("model", [CausalDecoder(1.0, WindowMask(4)), pl.SelfAttention(1.0, mask="causal")])
def test_small_budgets_split_blocks_and_change_nothing(model):
    one, two = (pl.retrieval(model, 8, 0.4, key=KEY, prompts=70, memory=m) for m in (2e8, 3e4))
    np.testing.assert_allclose(one["profile"], two["profile"], rtol=1e-9)
    np.testing.assert_allclose(one["error"], two["error"], rtol=1e-7)


def test_few_prompts_have_students_errors():
    found = pl.retrieval(CausalDecoder(1.0, 2.0), 8, 0.2, key=KEY, prompts=6)
    assert "6 prompts: errors are 3.1 times" in found.attrs["warning"]
    sums = ControlledSums(np.zeros(0), 1)
    values = np.array([1.0, 2.0, 4.0])
    sums.add(3, [[values.sum()]], [[[np.sum(values**2)]]], [16.0])
    mean, error = sums.mean_and_error()
    assert (mean[0], error[0]) == pytest.approx((7 / 3, student(3) * values.std(ddof=1) / np.sqrt(3)))
    assert sums.largest_share == pytest.approx(16 / 21)


def test_controls_take_off_what_they_explain():
    rng = np.random.default_rng(0)
    controls = rng.standard_normal((2, 500, 3))
    value = 1.0 + 2 * controls[0] - controls[1] + 0.1 * rng.standard_normal((500, 3))
    z = np.stack([value, *controls])
    sums = ControlledSums(np.zeros(2), 3)
    sums.add(500, z.sum(1), np.einsum("arp,brp->abp", z, z), (value**2).max(0))
    mean, error = sums.mean_and_error()
    np.testing.assert_allclose(error, 0.1 / np.sqrt(500), rtol=0.15)  # the deviation of 500 numbers is known to 3 %
    assert np.all(np.abs(mean - 1) < 5 * error)


def test_heavy_tails_are_said():
    deep = pl.retrieval(CausalDecoder(1.0, 2.0), 64, 5.0, key=KEY, prompts=600)
    assert "heavy tails" in deep.attrs["warning"]
    flat = pl.retrieval(CausalDecoder(1.0, 2.0), 64, 0.3, key=KEY, prompts=600)
    assert flat.attrs["warning"] == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": 3}, "`model`"),
        ({"model": GramAttention(1.0, None, False, 0.0)}, "`model`"),
        ({"memory": 0.0}, "`memory`"),
        ({"d": 1}, "`d`"),
        ({"mode": 0}, "`mode`"),
        ({"layers": 0}, "`layers`"),
        ({"decoder": "firm"}, "`decoder`"),
        ({"estimator": "best"}, "`estimator`"),
    ],
)
def test_bad_input_is_one_line(change, words):
    good = {"model": pl.SelfAttention(1.0, mask="causal"), "n": 4, "depth": 0.2, "key": KEY, "prompts": 4}
    with pytest.raises(ArgumentError, match=words) as error:
        pl.retrieval(**{**good, **change})
    assert "\n" not in str(error.value)
