"""pathlines misassignment: which share of the tokens low temperature sends to the wrong pole."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pathlines.cli.common import AsJson, Beta, Figure, check_outputs, console, ready, waiting

MOST_TOKENS = 200_000


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="misassignment")(misassignment)


def misassignment(
    beta: Beta = 64.0,
    value: Annotated[
        str, typer.Option("--value", metavar="λ1,λ2", help="V: two eigenvalues, or four entries a,b,b,c (symmetric).")
    ] = "1,0.3",
    kappa: Annotated[float, typer.Option("--kappa", help="Concentration κ of the von Mises start, at most 300.")] = 1.0,
    mean: Annotated[float, typer.Option("--mean-angle", help="Its mean angle, in degrees.")] = 45.0,
    simulate: Annotated[bool, typer.Option("--simulate", help="Run self-attention beside the prediction.")] = False,
    until: Annotated[float, typer.Option("--until", help="Where the run and the figure end, in depth-time.")] = 16.0,
    n: Annotated[int, typer.Option("--n", help="Weighted particles of the run.")] = 2000,
    figure: Figure = None,
    as_json: AsJson = False,
) -> None:
    """Predict the mass that ends at the wrong pole, and the plateau it leaves, at a low but finite temperature.

    Tokens on the circle, softmax attention with Q = K = I and a symmetric V. At β = ∞ every token goes to the pole ±e₁
    on its side (e₁ the leading eigenvector of V). At finite β the watershed is displaced where the start has a slope,
    and a mass of order 1/β goes to the other pole: token by token, the law stays at distance 2√mass from where zero
    temperature takes it, and W₂ is 2√|net|, net what e₁ gains (arXiv:2605.10931; derived here, with the next order).

    Examples: `pathlines misassignment --beta 64`, `pathlines misassignment --beta 20 --value 1,-0.5 --kappa 2
    --mean-angle 60 --simulate --figure wrong.png`.
    """
    ready()
    import numpy as np

    from pathlines.foundation.errors import finite_number, require
    from pathlines.limit.followups import separatrix as theory

    check_outputs(figures=(figure,))
    matrix, end = _matrix(value), finite_number("until", until, 0.0, 1e4, open_low=True)
    require(200 <= n <= MOST_TOKENS, "n", f"be between 200 and {MOST_TOKENS}", n)
    density = theory.von_mises(kappa, np.deg2rad(finite_number("mean", mean)))
    known = theory.misassignment(density, finite_number("beta", beta, 1e-3, 1e9), matrix)
    found = None
    if simulate:
        finite_number("beta", beta, 1e-3, 1e5)
        from pathlines.integrate.concentration import concentrate

        with waiting("self-attention"):
            found = concentrate(density, beta, matrix, np.linspace(0, end, 65), n)
    document = _document(beta, matrix, kappa, mean, known)
    if found is not None:
        wrong, net = (None if np.isnan(x) else x for x in (found.misassigned, found.net))
        document |= {"simulated": wrong, "simulated_net": net}
        document |= {"simulated_distance": float(found.distance[-1]), "until": end}
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())
    else:
        for line in _lines(beta, known, found, end):
            console().print(line, soft_wrap=True)
    if figure is not None:
        from pathlines.draw import save_figure
        from pathlines.draw.misassignment_figure import misassignment_figure

        save_figure(misassignment_figure(density, beta, matrix, known, end, found), figure)
        typer.echo(f"figure: {figure.resolve()}", err=as_json)


def _matrix(text: str) -> Any:
    """Two eigenvalues, or four entries row by row."""
    import numpy as np

    from pathlines.foundation.errors import ArgumentError

    try:
        numbers = np.array([float(word) for word in text.replace(";", ",").split(",")])
    except ValueError:
        numbers = np.empty(0)
    if len(numbers) not in (2, 4) or not np.isfinite(numbers).all():
        raise ArgumentError(f"Argument `value` must be two eigenvalues or four entries, but is {text!r}.")
    return np.diag(numbers) if len(numbers) == 2 else numbers.reshape(2, 2)


def _document(beta: float, matrix: Any, kappa: float, mean: float, known: Any) -> dict[str, Any]:
    import numpy as np

    sure = known.reliable
    return {
        "beta": beta,
        "value": matrix.tolist(),
        "kappa": kappa,
        "mean": mean,
        "misassigned": known.mass if sure else None,
        "leading_order": known.first,
        "plateau": known.plateau if sure else None,
        "net": known.net if sure else None,
        "w2": known.w2 if sure else None,
        "displacements": np.rad2deg(known.shifts).tolist() if sure else None,
        "rate": known.gap / 2,
        "reliable": sure,
    }


def _lines(beta: float, known: Any, found: Any, end: float) -> list[str]:
    import numpy as np

    if not known.reliable:
        lines = [
            f"β = {beta:g} is too small for this theory, or λ₁ and λ₂ are too close: corrections to the first order in "
            "1/β are above a fifth of it. Raise --beta, or add --simulate."
        ]
    elif known.mass < 1e-12:
        lines = [f"At β = {beta:g} no mass goes to the wrong pole: the start has no slope at the watershed."]
    else:
        lines = [
            f"At β = {beta:g}, {known.mass:.3%} of the tokens end at the wrong pole, and token by token the law "
            f"stays at distance {known.plateau:.4f} from its projection (W₂: {known.w2:.4f})."
        ]
    if known.reliable:
        lines.append("watershed   displaced by " + " and ".join(f"{x:+.3g}°" for x in np.rad2deg(known.shifts)))
        lines.append(f"approach    e^(-{known.gap / 2:.4g} t), then the plateau")
    if known.reliable and known.mass >= 1e-12:
        lines.append(f"order       {known.first:.6g} to first order in 1/β, {known.mass:.6g} to second")
    if found is not None and np.isnan(found.misassigned):
        lines.append(f"simulation  tokens had not parted: distance {found.distance[-1]:.4f} at t = {end:g}")
    elif found is not None:
        wrong, last = found.misassigned, found.distance[-1]
        lines.append(f"simulation  {wrong:.6g} misassigned; distance {last:.4f} at t = {end:g}")
    return lines
