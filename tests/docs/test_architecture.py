"""The page of the architecture speaks of the rooms and files that there are."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SOURCE = ROOT / "src" / "pathlines"


def test_rooms_are_listed_in_the_order_of_the_import_contract():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = [name.split(".")[1] for name in contracts[0]["layers"]]
    listed = re.findall(r"^\| `(\w+)/` \|", PAGE, flags=re.MULTILINE)
    assert listed == layers[::-1]
    assert set(listed) == {p.parent.name for p in SOURCE.glob("*/__init__.py")}


def test_files_that_are_mentioned_exist():
    named = set(re.findall(r"`((?:\w+/)*\w+\.py)[:`]", PAGE))
    places = [*SOURCE.rglob("*.py"), *(ROOT / "docs").glob("*.py"), *(ROOT / "tests").rglob("*.py")]
    known = "\n".join(str(p.relative_to(ROOT)) for p in places) + "\n"
    assert not [n for n in named if f"{n}\n" not in known]


def test_families_are_the_folders_that_there_are():
    section = PAGE.split("## Families")[1].split("\n## ")[0]
    folders = {
        path.parent.name
        for room in ("model", "limit", "claim", "draw/figures", "foundation/papers")
        for path in (SOURCE / room).glob("*/__init__.py")
    } | {path.stem for path in (SOURCE / "foundation" / "papers").glob("[!_]*.py")} - {"paper", "shelf"}
    assert "followups" in folders
    assert sorted(name for name in folders if not re.search(rf"\b{name}\b", section)) == []
