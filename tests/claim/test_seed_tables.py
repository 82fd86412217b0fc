"""Tables of verdicts at other seeds (`pathlines verify FAMILY --seeds 20`): every seeded claim is there, none odd."""

from pathlib import Path

import pytest

from pathlines.claim import CLAIMS

TABLES = sorted((Path(__file__).parents[2] / "docs" / "verification").glob("seeds_*.md"))


def rows(table):
    lines = [line for line in table.read_text().splitlines() if line.startswith("| ")][1:]
    return [tuple(cell.strip() for cell in line[2:-2].split(" | ")) for line in lines]


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_twenty_seeds_of_every_seeded_claim_and_no_other_verdict(table):
    stated = rows(table)
    families = {row[0].split("/")[0] for row in stated}
    seeded = [n for n in CLAIMS if n.split("/")[0] in families and CLAIMS[n].seeded]
    assert [row[0] for row in stated] == sorted(seeded)
    assert {row[2] for row in stated} == {"20"}
    assert {row[3] for row in stated} == {"–"}
