"""Annotations are checked while tests run: a value that is not what its annotation says must be refused.

Malformed input is refused by the function that is called with it, with an error of ours. So a violation is kept until
the test ends: an error of ours forgives it, silence does not.
"""

import dataclasses
import inspect
import pkgutil
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Self

import jax
import jaxtyping
import numpy as np
from beartype import BeartypeConf, FrozenDict, beartype
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import AnnotationError
from numpy.typing import ArrayLike

SOURCE = Path(__file__).parents[1] / "src" / "pathlines"
ROOMS = tuple(sorted(info.name for info in pkgutil.iter_modules([str(SOURCE)]) if info.ispkg))
"""All rooms of the package."""

TOGETHER = ("architecture", "numerics", "domain", "attention", "kernels", "weights", "observable", "limit")
"""Rooms in whose tests the annotations of all of these are looked at; in the tests of others those of the room alone,
which are called far less often: a flow calls its model once, while it is compiled.
"""
OPEN = (
    "claim/advise",
    "claim/causal",
    "claim/clustering",
    "claim/followups",
    "claim/gaussian",
    "claim/homogenized",
    "claim/metastability",
    "draw",
    "probing",
    "transport",
)
"""Folders in whose tests the annotations of the room have not been held against values yet."""

STRICT = ("domain", "model/causal", "model/clustering", "model/gaussian", "numerics", "weights")
"""Folders in whose tests JAX promotes neither ranks nor types by itself."""

OF_ONE_POINT = ("half_collapse_time", "merged_shares")
"""Functions whose annotations are those of one point of a study, which gives them whole columns."""

ACTIVE: set[str] = set()
"""Rooms whose annotations are looked at now."""

VIOLATIONS: list[str] = []

STANDING_FOR = {
    np.ndarray: np.ndarray | np.generic,
    jax.Array: jax.Array | np.ndarray | np.generic | float | int,
    bool: bool | np.bool_,
    ArrayLike: object,
    ArrayLike | None: object,
    Self: object,
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
        except (BeartypeCallHintViolation, AnnotationError) as error:
            VIOLATIONS.append(str(error))
            return function(*arguments, **named)

    return kept


def install() -> None:
    """Decorate all functions of the package as they are imported. What looks at annotations is made for those that are
    called while their room is active: to make it for all would take longer than the tests of a room.
    """
    now = jaxtyping.jaxtyped

    def later(function: Any = None, *, typechecker: Any = None) -> Any:
        if function is None:
            return lambda given: later(given, typechecker=typechecker)
        if isinstance(function, type):
            return _class(function, typechecker)
        return _function(function, function.__module__, typechecker)

    def _class(cls: type, typechecker: Any) -> type:
        if dataclasses.is_dataclass(cls) and not hasattr(cls.__init__, "looks"):
            cls.__init__ = _function(cls.__init__, cls.__module__, typechecker)  # type: ignore[misc]
        return cls

    def _function(function: Any, module: str, typechecker: Any) -> Any:
        if not inspect.isfunction(function) or function.__name__ in OF_ONE_POINT:
            return function
        room, made = module.split(".")[1], []

        @wraps(function)
        def looks(*arguments: Any, **named: Any) -> Any:
            if room not in ACTIVE:
                return function(*arguments, **named)
            if not made:
                try:
                    made.append(now(function, typechecker=typechecker))
                except NameError:  # NiceGUI's user has unloaded the module, and the names of its annotations with it
                    made.append(function)
            return made[0](*arguments, **named)

        looks.looks = True  # type: ignore[attr-defined]
        return looks

    jaxtyping.jaxtyped = later
    jaxtyping.install_import_hook([f"pathlines.{room}" for room in ROOMS], "typecheck.checked")
