"""A fast form is that of the very model: a class that says something else is integrated as it stands."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.domain import Sphere
from pathlines.foundation.errors import ArgumentError, FormError
from pathlines.integrate import chain, coarsen, flow
from pathlines.integrate.fate import _in_native_code
from pathlines.model import NormalisedAttention, RandomTransformer, SelfAttention
from pathlines.model.gaussian_closure import SoftmaxGaussian


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


class Reversed(SoftmaxGaussian):
    """The other way round."""

    def drift(self, state, t):
        return jax.tree.map(jnp.negative, super().drift(state, t))


def test_native_fates_are_those_of_softmax_only():
    assert _in_native_code(SoftmaxGaussian(np.eye(2), np.eye(2)))
    assert not _in_native_code(Reversed(np.eye(2), np.eye(2)))
