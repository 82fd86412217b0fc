"""Claims at settings nobody tuned: every verdict must be the expected one, or inconclusive with a reason.

    python benchmarks/claims_elsewhere.py [PATTERN …] [--draws 3] [--seed 1] [--table docs/verification/elsewhere.md]

Each number of a claim's quick setting is multiplied by a factor drawn log-uniformly from [1/2, 3/2] (integers are
rounded, a list keeps one factor, seeds are drawn anew, words stay). A setting that a claim refuses with an
`ArgumentError` is counted as refused. Finished evaluations are stored, so an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from pathlines.claim import CLAIMS
from pathlines.draw.claim_tables import Table
from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.precision import enable_float64
from pathlines.store import Store
from pathlines.sweep.verify import Finished, Job, verify_jobs

LOW, HIGH = 0.5, 1.5


def elsewhere(value: Any, factor: float) -> Any:
    """The value times a factor, of the same kind; whole numbers stay at least 1 where they were."""
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int):
        return value if value == 0 else int(np.sign(value)) * max(1, round(abs(value) * factor))
    if isinstance(value, float):
        return value * factor if np.isfinite(value) else value
    return [elsewhere(v, factor) for v in value] if isinstance(value, tuple) else value


def drawn(name: str, number: int, seed: int) -> dict[str, Any]:
    """A random setting of a claim; the same for the same (name, number, seed)."""
    rng = np.random.default_rng([seed, number, zlib.crc32(name.encode())])
    setting = msgspec.structs.asdict(CLAIMS[name].quick)
    factors = np.exp(rng.uniform(np.log(LOW), np.log(HIGH), len(setting)))
    moved = {k: elsewhere(v, f) for (k, v), f in zip(setting.items(), factors.tolist(), strict=True)}
    return {**moved, "seed": int(rng.integers(1, 10**6))} if "seed" in setting else moved


def out_of_bounds(job: Job) -> str:
    """Why the claim's record refuses the setting; empty if it does not."""
    try:
        CLAIMS[job.id].setting(job.size, job.changes)
    except ArgumentError as error:
        return f"ArgumentError: {error}"
    return ""


def refused(jobs: list[Job]) -> list[Finished]:
    """Jobs whose settings lie out of the bounds of their records: nothing is run for them."""
    return [Finished(job, None, failure=why) for job in jobs if (why := out_of_bounds(job))]


def judged(item: Finished) -> tuple[str, str]:
    """(what it is, why): expected, inconclusive, refused, wrong or broken."""
    if item.outcome is None:
        return ("refused" if item.refused else "broken"), item.failure
    outcome = item.outcome
    if outcome.as_expected:
        return "expected", ""
    reasons = "; ".join(f"{c.quantity}: {c.reason}" for c in outcome.checks if c.verdict == outcome.verdict)
    return ("inconclusive" if outcome.verdict == "inconclusive" else "wrong"), reasons


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    enable_float64()
    names = sorted({n for p in options.patterns for n in CLAIMS.match(p)})
    jobs = [Job(n, "quick", drawn(n, k, options.seed)) for n in names for k in range(options.draws)]
    jobs = [job for job in jobs if job.changes]
    rows, counts = [], dict.fromkeys(("expected", "inconclusive", "refused", "wrong", "broken"), 0)
    for item in chain(refused(jobs), verify_jobs([job for job in jobs if not out_of_bounds(job)], store=Store())):
        kind, why = judged(item)
        counts[kind] += 1
        if kind != "expected":
            setting = ", ".join(f"{k}={v!r}" for k, v in item.job.changes.items())
            rows.append((item.job.id, kind, why, setting if kind in ("wrong", "broken") else ""))
            print(*rows[-1], sep=" | ", flush=True)
        sys.stderr.write(f"\r{sum(counts.values())} of {len(jobs)} ")
    words = f"{len(jobs)} evaluations: " + ", ".join(f"{c} {k}" for k, c in counts.items()) + "."
    print(words)
    if options.table:
        command = f"python benchmarks/claims_elsewhere.py --draws {options.draws} --seed {options.seed}"
        header = ("claim", "verdict", "why", "setting")
        Table("Claims at settings nobody tuned", words, [], header, sorted(rows)).write(options.table, command)
    return 1 if counts["wrong"] + counts["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
