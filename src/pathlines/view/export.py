"""export_page: a run as one HTML file that plays anywhere, without a network."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from pathlines.foundation.errors import ArgumentError, of_kind, require
from pathlines.foundation.files import write_whole
from pathlines.integrate.run import Run
from pathlines.view.frames import FORMAT, as_text, frames

MODULES = (
    "numbers",
    "frames",
    "camera",
    "palette",
    "dress",
    "gl",
    "flat",
    "overlay",
    "scene",
    "curves",
    "gif",
    "player",
)
"""The modules of the player, each after those that it imports."""
STYLE = """
html{color-scheme:light dark;background:#fff}body{margin:0 auto;max-width:1500px}
@media(prefers-color-scheme:dark){html{background:#0c1018}}
noscript{font:16px system-ui,sans-serif;display:block;padding:2em}
"""
START = """
const data = JSON.parse(document.getElementById('frames').textContent);
const shown = JSON.parse(document.getElementById('options').textContent);
globalThis.player = mountPlayer(document.getElementById('player'), data, shown);
"""
INSIDE = 420
"""Pixels that a run takes in a notebook beyond the scene's own."""


def export_page(run: Run | Mapping[str, Any], path: Path | str, **how: Any) -> Path:
    """Write a run as one HTML file that plays in any browser: no server, no network, nothing to install.

    Args:
        run: a run that recorded its tokens, or the object that ``pl.view.frames`` makes of one.
        path: the file; its name ends in .html, or gets that ending.
        how: arguments of ``pl.view.frames``: count, clock, observables, theory, title, …

    The page has a content security policy that lets it talk to nobody. 500 tokens × 240 frames take 1.4 MB.
    """
    target = Path(of_kind("path", path, (str, PathLike), "the name of a file"))
    require(bool(target.name), "path", "be the name of a file", str(target))
    target = target if target.suffix in (".html", ".htm") else target.with_name(target.name + ".html")
    data = _data(run, how)
    target.parent.mkdir(parents=True, exist_ok=True)
    return write_whole(target, page(data).encode())


def page(data: Mapping[str, Any], **options: Any) -> str:
    """The page of frames as text; ``options`` are those of ``mountPlayer`` in ``static/player.js``."""
    script = f"{player_script()}\n{START}"
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src blob: data:; media-src blob:; "
        f"script-src '{_digest(script)}'; style-src '{_digest(STYLE)}'"
    )
    title = html.escape(str(data["title"]))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{STYLE}</style>
</head>
<body>
<main id="player"></main>
<noscript>{html.escape(str(data["alt"]))} To play it, this page needs JavaScript.</noscript>
<script type="application/json" id="frames">{as_text(dict(data))}</script>
<script type="application/json" id="options">{as_text(options)}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def notebook_html(run: Run, count: int = 120) -> str | None:
    """The player in a frame of its own for a notebook, or nothing where there is nothing to draw.

    The frame may run its own script and save files; it sees neither the notebook nor the network.
    """
    try:
        text = page(frames(run, count=_affordable(run, count)), autoplay=False, foot=False)
    except ArgumentError:
        return None
    return (
        '<iframe sandbox="allow-scripts allow-downloads" loading="lazy" title="run" width="100%" height="560" '
        f'style="border:0" srcdoc="{html.escape(text, quote=True)}"></iframe>'
    )


def _affordable(run: Run, count: int, numbers: int = 180_000) -> int:
    """So many frames that a notebook with ten runs stays small."""
    tokens = run.data.get("tokens")
    each = 1 if tokens is None else max(1, tokens.sizes.get("token", 1) * min(3, tokens.sizes.get("component", 1)))
    return max(2, min(count, numbers // each))


def _data(run: Run | Mapping[str, Any], how: dict[str, Any]) -> dict[str, Any]:
    if isinstance(run, Run):
        return frames(run, **how)
    if not isinstance(run, Mapping) or run.get("format") != FORMAT:
        raise ArgumentError("Argument `run` must be a run, or what `pl.view.frames` makes of one.")
    require(not how, "how", "be empty where frames are given", sorted(how))
    return dict(run)


@cache
def player_script() -> str:
    """All modules of the player as one: imports of our own are dropped, names are unique among the files."""
    folder = files("pathlines.view") / "static"
    texts = [(folder / f"{name}.js").read_text(encoding="utf-8") for name in MODULES]
    return "\n".join(_joined(text) for text in texts)


def _joined(text: str) -> str:
    """A module without its imports, exports and comments on types."""
    text = re.sub(r"^import\b[^;]*?from '\./[\w]+\.js';\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^export (?=(?:const|let|function|class|async)\b)", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\s*/\*\*(?:[^*]|\*(?!/))*\*/\n", "", text, flags=re.MULTILINE)
    return re.sub(r"^\s*// @ts-check\n", "", text, flags=re.MULTILINE)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
