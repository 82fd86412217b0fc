"""A configuration file while it is read: typed fields, and a list of those that nobody asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from pathlines.architecture.harmless import harmless
from pathlines.foundation.errors import ArgumentError

ACTIVATION_NAMES = {
    "gelu": "gelu",
    "gelu_new": "gelu",  # the tanh formula is within 5e-4 of zΦ(z)
    "gelu_fast": "gelu",
    "gelu_python": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "silu": "silu",
    "swish": "silu",
    "relu": "relu",
    "tanh": "tanh",
    "linear": "linear",
    "quick_gelu": "quick_gelu",
    "relu2": "relu2",
}

_EXAMPLES = {"hidden_size": 768, "n_embd": 768, "intermediate_size": 3072}


class Config:
    """The fields of a configuration; every getter notes that its field was used.

    ``usual``: what the library takes where a field is absent.
    """

    def __init__(self, fields: Mapping[str, Any], source: str, usual: Mapping[str, Any] | None = None) -> None:
        self.fields, self.source, self.usual = fields, source, usual or {}
        self._used: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        """The field, or the default where it is absent or null; the first there of names with | between them."""
        names = name.split("|")
        self._used.update(names)
        for given in (self.fields, self.usual):
            for one in names:
                if given.get(one) is not None:
                    return given[one]
            if any(one in given for one in names):
                break  # a null is said, and means the default
        return default

    def integer(self, name: str, meaning: str, default: int | None = None) -> int:
        """A whole number; without default it must be there, whatever the library takes."""
        value = self.get(name, default)
        if default is None and self.fields.get(name) is None:
            value = None
        if value is None:
            example = _EXAMPLES.get(name, 12)
            raise ArgumentError(f'{self.source} has no `{name}` ({meaning}); write for example "{name}": {example}.')
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ArgumentError(f"{self.source}: `{name}` ({meaning}) must be an integer ≥ 1, but is {value!r}.")
        return value

    def optional(self, name: str, meaning: str) -> int:
        """A whole number, or 0 where it is absent, null or zero."""
        return 0 if self.get(name) in (None, 0) else self.integer(name, meaning, 1)

    def refuse(self, name: str, allowed: str) -> NoReturn:
        """Raise: the value of this field has no meaning here."""
        raise ArgumentError(f"{self.source}: `{name}` must be {allowed}, but is {self.fields.get(name)!r}.")

    def number(self, name: str, default: float, least: float = 0.0) -> float:
        """A number ≥ ``least``."""
        value = self.get(name, default)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not value >= least:
            raise ArgumentError(f"{self.source}: `{name}` must be a number ≥ {least:g}, but is {value!r}.")
        return float(value)

    def section(self, name: str) -> Config:
        """The fields of an object inside; empty where it is absent or null."""
        value = self.get(name, {})
        if not isinstance(value, Mapping):
            raise ArgumentError(f"{self.source}: `{name}` must be an object with fields, but is {value!r}.")
        return Config(value, f"{self.source}: {name}")

    def fetched(self, name: str) -> bool:
        """Whether the field was used."""
        return name in self._used

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self.get(name, default)
        if not isinstance(value, bool):
            raise ArgumentError(f"{self.source}: `{name}` must be true or false, but is {value!r}.")
        return value

    def activation(self, name: str, default: str) -> str:
        """An activation by any of its names."""
        value = self.get(name, default)
        if not isinstance(value, str) or value not in ACTIVATION_NAMES:
            known = ", ".join(ACTIVATION_NAMES)
            raise ArgumentError(f"{self.source}: `{name}` must be one of {known}, but is {value!r}.")
        return ACTIVATION_NAMES[value]

    def leftover(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """(irrelevant, assumed, unknown): fields that were not used.

        Irrelevant ones are known to change nothing here, or have the library's own value, which readers are tested at;
        another value is left out, and said.
        """
        irrelevant, assumed, unknown = [], [], []
        for name, value in self.fields.items():
            if name in self._used:
                continue
            if harmless(name) or (name in self.usual and self.usual[name] == value):
                irrelevant.append(name)
            elif name in self.usual:
                assumed.append(f"`{name}` = {value!r} is left out, as if it were {self.usual[name]!r}")
            else:
                unknown.append(name)
        return tuple(irrelevant), tuple(assumed), tuple(unknown)
