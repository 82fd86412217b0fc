"""A model is small; what else it has, it takes from classes that engines ask for."""

import inspect
from importlib import import_module
from pkgutil import walk_packages

import jax
import numpy as np
import pytest

import pathlines.model
from pathlines.domain import Sphere
from pathlines.foundation.errors import FormError
from pathlines.integrate import chain, flow, layers
from pathlines.integrate.forms import choose_form
from pathlines.model import capability
from pathlines.model.base import Model
from pathlines.model.clustering.gram import GramAttention
from pathlines.model.parts.offer import Form, Offer, OffersForms, Posed
from pathlines.model.self_attention import SelfAttention


def derived(kind):
    """Every class of the package that derives from ``kind``."""
    for module in walk_packages(pathlines.model.__path__, "pathlines.model."):
        import_module(module.name)
    found, left = [], [kind]
    while left:
        new = [c for c in left.pop().__subclasses__() if c not in found and c.__module__.startswith("pathlines.")]
        found, left = found + new, left + new
    return found


def is_abstract(kind):
    return inspect.isabstract(kind) or bool(getattr(kind, "__abstractvars__", ()))


def test_every_model_is_abstract_or_final():
    kinds = derived(Model)
    assert len(kinds) > 50
    derived_from = [k.__name__ for k in kinds if not is_abstract(k) and set(k.__subclasses__()) & set(kinds)]
    assert derived_from == []


def test_a_model_has_a_dozen_members():
    members = [n for n, v in vars(Model).items() if not n.startswith("_") and (callable(v) or isinstance(v, property))]
    assert len(members) <= 12, members


def test_capabilities_share_no_member():
    kinds = [k for k in vars(capability).values() if inspect.isclass(k) and k.__module__ == capability.__name__]
    roots = [k for k in kinds if k.__bases__ == (Model,)]
    names = [n for k in roots for n in vars(k) if not n.startswith("_") and n not in ("papers", "watched")]
    assert len(roots) >= 11 and len(names) == len(set(names))


def test_what_a_model_lacks_is_said_in_one_line():
    x = Sphere(3).sines(4)
    with pytest.raises(FormError, match="GramAttention has no layer map"):
        layers(GramAttention(1.0), x, depth=1)
    with pytest.raises(FormError, match="SelfAttention has no random layers"):
        chain(SelfAttention(1.0), x, depth=1, key=jax.random.key(0))
    with pytest.raises(FormError, match="GramAttention does not offer it"):
        flow(GramAttention(1.0), x, until=1.0, form="span")


class Mirrored(SelfAttention, OffersForms):
    """Offers a form that nobody has heard of."""

    def forms(self, wanted):
        """The same model from the mirrored start."""
        yield Offer("mirror", 1.0, lambda: Posed(self, -wanted.tokens, Form("mirror", 0.0, "cheap"), lambda x: -x))


def test_the_engine_takes_the_cheapest_form_that_is_offered():
    x = Sphere(3).sines(4)
    posed = choose_form(Mirrored(2.0), x, ())
    assert posed.form.name == "mirror"
    run = flow(Mirrored(2.0), x, times=[0.5], record="tokens", form="mirror")
    plain = flow(SelfAttention(2.0), x, times=[0.5], record="tokens")
    np.testing.assert_allclose(run["tokens"].values, plain["tokens"].values, atol=1e-9)
    assert flow(Mirrored(2.0), x, times=[0.5], form="tokens").forms[0].name == "tokens"
