"""The check of annotations notices what broadcasting hides, and leaves refusals alone."""

import jax.numpy as jnp
import pytest

from pathlines.domain import Sphere
from pathlines.foundation.errors import ArgumentError
from pathlines.kernels.spectral.attend import averages
from typecheck import VIOLATIONS


def test_a_wrong_shape_is_noticed():
    averages(jnp.ones((3, 2)), jnp.ones(1), 0.0)
    assert "potential" in VIOLATIONS[0]
    VIOLATIONS.clear()


def test_a_refused_argument_is_forgiven():
    with pytest.raises(ArgumentError, match="`dim`"):
        Sphere("3")
    assert VIOLATIONS == []
