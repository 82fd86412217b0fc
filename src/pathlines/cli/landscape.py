"""pathlines landscape: where a perceptron beside attention lets tokens settle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pathlines.cli.common import AsJson, Beta, Figure, Force, check_outputs, console, ready


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="landscape")(landscape)


def landscape(
    neurons: Annotated[
        str,
        typer.Option(
            "--neurons",
            metavar="θ:ω,… or FILE.toml",
            help="Neurons on the circle as angle:strength pairs, or a file with directions (rows), strengths, biases, "
            "activation; d = 2, 3.",
        ),
    ] = "0:1,2:-.7",
    beta: Beta = 4.0,
    activation: Annotated[str, typer.Option("--activation", help="relu, gelu, tanh, erf or linear.")] = "relu",
    kernel: Annotated[
        str, typer.Option("--kernel", help="scaled e^{β(<x,y>-1)} or unscaled e^{β<x,y>} (attention e^β stronger).")
    ] = "scaled",
    figure: Figure = None,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Find the global minimiser of the energy of attention with a gradient perceptron, and certify it.

    E = (κ/2β)∬e^{β(<x,y>-1)} + ½∫v with v = Σ ω φ(a·x+b), φ' = 2σ (arXiv:2601.21366): atoms and masses where descent
    would be at rest at the lowest energy, the gap that bounds how far from the minimum this answer can be, the maximum
    that ascent climbs to, and for each attracting neuron the mass that it holds in one point.

    Examples: `pathlines landscape --neurons 0:1,2:-.7 --beta 4`,
    `pathlines landscape --neurons 0:-.5,1.5:-.4 --activation gelu --figure atoms.pdf`,
    `pathlines landscape --neurons neurons.toml --beta 9 --json`.
    """
    from pathlines.foundation.errors import ArgumentError
    from pathlines.limit.metastability import perceptron_closed_forms as forms
    from pathlines.limit.metastability.perceptron_landscape import perceptron_landscape as pose
    from pathlines.limit.metastability.perceptron_minimiser import perceptron_minimiser

    ready()
    check_outputs(figures=(figure,))
    file = Path(neurons)
    potential = _from_file(file, activation) if file.suffix == ".toml" else _on_circle(neurons, activation)
    if figure is not None and potential.d != 2:
        raise ArgumentError(
            f"Option --figure draws the circle (d = 2), but the neurons of {file} have d = {potential.d}."
        )
    land = pose(potential, beta, kernel)
    _check_size(land, force)
    found = perceptron_minimiser(land)
    splits = forms.splitting(land)
    if as_json:
        _print_json(land, found, splits, forms.maximum(land))
    else:
        _print_text(land, found, splits, forms.maximum(land))
    if figure is not None:
        from pathlines.draw import FIGURES, save_figure

        changes = {
            "directions": potential.directions.tolist(),
            "strengths": potential.strengths.tolist(),
            "biases": potential.biases.tolist(),
            "activation": potential.activation,
            "betas": [beta],
            "kernel": kernel,
        }
        save_figure(FIGURES["metastability/perceptron-minimiser"].draw("quick", changes), figure)
        console(stderr=as_json).print(f"figure: {figure.resolve()}", soft_wrap=True)


FEWEST_ATOMS = 7
"""The minimiser begins with so many."""


def _check_size(land: Any, force: bool) -> None:
    """Distances of all probes to all atoms, and what every neuron says at every probe."""
    from pathlines.foundation.bounds import affordable
    from pathlines.limit.metastability.perceptron_minimiser import CLOSER, probe_count
    from pathlines.limit.metastability.perceptron_probes import line_points

    d, neurons = land.potential.d, len(land.potential.strengths)
    probes = CLOSER * probe_count(land) + line_points(land.potential)
    numbers = float(probes) * (FEWEST_ATOMS * d + 3 * neurons)
    affordable(f"{neurons} neurons at β = {land.beta:g}", memory=8 * numbers, operations=10 * numbers, force=force)


