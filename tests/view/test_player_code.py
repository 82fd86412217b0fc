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


FILM = """
import { GifFilm, paletteOf } from './gif.js';
import { writeFileSync } from 'node:fs';
const [w, h] = [61, 47];
const picture = (k) => Uint8Array.from({ length: 4 * w * h }, (_, at) => {
  const [i, c] = [at >> 2, at & 3];
  const [x, y] = [i % w, Math.floor(i / w)];
  if (c === 3) return 255;
  if ((x - 8 - 9 * k) ** 2 + (y - 20) ** 2 < 30) return [213, 94, 0][c];
  return Math.round([255 * x / w, 255 * y / h, (17 * x * y) % 256][c]);
});
const pictures = [0, 1, 2, 3, 4].map(picture);
const film = new GifFilm(w, h, paletteOf(pictures), 8);
pictures.forEach((p) => film.add(p));
writeFileSync(process.argv[2], Buffer.concat(film.finished().map((b) => Buffer.from(b))));
writeFileSync(`${process.argv[2]}.raw`, Buffer.concat(pictures.map((p) => Buffer.from(p))));
"""


@needs_node
def test_a_gif_holds_the_pictures_that_were_put_in(tmp_path):
    """Read by Pillow, every picture is as near as 255 colours of five bits allow, and the token keeps its colour."""
    import numpy as np
    from PIL import Image, ImageSequence

    (tmp_path / "film.mjs").write_text(FILM.replace("./gif.js", (STATIC / "gif.js").as_uri()))
    made = tmp_path / "made.gif"
    found = subprocess.run([NODE, tmp_path / "film.mjs", made], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    given = np.frombuffer((tmp_path / "made.gif.raw").read_bytes(), np.uint8).reshape(5, 47, 61, 4)[..., :3]
    with Image.open(made) as film:
        read = np.stack([np.asarray(f.convert("RGB")) for f in ImageSequence.Iterator(film)])
        assert film.n_frames == 5 and film.info["duration"] == 80 and film.info["loop"] == 0
    away = np.abs(read.astype(int) - given)
    assert away.mean() < 16 and np.quantile(away, 0.999) < 90
    for k in range(5):
        assert np.abs(read[k, 20, 8 + 9 * k].astype(int) - [213, 94, 0]).max() <= 12


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
