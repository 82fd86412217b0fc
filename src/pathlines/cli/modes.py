"""pathlines modes: how many modes a density estimate has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathlines.cli.common import AsJson, Beta, Figure, Force, Seed, Tokens, check_outputs, console, ready

if TYPE_CHECKING:
    import numpy as np

    from pathlines.observable.kde_modes import ModeTable

SAMPLE_WORK = 100.0
"""Operations that a sample takes at least: drawing, sorting, its part in the modes."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="modes")(modes)


def modes(
    n: Tokens = 1000,
    beta: Beta = 100.0,
    samples: Annotated[
        Path | None,
        typer.Option("--numbers", metavar="FILE", help="Your numbers instead: one per line, .csv or .npy."),
    ] = None,
    runs: Annotated[int, typer.Option("--runs", help="Samples of size n to average over (0: theory only).")] = 200,
    seed: Seed = 0,
    figure: Figure = None,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Count the modes of a Gaussian kernel density estimate: expected for n normal samples, or of your own numbers.

    The modes at bandwidth β^{-1/2} are the clusters to expect from tokens of temperature 1/β
    (arXiv:2412.09080). For normal samples: bounds by Kac-Rice theory, the leading order, and a simulation with
    certified counts. With --numbers: number and positions of the modes of the file.

    Examples: `pathlines modes --n 10000 --beta 100`, `pathlines modes --numbers values.csv --beta 25 --figure m.png`.
    """
    ready()
    from pathlines.foundation.bounds import affordable
    from pathlines.foundation.errors import ArgumentError

    check_outputs(figures=(figure,))
    if samples is None:
        size = float(max(n, 0)) * max(runs, 0)
        affordable(f"{runs} samples of size {n}", memory=8.0 * size, operations=SAMPLE_WORK * size, force=force)
    if figure is not None and runs == 0 and samples is None:
        raise ArgumentError("Option --figure draws samples: it needs --runs of at least 1.")
    document, lines, drawing = _of_file(samples, beta) if samples is not None else _expected(n, beta, runs, seed)
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())
    else:
        for line in lines:
            console().print(line, soft_wrap=True)
    if figure is not None:
        from pathlines.draw import save_figure

        save_figure(drawing(), figure)
        typer.echo(f"figure: {figure.resolve()}", err=as_json)


def _of_file(path: Path, beta: float) -> tuple[dict[str, Any], list[str], Any]:
    from pathlines.draw.modes_figure import sample_figure
    from pathlines.observable.kde_modes import find_modes

    numbers = read_numbers(path)
    table = find_modes(numbers, beta)
    document = {
        "file": str(path),
        "n": len(numbers),
        "beta": beta,
        "bandwidth": beta**-0.5,
        "modes": int(table.count[0]),
        "positions": table.position.tolist(),
        "certified": bool(table.doubtful[0] == 0),
    }
    shown = ", ".join(f"{x:.6g}" for x in table.position[:40]) + (", …" if len(table.position) > 40 else "")
    lines = [
        f"{len(numbers)} samples, bandwidth {beta**-0.5:.4g} (β = {beta:g})",
        f"{table.count[0]} modes ({_certified(table)}): {shown}",
    ]
    return document, lines, lambda: sample_figure(numbers, table)


def _certified(table: ModeTable) -> str:
    doubtful = int((table.doubtful > 0).sum())
    return "certified" if doubtful == 0 else f"{doubtful} of {len(table.count)} counts within rounding of another"


def _expected(n: int, beta: float, runs: int, seed: int) -> tuple[dict[str, Any], list[str], Any]:
    from pathlines.draw.modes_figure import ensemble_figure
    from pathlines.foundation.errors import positive_integer
    from pathlines.limit.metastability.kde_modes import belt, bracket, last_mode, leading_order, two_sample_modes
    from pathlines.observable.kde_modes import normal_modes

    positive_integer("runs", runs, 0)
    (low, high), leading, edge = bracket(n, beta), float(leading_order(n, beta)), last_mode(n, beta)
    known = low == low
    document: dict[str, Any] = {
        "n": n,
        "beta": beta,
        "bandwidth": beta**-0.5,
        "leading_order": leading if known and beta > 1 else None,
    }
    document |= {"lower": low if known else None, "upper": high if known else None}
    document["belt"] = [list(i) for i in belt(n, beta)] if known else None
    lines = [f"{n} normal samples, bandwidth {beta**-0.5:.4g} (β = {beta:g})"]
    if n == 2:
        document["exact"] = float(two_sample_modes(beta))
        lines.append(f"exact       {document['exact']:.8f} = 1 + erfc(β^(-1/2))")
    if known:
        places = " and ".join(f"[{a:.3f}, {b:.3f}]" for a, b in belt(n, beta))
        lines.append(f"theory      {low:.4f} ≤ E #modes ≤ {high:.4f}   (Kac–Rice for |t| ≤ {edge:.3f}, samples beyond)")
        if places:
            lines.append(f"leading     {leading:.4f} as n → ∞, in the belt {places}")
        else:
            lines.append("leading     none for β ≤ 1: there is no belt")
    else:
        lines.append("theory      none for β > n²: nearly every sample is a mode of its own")
    if runs == 0:
        return document, lines, None
    table = normal_modes(n, beta, runs, seed)
    document |= {"mean": table.mean, "error": table.error if runs > 1 else None, "runs": runs, "seed": seed}
    document["certified"] = bool((table.doubtful == 0).all())
    spread = f" ± {table.error:.4f}" if runs > 1 else ""
    lines.append(f"simulation  {table.mean:.4f}{spread} over {runs} samples ({_certified(table)})")
    return document, lines, lambda: ensemble_figure(n, table)


def read_numbers(path: Path) -> np.ndarray:
    """The numbers of a .npy file, or of a text file with one or several (separated by commas or spaces) a line.

    A first line of words is taken as a header.
    """
    import numpy as np

    from pathlines.foundation.errors import ArgumentError, finite_array

    if not path.is_file():
        raise ArgumentError(f"There is no file {path} to read samples from.")
    if path.suffix == ".npy":
        try:
            with path.open("rb") as file:
                return finite_array("samples", np.load(file, allow_pickle=False)).astype(float).ravel()
        except Exception as error:
            raise ArgumentError(f"The file {path} is not an array of numbers ({error}).") from error
    found: list[float] = []
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ArgumentError(f"The file {path} is not text; give numbers one per line, .csv or .npy.") from error
    for number, line in enumerate(lines, 1):
        words = line.replace(",", " ").replace(";", " ").split("#")[0].split()
        try:
            found += [float(word) for word in words]
        except ValueError as error:
            if number > 1:
                raise ArgumentError(f"Line {number} of {path} is not numbers: {line.strip()[:40]!r}.") from error
    if not found:
        raise ArgumentError(f"The file {path} has no numbers.")
    return finite_array("samples", np.array(found))
