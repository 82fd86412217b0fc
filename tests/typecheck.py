"""Annotations are checked while tests run: a value that is not what its annotation says must be refused.

Malformed input is refused by the function that is called with it, with an error of ours. So a violation is kept until
the test ends: an error of ours forgives it, silence does not.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import jax
import numpy as np
from beartype import BeartypeConf, FrozenDict, beartype
from beartype.roar import BeartypeCallHintViolation
from numpy.typing import ArrayLike

ROOMS = ("architecture", "numerics", "domain", "attention", "kernels", "weights", "observable", "limit")
"""Rooms whose annotations are checked, in the tests of the same rooms."""

VIOLATIONS: list[str] = []

STANDING_FOR = {
    np.ndarray: np.ndarray | np.generic,
    jax.Array: jax.Array | np.ndarray | np.generic | float | int,
    bool: bool | np.bool_,
    ArrayLike: object,
    ArrayLike | None: object,
}
"""NumPy's scalars are arrays of no dimension, and JAX takes NumPy's arrays and numbers for its own. What NumPy takes
for an array is its own matter: tuples are not of the type it gives for that."""

_strict = beartype(conf=BeartypeConf(is_pep484_tower=True, hint_overrides=FrozenDict(STANDING_FOR)))


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with violations kept instead of raised."""
    strict = _strict(function)

    @wraps(function)
    def kept(*arguments: Any, **named: Any) -> Any:
        try:
            return strict(*arguments, **named)
        except BeartypeCallHintViolation as error:
            VIOLATIONS.append(str(error))
            return function(*arguments, **named)

    return kept
