"""A fast form is that of the very model: a class that says something else is integrated as it stands."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.attention import LinearAttention, SoftmaxAttention, UnnormalisedAttention
from pathlines.domain import Sphere
from pathlines.foundation.errors import ArgumentError, FormError
from pathlines.foundation.module import written_for
from pathlines.integrate import chain, coarsen, flow
from pathlines.integrate.gaussian_fate import _in_native_code
from pathlines.model import SelfAttention
from pathlines.model.clustering.normalised import NormalisedAttention
from pathlines.model.clustering.rescaled import RescaledAttention
from pathlines.model.gaussian.closure import SoftmaxGaussian
from pathlines.model.homogenized.random_transformer import RandomTransformer
from pathlines.model.homogenized.samplers.layer import not_gaussian
from pathlines.model.metastability.circle_density import CircleDensity
from pathlines.model.metastability.zonal import ZonalMeasure
from pathlines.model.parts.summation import reduction_of
from pathlines.model.parts.value_symmetry import symmetric_value
from pathlines.weights import FixedWeights, Heads, IdentityWeights
from pathlines.weights.gaussian import GaussianHeads


class Still(SelfAttention):
    """Nothing moves, whatever attention says."""

    def drift(self, state, t):
        return jnp.zeros_like(state)


class Deaf(SelfAttention):
    """Everyone attends to themselves alone, so nothing moves either."""

    def attend(self, x, t):
        return x, jnp.zeros(x.shape[0])


class Same(SelfAttention):
    """Adds a word and changes nothing."""

    def greeting(self):
        return "hello"


def tokens(n, d, spread=None):
    x = Sphere(d).uniform(jax.random.key(3), n)
    return x if spread is None else Sphere(d).retract(x[:1] + spread * x)


CASES = {
    "circle-fourier": (150, 2, None),
    "span": (4, 9, None),
    "sums on the sphere": (3000, 3, None),
    "hand-over to deficits": (5, 3, 1e-3),
}


@pytest.mark.parametrize("kind", [Still, Deaf])
@pytest.mark.parametrize("case", CASES)
def test_what_stands_still_stays(kind, case):
    start = tokens(*CASES[case])
    run = flow(kind(2.0), start, until=20.0 if case.startswith("hand") else 0.5, record="tokens", rtol=1e-6)
    assert [f.name for f in run.forms] == ["tokens"]
    np.testing.assert_allclose(run["tokens"].values[-1], start, atol=1e-12)


@pytest.mark.parametrize("kind", [Still, Deaf])
@pytest.mark.parametrize(("form", "n", "d"), [("circle-fourier", 150, 2), ("span", 4, 9), ("gram-deficit", 4, 3)])
def test_asked_for_it_is_an_error_that_names_the_method(kind, form, n, d):
    with pytest.raises(FormError, match=r"has its own `(drift|attend)`"):
        flow(kind(2.0), tokens(n, d), until=0.5, form=form, record="overlaps")


def test_clusters_do_not_continue_another_model():
    with pytest.raises(ArgumentError, match="another model"):
        coarsen(Still(50.0), tokens(6, 2), until=1.0)


def test_a_class_that_changes_nothing_keeps_the_fast_forms():
    assert flow(Same(2.0), tokens(150, 2), until=0.1, record="energy").forms[0].name == "circle-fourier"
    assert flow(Same(2.0), tokens(4, 9), until=0.1, record="energy").forms[0].name == "span"


class Halted(NormalisedAttention):
    """A scheme in which nothing moves."""

    def drift(self, state, t):
        return jax.tree.map(jnp.zeros_like, state)


def test_another_normalisation_is_not_put_into_its_span():
    run = flow(Halted(2.0), tokens(4, 9), until=0.5, record="overlaps")
    assert run.forms[0].name == "tokens"


class Frozen(RandomTransformer):
    """Layers that leave tokens where they are."""

    def random_layer(self, state, number, key):
        return state


def test_samplers_draw_the_very_chain():
    start = tokens(4, 64)
    run = chain(Frozen(64, logit_scale=1.0), start, depth=3, key=jax.random.key(0), record="tokens")
    np.testing.assert_array_equal(run["tokens"].values[-1], run["tokens"].values[0])
    with pytest.raises(ArgumentError, match="sampler"):
        chain(Frozen(64, logit_scale=1.0), start, depth=3, key=jax.random.key(0), sampler="gram")


class Flat(SoftmaxAttention):
    """Everyone listens to everyone alike."""

    def normalise(self, scores, masses):
        return jnp.broadcast_to(masses, scores.shape), jnp.zeros(scores.shape[0])


class FlatUnnormalised(UnnormalisedAttention):
    """The same, from the other kind with native sums."""

    normalise = Flat.normalise


class Doubled(SoftmaxAttention):
    """Other scores, the same weights of them."""

    def lift(self, queries, keys, values, masses, beta, sums):
        return 2 * beta * queries, keys, values


class OddLinear(LinearAttention):
    """Linear attention has a sum of its own, which is not that of these weights."""

    normalise = Flat.normalise


def pull(x):
    """The drift of tokens that listen to everyone alike."""
    mean = jnp.mean(x, axis=0)
    return mean - (x @ mean)[:, None] * x


@pytest.mark.parametrize("kind", [Flat, FlatUnnormalised, OddLinear])
@pytest.mark.parametrize("summation", ["auto", "dense"])
def test_weights_of_a_derived_kind_are_its_own(kind, summation):
    x = tokens(60, 3)
    model = SelfAttention(2.0, attention=kind(), summation=summation)
    np.testing.assert_allclose(model.drift(x, jnp.zeros(())), pull(x), atol=1e-14)
    assert model.energy_identity() != "holds"


def test_scores_of_a_derived_kind_are_its_own():
    x = tokens(60, 3)
    doubled, plain = SelfAttention(2.0, attention=Doubled()), SelfAttention(4.0)
    np.testing.assert_allclose(doubled.drift(x, jnp.zeros(())), plain.drift(x, jnp.zeros(())), atol=1e-13)
    assert doubled.energy_identity() != "holds"


@pytest.mark.parametrize(("form", "n", "d"), [("circle-fourier", 150, 2), ("gram-deficit", 4, 3)])
def test_forms_of_softmax_are_not_those_of_a_kind_derived_from_it(form, n, d):
    model = SelfAttention(2.0, attention=Flat())
    with pytest.raises(FormError, match="not available"):
        flow(model, tokens(n, d), until=0.5, form=form, record="overlaps")
    with pytest.raises(ArgumentError):
        coarsen(SelfAttention(50.0, attention=Flat()), tokens(6, 2), until=1.0)


class Stretched(IdentityWeights):
    """Not the identity any more."""

    def at(self, t):
        one = jnp.diag(jnp.arange(1.0, 10.0))[None]
        return Heads(one, one, one)


class Stretching(FixedWeights):
    """Matrices that grow, whatever is written in the fields."""

    def at(self, t):
        return Heads(self.query, self.key, (1 + t) * self.value)


def test_weights_that_are_not_the_identity_are_not_taken_for_it():
    start = tokens(4, 9)
    model = SelfAttention(2.0, weights=Stretched())
    assert flow(model, start, until=0.1, record="overlaps").forms[0].name == "tokens"
    fixed = Stretching(np.eye(9)[None], np.eye(9)[None], np.eye(9)[None])
    for weights in (Stretched(), fixed):
        assert SelfAttention(2.0, weights=weights).energy_identity() != "holds"
        assert reduction_of(weights) is None
        assert not symmetric_value(weights)


class Wandering(RescaledAttention):
    """Tokens keep their course, 0/1 attention or not."""

    def drift(self, state, t):
        return jnp.ones_like(state)


class Still2(CircleDensity):
    """A density that does not move."""

    def drift(self, state, t):
        return jnp.zeros_like(state)


class Still3(ZonalMeasure):
    """Rings that do not move."""

    def drift(self, state, t):
        return jax.tree.map(jnp.zeros_like, state)


@pytest.mark.parametrize("kind", [Wandering, Still2, Still3, Still])
def test_no_model_hands_over_for_a_class_derived_from_it(kind):
    parent = kind.__mro__[1]
    assert "handover" in vars(parent)
    assert not written_for(object.__new__(kind), "handover")
    assert written_for(object.__new__(parent), "handover")


def test_a_derived_class_keeps_its_course_where_its_parent_hands_over():
    start = np.array([[-1.0], [0.2], [1.0]])
    parent = flow(RescaledAttention(np.eye(1)), start, until=8.0, record="tokens")
    run = flow(Wandering(np.eye(1)), start, until=8.0, record="tokens")
    assert parent.forms[-1].name == "HardmaxPhase"
    assert [f.name for f in run.forms] == ["tokens"]
    np.testing.assert_allclose(run["tokens"].values[-1], start + 8.0, atol=1e-9)


class Loud(GaussianHeads):
    """Heads that are not those of the fields."""

    def heads(self, key, count, dtype=float):
        return jax.tree.map(lambda m: 2 * m, super().heads(key, count, dtype))


def test_samplers_do_not_draw_other_heads():
    assert not_gaussian(RandomTransformer(64, logit_scale=1.0)) is None
    assert "Loud" in not_gaussian(RandomTransformer(64, law=Loud(64), logit_scale=1.0))


class Reversed(SoftmaxGaussian):
    """The other way round."""

    def drift(self, state, t):
        return jax.tree.map(jnp.negative, super().drift(state, t))


def test_native_fates_are_those_of_softmax_only():
    assert _in_native_code(SoftmaxGaussian(np.eye(2), np.eye(2)))
    assert not _in_native_code(Reversed(np.eye(2), np.eye(2)))
