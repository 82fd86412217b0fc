"""The base of models, domains, weights and kinds of attention: pytrees whose methods are plain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import equinox as eqx


class Module(eqx.Module):
    """An immutable dataclass that is a pytree.

    Equinox also makes a pytree of every method when it is looked up, at 15 µs a time. Nothing here hands a method to a
    program (``lambda model: model.drift`` hands over the model), so looking one up costs what it does in Python.
    """

    if not TYPE_CHECKING:
        __getattribute__ = object.__getattribute__
