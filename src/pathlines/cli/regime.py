"""pathlines regime: which limit a deep random transformer is in."""

from __future__ import annotations

from typing import Annotated

import typer

from pathlines.cli.common import (
    AsJson,
    Dimension,
    Figure,
    Heads,
    LogitScale,
    Step,
    Tokens,
    check_outputs,
    console,
    ready,
)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="regime")(regime)


def regime(
    layers: Annotated[int, typer.Option("--layers", help="Number of layers L.")] = 1000,
    step: Step = 0.05,
    heads: Heads = 8,
    d: Dimension = 512,
    n: Tokens = 64,
    logit_scale: LogitScale = 1.0,
    mean: Annotated[
        bool, typer.Option("--mean", help="Weights have a mean (the drift is not zero); centred Gaussian otherwise.")
    ] = False,
    epsilon: Annotated[float, typer.Option("--epsilon", help="o(1) is read as at most this.")] = 0.1,
    bound: Annotated[float, typer.Option("--bound", help="O(1) is read as at most this.")] = 10.0,
    figure: Figure = None,
    as_json: AsJson = False,
) -> None:
    """Say which limit holds: static, ODE I, ODE II, SDE, or none, with the numbers that decide it.

    The classifier of Homogenized Transformers (arXiv:2604.01978) at finite depth: the smallest model whose conditions
    on ηL, αηL, η²L, η³L hold. Derived parameters (α, v, τ, b) are shown with it.

    Examples: `pathlines regime --layers 96 --step 0.1 --heads 16`,
    `pathlines regime --mean --step 0.02 --figure regime.pdf`.
    """
    ready()
    from pathlines.limit.homogenized.parameters import HomogenizedParameters
    from pathlines.limit.homogenized.regimes import regime as classify

    check_outputs(figures=(figure,))
    numbers = HomogenizedParameters.gaussian(n, d, step, heads=heads, logit_scale=logit_scale, layers=layers)
    found = classify(step, numbers.alpha, layers, epsilon, bound, centred=not mean)
    if figure is not None:
        from pathlines.draw import FIGURES, save_figure

        changes = {"layers": layers, "step": step, "heads": heads, "d": d}
        save_figure(FIGURES["homogenized/regimes"].draw("quick", changes), figure)
    if as_json:
        import msgspec

        document = {"regime": msgspec.to_builtins(found), "limit": found.limit, "parameters": numbers.as_dict()}
        typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())
        return
    for line in (*numbers.lines(), "", *found.lines()):
        console().print(line)
    if figure is not None:
        console().print(f"figure: {figure.resolve()}", soft_wrap=True)
