"""What a scheduler costs: 10⁵ empty tasks through the path that studies take, for the model of docs/scale.md.

    python benchmarks/empty_tasks.py [TASKS]

Tasks are handed over by ``DaskCluster.spread``, as those of a study, to two worker processes of this machine, a tenth
of them first: a scheduler whose cost a task grew with their number would be seen by the ratio. Processor seconds of the
driver with its scheduler (one process) are compared, because machines are shared. Writes
benchmarks/results/empty_tasks.json.
"""

import json
import os
import resource
import sys
import time
from pathlib import Path

from pathlines.sweep.cluster import DaskCluster

HERE = Path(__file__).parent


def nothing(item: int) -> int:
    """An empty task."""
    return item


def through(cluster, count):
    """Processor and wall seconds of this process (driver and scheduler) for so many tasks, each by itself."""
    before, wall = time.process_time(), time.perf_counter()
    done = sum(item == found for item, found in cluster.spread(nothing, [[k] for k in range(count)]))
    assert done == count
    return time.process_time() - before, time.perf_counter() - wall


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    cluster = DaskCluster("dask", 2)
    found = {}
    try:
        for tasks in (max(count // 10, 1), count):
            seconds, wall = through(cluster, tasks)
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
            found[tasks] = {"driver's processor ms a task": 1e3 * seconds / tasks, "wall s": wall, "memory MB": memory}
            print(tasks, found[tasks], flush=True)
    finally:
        cluster.close()
    found["load"] = os.getloadavg()[0]
    (HERE / "results" / "empty_tasks.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
