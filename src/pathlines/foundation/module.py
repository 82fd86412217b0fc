"""The base of models, domains, weights and kinds of attention: pytrees whose methods are plain."""

from __future__ import annotations

from inspect import getattr_static
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import equinox as eqx

T = TypeVar("T")


class Module(eqx.Module):
    """An immutable dataclass that is a pytree.

    Equinox also makes a pytree of every method when it is looked up, at 15 µs each. Nothing here hands a method to a
    program (``lambda model: model.drift`` hands over the model), so looking one up costs what it does in Python.
    """

    if not TYPE_CHECKING:
        __getattribute__ = object.__getattribute__


def overridden(instance: Any, kind: type) -> tuple[str, ...]:
    """Methods and properties of ``kind`` that the class of ``instance``, derived from it, defines anew.

    A faster form of ``kind`` computes what its methods say; it may stand in for a derived class only if that class
    says the same.
    """
    own = type(instance)
    if own is kind:
        return ()
    names = {n for c in kind.__mro__ for n, v in vars(c).items() if isinstance(v, FunctionType | property)}
    public = (n for n in names if not n.startswith("__") or n == "__call__")
    return tuple(sorted(n for n in public if getattr_static(own, n) is not getattr_static(kind, n)))


def exactly(thing: Any, kind: type[T]) -> TypeGuard[T]:
    """Whether it is of that kind and says nothing anew, so that what is known of the kind is true of it."""
    return isinstance(thing, kind) and not overridden(thing, kind)


def written_for(instance: Any, method: str) -> bool:
    """Whether no class derived from the one that defines the method changes anything that it may rely on."""
    return not overridden(instance, next(c for c in type(instance).__mro__ if method in vars(c)))
