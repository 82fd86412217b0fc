"""Draw the pictures of the pages again: ``python docs/pictures.py [NAME…]`` (from the store where nothing changed).

Figures are those that ``pathlines figure`` draws at quick size; the pictures of examples are what these scripts save;
the pages of ``pathlines view`` are photographed by their tests. All are kept as PNG files of 256 colours in
``docs/pictures``, so that building the site computes nothing.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

import pathlines
from pathlines.draw.kept import drawn

HERE = Path(__file__).parent
WIDTH, MOST = 1400, 150_000
FIGURES = (
    "clustering/polytopes",
    "clustering/hyperplanes",
    "clustering/sphere-snapshots",
    "clustering/histograms",
    "clustering/layer-vs-flow",
    "clustering/schemes",
    "clustering/spectra",
    "clustering/long-context",
    "metastability/growth-rates",
    "metastability/circle-tokens",
    "metastability/staircase",
    "metastability/merging-times",
    "metastability/perceptron-minimiser",
    "metastability/kde-modes",
    "homogenized/regimes",
    "homogenized/layer-map",
    "homogenized/theorem-1",
    "gaussian/disc-of-starts",
    "gaussian/class-map",
    "causal/retrieval-profiles",
    "causal/rival-theories",
    "transport/three-prompts",
    "transport/corridor",
    "followups/dual-filter",
    "followups/proximal",
    "followups/low-temperature",
    "followups/mode-atlas",
    "followups/sharp-rates",
    "followups/multi-head",
    "followups/context",
    "followups/synchronisation",
    "followups/wide-shallow",
    "followups/adamw",
)
EXAMPLES = ("01_clusters", "05_theorem_1")
PAGES = (
    "view-play", "view-play-dark", "view-play-narrow", "view-theory", "view-retrieval", "view-flows", "view-prompts",
    "view-advise", "view-studies",
)  # fmt: skip
"""Photographs that ``tests/view/test_photographs.py`` takes in a browser."""


def keep(content: bytes, name: str) -> None:
    """Write at most ``WIDTH`` pixels, 256 colours and ``MOST`` bytes."""
    picture = Image.open(io.BytesIO(content)).convert("RGB")
    path = HERE / "pictures" / f"{name.replace('/', '-')}.png"
    for width in range(min(WIDTH, picture.width), 0, -100):
        size = (width, round(picture.height * width / picture.width))
        small = picture.resize(size, Image.Resampling.LANCZOS).quantize(256, dither=Image.Dither.NONE)
        small.save(path, optimize=True)
        if path.stat().st_size <= MOST:
            break
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB", flush=True)


def of_example(name: str) -> bytes:
    """Run the script with its figure saved as PNG."""
    script = (HERE.parent / "examples" / f"{name}.py").read_text(encoding="utf-8").replace(".pdf", ".png")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", script], cwd=folder, check=True, env={**os.environ, "MPLBACKEND": "agg"})
        return (Path(folder) / f"{name}.png").read_bytes()


def photograph() -> None:
    """Have the tests of the pages take their pictures; without a browser they say so."""
    test = [sys.executable, "-m", "pytest", "-m", "slow", "tests/view/test_photographs.py"]
    subprocess.run(test, cwd=HERE.parent, check=True, env={**os.environ, "PATHLINES_PICTURES": str(HERE / "pictures")})


def main() -> None:
    """Draw all, or those whose names are given."""
    pathlines.enable_float64()
    asked = set(sys.argv[1:])
    for name in FIGURES:
        if not asked or name in asked:
            keep(drawn(pathlines.FIGURES[name], "quick", None, ".png")[0], name)
    for name in EXAMPLES:
        if not asked or name in asked:
            keep(of_example(name), name)
    if not asked or asked & set(PAGES):
        photograph()


if __name__ == "__main__":
    main()
