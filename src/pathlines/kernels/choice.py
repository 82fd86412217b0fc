"""Which summation is used, and why: the choice is recorded with the run."""

from __future__ import annotations

import msgspec


class Choice(msgspec.Struct, frozen=True):
    """A method with the reason it was taken, in words for the user."""

    method: str
    reason: str
