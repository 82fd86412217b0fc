"""What claims cost: measured by ``pathlines verify --costs`` and kept in ``costs.json`` beside the files of the claims.

Seconds are of one processor of the machine that measured, and memory is that of a process that does nothing else, JAX
included. They put work in order and plan it; nothing is judged by them.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import msgspec

from pathlines.foundation.files import write_whole


class Cost(msgspec.Struct, frozen=True):
    """Seconds of a processor, compilation included, and the peak of memory in megabytes."""

    seconds: float
    megabytes: int

    def __str__(self) -> str:
        return f"{self.seconds:g} s and {self.megabytes} MB"


Costs = dict[str, dict[str, Cost]]
"""By id and size."""


def kept_cost(id: str, module: str, size: str) -> Cost | None:
    """The cost of a claim whose computation stands in that module; None if nobody measured it."""
    file = _file(module)
    return None if file is None else _read(file).get(id, {}).get(size)


def keep_cost(id: str, module: str, size: str, cost: Cost) -> None:
    """Keep the cost of a claim beside it; two digits are enough."""
    file = _file(module)
    if file is None:
        return
    costs = dict(_read(file))
    costs[id] = {**costs.get(id, {}), size: Cost(float(f"{cost.seconds:.2g}"), round(cost.megabytes, -1))}
    lines = [f'  "{id}": {msgspec.json.encode(costs[id]).decode()}' for id in sorted(costs)]
    write_whole(file, ("{\n" + ",\n".join(lines) + "\n}\n").encode())
    _read.cache_clear()


def _file(module: str) -> Path | None:
    source = getattr(sys.modules.get(module), "__file__", None)
    return None if source is None else Path(source).with_name("costs.json")


@cache
def _read(file: Path) -> Costs:
    return msgspec.json.decode(file.read_bytes(), type=Costs) if file.is_file() else {}
