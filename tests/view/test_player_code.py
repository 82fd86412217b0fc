"""The JavaScript of the player, without a browser: it parses, its types agree, its pure functions hold."""

import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from pathlines.view.export import START, player_script

HERE = Path(__file__).parent
STATIC = Path(str(files("pathlines.view") / "static"))
NODE = shutil.which("node")
TYPES = shutil.which("tsc")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")
STRICT = "--noEmit --checkJs --allowJs --strict --target es2022 --module es2022 --moduleResolution bundler"


def checked(text):
    return subprocess.run([NODE, "--check", "--input-type=module"], input=text, capture_output=True, text=True)


@needs_node
@pytest.mark.parametrize("name", sorted(f.name for f in STATIC.glob("*.js")))
def test_each_module_parses(name):
    found = checked((STATIC / name).read_text(encoding="utf-8"))
    assert found.returncode == 0, found.stderr


@needs_node
def test_all_modules_as_one_parse_and_no_two_share_a_name():
    found = checked(f"{player_script()}\n{START}")
    assert found.returncode == 0, found.stderr
    assert checked("const a = 1; const a = 2;").returncode != 0


@needs_node
def test_pure_functions():
    found = subprocess.run([NODE, HERE / "player_code.mjs", STATIC], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert "all hold" in found.stdout


@pytest.mark.skipif(TYPES is None, reason="TypeScript's checker `tsc` is not installed")
def test_types_in_comments_agree():
    command = [TYPES, *STRICT.split(), "--lib", "es2022,dom,dom.iterable", str(STATIC / "player.js")]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize("name", sorted(f.name for f in STATIC.glob("*.js")))
def test_modules_ask_for_types_to_be_checked_and_import_only_each_other(name):
    text = (STATIC / name).read_text(encoding="utf-8")
    assert text.startswith("// @ts-check\n")
    sources = [line.rsplit(" from ", 1)[1] for line in text.splitlines() if line.startswith("import ")]
    assert all(source.startswith("'./") for source in sources)
