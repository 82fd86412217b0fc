"""Settings: frozen records whose fields say what they mean and what is allowed, changed only by name and kind.

A record is a subclass of ``Setting``; each field is an ``Annotated`` type with a meaning (``means``) and bounds
(``vocabulary.py`` holds those that many share). One declaration serves the type checker, ``--set``, the tables of
``pathlines show`` and its JSON schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, dataclass_transform

import msgspec
from msgspec import inspect

from pathlines.foundation.errors import ArgumentError, UnknownNameError


@dataclass_transform(frozen_default=True)
class Setting(msgspec.Struct, frozen=True):
    """Base of all settings; every field has a default, meaning and bounds."""


S = TypeVar("S", bound=Setting)


class Field(msgspec.Struct, frozen=True):
    """What a person needs to know about one field."""

    name: str
    symbol: str
    meaning: str
    unit: str
    allowed: str


def means(meaning: str, symbol: str = "", *, unit: str = "") -> msgspec.Meta:
    """One line of meaning, the symbol of the paper (the name itself if there is none), and the unit."""
    return msgspec.Meta(title=symbol or None, description=meaning, extra_json_schema={"unit": unit} if unit else None)


def at_least(low: float) -> msgspec.Meta:
    """A bound that belongs to it."""
    return msgspec.Meta(ge=low)


def fields(kind: type[msgspec.Struct]) -> list[Field]:
    """The fields of a record, in order."""
    found: Any = inspect.type_info(kind)
    return [_field(f.name, f.type) for f in found.fields]


def _field(name: str, kind: Any) -> Field:
    parts = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    said = next((p.extra_json_schema or {} for p in parts if isinstance(p, inspect.Metadata)), {})
    return Field(name, said.get("title", ""), said.get("description", ""), said.get("unit", ""), _allowed(kind))


def _allowed(kind: Any) -> str:
    """integer ≥ 1, number > 0, [number ≥ 0, …], [[integer ≥ 1, number], …], text, true or false, null."""
    match kind:
        case inspect.Metadata():
            return _allowed(kind.type)
        case inspect.IntType() | inspect.FloatType():
            bounds = ((">", kind.gt), ("≥", kind.ge), ("<", kind.lt), ("≤", kind.le))
            limits = " and ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)
            return f"{'integer' if isinstance(kind, inspect.IntType) else 'number'} {limits}".rstrip()
        case inspect.VarTupleType():
            return f"[{_allowed(kind.item_type)}, …]"
        case inspect.TupleType():
            return f"[{', '.join(_allowed(item) for item in kind.item_types)}]"
        case inspect.UnionType():
            return " or ".join(_allowed(item) for item in kind.types)
        case inspect.LiteralType():
            return " or ".join(map(str, kind.values))
    others = {inspect.BoolType: "true or false", inspect.NoneType: "null", inspect.AnyType: "numbers"}
    return others.get(type(kind), "text")


def changed(owner: str, setting: S, changes: Mapping[str, Any] | None) -> S:
    """The setting with some fields changed; unknown names, other kinds and values out of bounds are errors."""
    kinds = {f.name: f.type for f in msgspec.structs.fields(setting)}
    new = {}
    for name, value in (changes or {}).items():
        _require_known(owner, name, kinds)
        try:
            new[name] = msgspec.convert(msgspec.to_builtins(value, enc_hook=_listed), kinds[name])
        except (msgspec.ValidationError, AttributeError):
            allowed = next(f.allowed for f in fields(type(setting)) if f.name == name)
            article = {"integer": "an ", "number": "a "}.get(allowed.split()[0], "")
            raise ArgumentError(f"Setting `{name}` of {owner} must be {article}{allowed}, but is {value!r}.") from None
    return msgspec.structs.replace(setting, **new)


def _listed(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's."""
    return value.tolist()


def _require_known(owner: str, name: str, names: Mapping[str, Any]) -> None:
    if name not in names:
        known = ", ".join(sorted(names)) or "none"
        raise UnknownNameError(f"{owner} has no setting `{name}`; its settings are: {known}.")


def changed_setting(owner: str, setting: Mapping[str, Any], changes: Mapping[str, Any] | None) -> dict[str, Any]:
    """The same for plain values by name, whose kinds are those of the values there are."""
    result = dict(setting)
    for name, value in (changes or {}).items():
        _require_known(owner, name, result)
        result[name] = _same_kind(owner, name, value, result[name])
    return result


def _same_kind(owner: str, name: str, value: Any, default: Any) -> Any:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if isinstance(default, float) and number:
        return float(value)
    same_type = isinstance(value, type(default)) and isinstance(value, bool) == isinstance(default, bool)
    if default is not None and not same_type:
        raise ArgumentError(f"Setting `{name}` of {owner} must be a {type(default).__name__}, but is {value!r}.")
    return value
