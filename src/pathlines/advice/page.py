"""The page of an advice: one HTML file without network access."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from pathlines.advice.advice import Advice
from pathlines.advice.figure import advice_figure
from pathlines.advice.gradients import MeasuredGradients, gradient_lines
from pathlines.advice.simulate import Simulated
from pathlines.architecture import Reading
from pathlines.draw.claim_figure import inline_svg
from pathlines.foundation.files import write_whole
from pathlines.integrate.run import provenance


def write_page(
    path: Path,
    reading: Reading,
    advice: Advice,
    simulated: Simulated | None = None,
    measured: MeasuredGradients | None = None,
) -> Path:
    """Write verdict, figure, numbers of every layer, what-ifs, changes, the record and the assumptions."""
    environment = Environment(
        loader=PackageLoader("pathlines.advice"),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    fields = msgspec.to_builtins(reading.architecture)
    text = environment.get_template("advice.html").render(
        reading=reading,
        advice=advice,
        prediction=advice.prediction,
        shares=advice.prediction.shares,
        simulated=simulated,
        gradients=gradient_lines(advice.gradients, measured) if advice.gradients else [],
        errors=simulated.errors(advice.prediction.mean_cosine) if simulated else None,
        figure=inline_svg(advice_figure(advice, simulated, measured)),
        deviations=fields.pop("deviations"),
        fields=fields,
        when=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        versions=provenance(),
    )
    write_whole(path, text.encode())
    return path
