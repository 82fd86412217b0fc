"""The tables of what claims would notice (`pathlines verify --power`) are those of the claims, no bound is silent."""

from pathlib import Path

import pytest

from pathlines.claim import CLAIMS
from pathlines.claim.summary import GOALS

FOLDER = Path(__file__).parents[2] / "docs" / "verification"
TABLES = sorted(path for path in FOLDER.glob("power*.md") if path.stem != "power_full")


def rows(table):
    lines = [line for line in table.read_text().splitlines() if line.startswith("| ")][1:]
    return [tuple(cell.strip() for cell in line[2:-2].split(" | ")) for line in lines]


ROWS = [row for table in TABLES for row in rows(table)]
FAMILIES = sorted({row[0].split("/")[0] for row in ROWS})


def test_every_bound_and_zero_notices_a_mistake_or_says_why_not():
    silent = [row[:2] for row in ROWS if row[3].startswith("no mistake") and not row[4]]
    assert not silent


def test_every_two_sided_number_notices_what_it_should_or_says_why_not():
    shares = [(row, float(row[3].removesuffix(" %")) / 100) for row in ROWS if row[3].endswith(" %")]
    assert len(shares) > 300
    assert not [row[:2] for row, share in shares if share > GOALS["quick"] and not row[4]]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_table_has_every_number_of_the_claims_that_hold(family):
    held = [CLAIMS[n] for n in CLAIMS if n.startswith(f"{family}/") and CLAIMS[n].expected == "holds"]
    stated = {(claim.id, quantity) for claim in held for quantity in claim.within}
    assert stated == {row[:2] for row in ROWS if row[0].startswith(f"{family}/")}
