"""What claims cost decides what starts first."""

import json
from pathlib import Path

import pytest

from pathlines.claim import CLAIMS
from pathlines.claim.cost import Cost
from pathlines.sweep.verify import Job, _seconds


def test_the_longest_come_first_and_what_nobody_measured_before_them(monkeypatch):
    known = {"clustering/CL-01": Cost(3.0, 1), "clustering/CL-03": Cost(2.0, 1)}
    monkeypatch.setattr("pathlines.claim.base.kept_cost", lambda id, module, size: known.get(id))
    seeds = [Job("clustering/CL-03", "quick", {"seed": k}) for k in range(2)]
    groups = [seeds, [Job("clustering/CL-01", "quick", {})], [Job("clustering/CL-43", "quick", {})]]
    order = [g[0].id for g in sorted(groups, key=_seconds, reverse=True)]
    assert order == ["clustering/CL-43", "clustering/CL-03", "clustering/CL-01"]


@pytest.mark.parametrize("file", sorted(Path(__file__).parents[2].glob("src/pathlines/claim/*/costs.json")), ids=str)
def test_kept_costs_are_those_of_claims(file):
    kept = json.loads(file.read_text())
    assert set(kept) <= set(CLAIMS)
    assert {name.split("/")[0] for name in kept} == {file.parent.name}
    assert all(set(sizes) <= {"quick", "full"} for sizes in kept.values())
