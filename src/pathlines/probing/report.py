"""The page of a probe: one HTML file without network access."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from pathlines.draw.claim_figure import inline_svg
from pathlines.foundation.files import write_whole
from pathlines.integrate.run import provenance
from pathlines.probing.curves import OBSERVABLES
from pathlines.probing.examine import Probed
from pathlines.probing.figure import probe_figure


def write_probe_report(path: Path, probed: Probed) -> Path:
    """Write the figure, every number of the three curves, what was read and what the numbers do not say."""
    environment = Environment(
        loader=PackageLoader("pathlines.probing"),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text = environment.get_template("probe.html").render(
        probed=probed,
        figure=inline_svg(probe_figure(probed)),
        observables=OBSERVABLES,
        when=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        versions={**provenance(), **{name: version(name) for name in ("torch", "transformers")}},
    )
    write_whole(path, text.encode())
    return path
