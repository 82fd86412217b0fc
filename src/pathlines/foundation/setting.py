"""Settings: plain JSON values by name, changed only by name and kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pathlines.foundation.errors import ArgumentError, UnknownNameError


def changed_setting(owner: str, setting: Mapping[str, Any], changes: Mapping[str, Any] | None) -> dict[str, Any]:
    """A copy of ``setting`` with some entries changed; unknown names and values of another kind are errors."""
    result = dict(setting)
    for name, value in (changes or {}).items():
        if name not in result:
            known = ", ".join(sorted(result)) or "none"
            raise UnknownNameError(f"{owner} has no setting `{name}`; its settings are: {known}.")
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
