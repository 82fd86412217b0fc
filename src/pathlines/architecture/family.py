"""The table of families: a `model_type` of a config.json, and the function that understands its fields."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from pathlines.architecture.config import Config
from pathlines.architecture.record import Architecture
from pathlines.foundation.registry import Registry

Reader = Callable[[Config], Architecture]


class Family(msgspec.Struct, frozen=True):
    """How to read one `model_type`; ``row`` is its row of the table of conventions, where it has one."""

    read: Reader
    row: object = None


FAMILIES: Registry[Family] = Registry("family", "pathlines.architecture.families")


def family(*names: str) -> Callable[[Reader], Reader]:
    """Register a reader under one or several values of `model_type`."""

    def add(read: Reader) -> Reader:
        for name in names:
            FAMILIES.register(name, Family(read))
        return read

    return add
