"""The numbers of all claims at two commits, compared bit for bit.

    python benchmarks/before_after.py --out before.jsonl [PATTERN …]      # once with each commit's `src` on PYTHONPATH
    python benchmarks/before_after.py --compare before.jsonl after.jsonl [--table docs/verification/numbers.md]

The first form evaluates claims at quick size, one after the other in this process, and writes a line for each: setting,
verdict, and every number that is compared, measured and predicted, with all its digits. A file that is there already is
continued. It asks of a commit only `CLAIMS` and `evaluate`, so that it runs on old ones too; give both the same
XLA_FLAGS and NPROC, since compilers and threads round differently.

The second form says of each claim at both commits whether its numbers are the same bits, and if not by how much.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROUNDING = 1e-12
"""Differences up to this one are those of sums in another order."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=np.inf, help="skip claims kept as costing more")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"))
    parser.add_argument("--table", type=Path)
    asked = parser.parse_args()
    if asked.out:
        dump(asked.patterns, asked.out, asked.seconds)
    if asked.compare:
        text = compared(*(read(path) for path in asked.compare))
        print(text)
        if asked.table:
            asked.table.write_text(text + "\n")
    return 0


def dump(patterns: list[str], out: Path, seconds: float) -> None:
    """Evaluate the claims that are not in the file yet."""
    from pathlines.claim import CLAIMS
    from pathlines.claim.evaluate import evaluate
    from pathlines.foundation.precision import enable_float64
    from pathlines.foundation.programs import make_room_for_programs

    enable_float64()
    done = read(out) if out.exists() else {}
    names = sorted({n for p in patterns for n in CLAIMS.match(p)} - set(done))
    for name in names:
        claim = CLAIMS[name]
        kept = claim.cost("quick") if hasattr(claim, "cost") else None
        if kept is not None and kept.seconds > seconds:
            continue
        began = time.process_time()
        try:
            row = numbers(evaluate(claim))
        except Exception as error:
            row = {"failed": f"{type(error).__name__}: {error}"}
        make_room_for_programs()
        with out.open("a") as file:
            print(json.dumps({"id": name, **row}), file=file)
        print(f"{name:40} {time.process_time() - began:6.1f} s", file=sys.stderr)


def numbers(outcome: Any) -> dict[str, Any]:
    """What an outcome says, without words and times."""
    checks = {c.quantity: [c.measured, c.expected] for c in outcome.checks}
    lines = {f"{n} {line.role} {line.label}": [line.x, line.y] for n, line in enumerate(outcome.lines)}
    return {"verdict": outcome.verdict, "setting": outcome.setting, "checks": checks, "lines": lines}


def read(path: Path) -> dict[str, Any]:
    """The rows of a file by claim."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {row["id"]: row for row in rows}


def compared(before: dict[str, Any], after: dict[str, Any]) -> str:
    """The table: how many claims keep their bits, and which do not."""
    both = sorted(set(before) & set(after))
    found = {name: judged(before[name], after[name]) for name in both}
    counts = Counter(kind for kind, _ in found.values())
    values = Counter(kind for name in both for kind in of_values(before[name], after[name]))
    gone, new = sorted(set(before) - set(after)), sorted(set(after) - set(before))
    text = ["| claims at both commits | number |", "|---|---:|"]
    text += [f"| {kind} | {counts[kind]} |" for kind in sorted(counts, key=lambda k: -counts[k])]
    text += ["", f"Numbers compared where settings are the same: {sum(values.values())}, of which "]
    text[-1] += ", ".join(f"{values[k]} {k}" for k in ("the same bits", "rounding", "changed")) + "."
    text += ["", f"Only before: {', '.join(gone) or 'none'}. Only after: {len(new)} claims."]
    text += ["", "| claim | | what |", "|---|---|---|"]
    text += [f"| {name} | {kind} | {why} |" for name, (kind, why) in found.items() if why]
    return "\n".join(text)


def judged(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, str]:
    """(kind, what differs) of a claim at both commits."""
    if "failed" in before or "failed" in after:
        return "not evaluated", before.get("failed", "") or after.get("failed", "")
    verdicts = (before["verdict"], after["verdict"])
    verdict = "" if verdicts[0] == verdicts[1] else f"verdict {verdicts[0]} → {verdicts[1]}; "
    if moved := moved_settings(before["setting"], after["setting"]):
        return "other setting", verdict + moved
    missing = set(before["checks"]) ^ set(after["checks"])
    worst, what = 0.0, ""
    for name, side, pair in pairs(before, after):
        distance = relative(*pair)
        if distance > worst:
            worst, what = distance, f"{name} ({side}) by {distance:.1g}"
    if missing:
        what = f"quantities {', '.join(sorted(missing))}; {what}"
    kind = "the same bits" if worst == 0 else "rounding" if worst <= ROUNDING else "changed"
    kind = "other quantities" if missing else kind
    return kind, verdict + what


def of_values(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """The kind of each single number that both commits compare at the same setting."""
    if "failed" in before or "failed" in after or moved_settings(before["setting"], after["setting"]):
        return
    for _, _, (old, new) in pairs(before, after):
        if relative(old, new) == np.inf:
            yield "changed"
            continue
        first, second = (np.ravel(np.asarray(v, float)) for v in (old, new))
        scale = max(np.nanmax(np.abs(first), initial=0.0), np.finfo(float).tiny)
        for one, other in zip(first.tolist(), second.tolist(), strict=True):
            same = one == other or (np.isnan(one) and np.isnan(other))
            yield "the same bits" if same else "rounding" if abs(one - other) <= ROUNDING * scale else "changed"


def pairs(before: dict[str, Any], after: dict[str, Any]) -> Iterator[tuple[str, str, tuple[Any, Any]]]:
    """(quantity, side, values at both commits) of what both compare."""
    for name in before["checks"]:
        if name in after["checks"]:
            yield from (
                (name, side, (before["checks"][name][k], after["checks"][name][k]))
                for k, side in enumerate(("measured", "predicted"))
            )
    for name in before["lines"]:
        if name in after["lines"]:
            yield f"curve {name}", "x and y", (before["lines"][name], after["lines"][name])


def moved_settings(before: dict[str, Any], after: dict[str, Any]) -> str:
    """The entries that differ; an infinity stands as null in both."""
    names = [k for k in {**before, **after} if json.dumps(before.get(k)) != json.dumps(after.get(k))]
    same = [k for k in names if k in before and k in after and np.array_equal(before[k], after[k])]
    words = [f"{k} {before.get(k, 'absent')} → {after.get(k, 'absent')}" for k in names if k not in same]
    return ", ".join(words)


def relative(before: Any, after: Any) -> float:
    """The largest difference over the largest value; infinite where shapes differ or only one is finite."""
    try:
        old, new = np.asarray(before, float), np.asarray(after, float)
    except ValueError:
        return np.inf
    if old.shape != new.shape or not np.array_equal(np.isnan(old), np.isnan(new)):
        return np.inf
    if np.array_equal(old, new, equal_nan=True):
        return 0.0
    scale = np.nanmax(np.abs(np.stack([old, new])))
    return float(np.nanmax(np.abs(old - new)) / scale)


if __name__ == "__main__":
    sys.exit(main())