def _on_circle(text: str, activation: str) -> Any:
    from pathlines.foundation.errors import ArgumentError
    from pathlines.limit.metastability.perceptron_potential import on_circle, perceptron_potential

    try:
        pairs = [tuple(float(x) for x in pair.split(":")) for pair in text.split(",") if pair.strip()]
    except ValueError as error:
        raise ArgumentError(f"Option --neurons takes θ:ω,θ:ω,… with numbers, but got {text!r}.") from error
    if not pairs or any(len(p) != 2 for p in pairs):
        raise ArgumentError(f"Option --neurons takes at least one angle:strength pair, but got {text!r}.")
    angles, strengths = zip(*pairs, strict=True)
    return perceptron_potential(on_circle(list(angles)), list(strengths), activation=activation)


def _from_file(path: Path, activation: str) -> Any:
    import tomllib

    from pathlines.foundation.errors import ArgumentError
    from pathlines.limit.metastability.perceptron_potential import on_circle, perceptron_potential

    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ArgumentError(f"The file {path} cannot be read as TOML ({error}).") from error
    known = {"directions", "angles", "strengths", "biases", "activation"}
    if not set(table) <= known or "strengths" not in table or ("directions" in table) == ("angles" in table):
        raise ArgumentError(
            f"The file {path} must hold strengths and either directions or angles, and may hold biases and activation; "
            f"it holds {', '.join(sorted(table)) or 'nothing'}."
        )
    rows = table["directions"] if "directions" in table else on_circle(table["angles"])
    return perceptron_potential(rows, table["strengths"], table.get("biases"), table.get("activation", activation))


def _print_json(land: Any, found: Any, splits: list[Any], top: float) -> None:
    import msgspec

    document = {
        "beta": land.beta,
        "kernel_scale": land.scale,
        "atoms": found.atoms.tolist(),
        "angles": found.angles.tolist() if land.potential.d == 2 else None,
        "masses": found.masses.tolist(),
        "energy": found.energy,
        "multiplier": found.multiplier,
        "kkt_gap": found.kkt_gap,
        "rates": found.rates.tolist(),
        "heaviest_mass": found.heaviest_mass,
        "maximum": top,
        "splitting": splits,
        "iterations": found.iterations,
    }
    typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())


def _print_text(land: Any, found: Any, splits: list[Any], top: float) -> None:
    from rich.table import Table

    screen, flat = console(), land.potential.d == 2
    place = "angle" if flat else "position"
    table = Table(box=None, padding=(0, 2), title=f"global minimiser at β = {land.beta:g}", title_justify="left")
    for column in (place, "mass"):
        table.add_column(column, justify="right")
    for k, mass in enumerate(found.masses):
        where = f"{found.angles[k]:.10f}" if flat else "  ".join(f"{c:+.7f}" for c in found.atoms[k])
        table.add_row(where, f"{mass:.8f}")
    screen.print(table)
    gap = f"at most {found.kkt_gap:.1e} above the minimum (KKT gap on {found.probes} probes)"
    screen.print(f"energy        {found.energy:.14g}   {gap}", soft_wrap=True)
    screen.print(f"maximum       {top:.14g}   one point where v is greatest")
    screen.print(f"slowest rate  {found.rates[0]:.6g}   of displaced atoms under descent")
    screen.print(f"heaviest mass {found.heaviest_mass:.6g}   within 1/(2√β) = {land.radius:.4g}")
    for split in splits:
        state = (
            "holds all the mass in one point"
            if split.rate <= 0
            else f"splits a point of all the mass at rate {split.rate:.4g}"
        )
        pair = "" if not split.delta else f", into halves at ±{split.delta:.6g}"
        pair = ", into more than two points (halves would split again)" if split.again else pair
        alone = "" if split.alone else " (others act there too: a guide only)"
        screen.print(
            f"neuron {split.neuron}: pull {split.pull:.6g}, holds a mass up to {split.largest:.6g} in one point; "
            f"{state}{pair}{alone}",
            soft_wrap=True,
        )
