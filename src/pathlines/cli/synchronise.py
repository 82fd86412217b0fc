"""pathlines synchronise: whether the common noise of random perceptrons brings tokens together."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pathlines.cli.common import (
    AsJson,
    Beta,
    Dimension,
    Figure,
    Force,
    Seed,
    check_outputs,
    console,
    ready,
    waiting,
)

GAP = 1e-6
STEPS = 40
"""Layers of a simulation, each so short that noise makes a token 5 % longer at most; half as long ones follow."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="synchronise")(synchronise)


def synchronise(
    activation: Annotated[
        str,
        typer.Option("--activation", help="linear, relu, erf, gelu, tanh, silu, or one that a --load file adds."),
    ] = "tanh",
    d: Dimension = 40,
    sw: Annotated[float, typer.Option("--sw", help="σ_w, standard deviation of the entries of W₁ (|x| = 1).")] = 1.0,
    sb: Annotated[float, typer.Option("--sb", help="σ_b, standard deviation of the biases.")] = 0.0,
    attention: Annotated[
        float, typer.Option("--attention", help="v, strength of attention beside the noise (0: noise alone).")
    ] = 0.0,
    beta: Beta = 1.0,
    simulate: Annotated[bool, typer.Option("--simulate", help="Follow simulated pairs beside the theory.")] = False,
    runs: Annotated[int, typer.Option("--runs", help="Pairs of --simulate.")] = 1000,
    seed: Seed = 0,
    figure: Figure = None,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Say whether the common noise of random perceptrons synchronises tokens or separates them, and from which width.

    Layers x ← N(x + √h W₂φ(W₁x + b)/√m), shared by all tokens and drawn afresh (arXiv:2604.26898; scalings are our
    convention, constants derived): the gap 1 − ρ of nearby tokens changes like e^{Λt}, Λ = (d−3)k′(1) − (d−1)k(1) − 2v
    with k(1) = E φ(g)², k′(1) = σ_w² E φ′(g)². Prints Λ, the critical dimension, and c, the rate at which the mean gap
    of every pair dissipates; --figure draws Λ over d and σ_w.

    An activation of your own: `pathlines --load mine.py synchronise --activation sine`, where mine.py says
    `from pathlines.limit.homogenized.perceptron_kernel import ACTIVATIONS, by_quadrature` and
    `ACTIVATIONS["sine"] = by_quadrature(np.sin)`.

    Examples: `pathlines synchronise --activation tanh --d 40`,
    `pathlines synchronise --activation relu --d 8 --sb 1 --simulate`,
    `pathlines synchronise --activation gelu --d 64 --attention 0.5 --figure map.pdf --json`.
    """
    ready()
    check_outputs(figures=(figure,))
    from pathlines.foundation.bounds import affordable
    from pathlines.foundation.errors import positive_integer
    from pathlines.limit.followups.synchronisation import synchronisation

    positive_integer("runs", runs, least=2)
    found = synchronisation(activation, d, sw, sb, attention, beta)
    work, measured = float(runs) * d * 3 * STEPS * 200, None
    if simulate:
        affordable(f"{runs} pairs in dimension {d}", memory=64.0 * d * runs / 100, operations=work, force=force)
        with waiting(f"following {runs} pairs"):
            measured = _simulated(found, runs, seed)
    if as_json:
        _print_json(found, measured)
    else:
        _print_text(found, measured)
    if figure is not None:
        _draw(found, runs if simulate else 0, seed, figure, as_json)


def _simulated(found: Any, runs: int, seed: int) -> dict[str, float]:
    """Slope of E log(1-ρ) of nearby pairs, from layers of step h and h/2 extrapolated to h = 0."""
    from pathlines.claim.followups.common_noise import extrapolated

    step = 0.05 / (found.d * max(found.kernel, found.kernel_slope))
    rate, error = extrapolated(*(_slope(found, runs, seed, step, refined) for refined in (1, 2)))
    return {"lyapunov_exponent": rate, "standard_error": error, "time_step": step, "pairs": runs}


def _slope(found: Any, runs: int, seed: int, step: float, refined: int) -> tuple[float, float]:
    """That slope and its standard error, in layers of ``step`` over ``refined``."""
    import jax
    import numpy as np

    from pathlines.claim.estimate import controlled_mean
    from pathlines.claim.followups.common_noise import MARTINGALE
    from pathlines.domain import Sphere
    from pathlines.integrate.chain import chain
    from pathlines.model.followups.synchronising_pair import SynchronisingPair

    model = SynchronisingPair(
        _function(found.activation), found.sigma_w, found.sigma_b,
        attention=found.attention, beta=found.beta, time_step=step / refined,
    )  # fmt: skip
    depth, key = refined * STEPS, jax.random.fold_in(jax.random.key(seed), refined)
    run = chain(
        model, Sphere(found.d).simplex(2, 1 - GAP), depth=depth, every=depth, key=key, runs=runs,
        record=["deficits", MARTINGALE],
    )  # fmt: skip
    logs, span = np.log(run["deficits"].values[:, :, 0, 1]), STEPS * step
    return controlled_mean((logs[:, -1] - logs[:, 0]) / span, run["martingale"].values[:, -1:] / span)


def _function(name: str) -> Any:
    """The activation as the engine has it."""
    from pathlines.foundation.errors import ArgumentError
    from pathlines.model.parts.perceptron import ACTIVATIONS

    if name not in ACTIVATIONS:
        raise ArgumentError(f"Option --simulate knows {', '.join(ACTIVATIONS)}, but not {name!r}.")
    return name


def _print_text(found: Any, measured: dict[str, float] | None) -> None:
    screen = console()
    screen.print(found.sentence)
    critical = "none" if found.critical_dimension is None else f"{found.critical_dimension:.4g}"
    screen.print(f"  k(1) = {found.kernel:.6g}, k′(1) = {found.kernel_slope:.6g}, critical dimension {critical}")
    screen.print(f"  typical gap  Λ = {found.lyapunov_exponent:+.6g}")
    screen.print(f"  mean gap     {found.mean_rate:+.6g} near ρ = 1")
    said = "coercive" if found.coercive else "not coercive"
    screen.print(f"  dissipation  c = {found.dissipation:.4g}, at ρ = {found.dissipation_at:.3g}: {said}")
    if measured:
        text = f"{measured['lyapunov_exponent']:+.4g} ± {measured['standard_error']:.2g}"
        how = f"h → 0 from h = {measured['time_step']:.2g} and half of it"
        screen.print(f"  simulated    Λ = {text} ({how}, {measured['pairs']} pairs)")


def _print_json(found: Any, measured: dict[str, float] | None) -> None:
    import msgspec

    document = {**msgspec.to_builtins(found), "simulated": measured}
    typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())


def _draw(found: Any, runs: int, seed: int, file: Any, as_json: bool) -> None:
    from pathlines.draw import FIGURES, save_figure

    fields = ("activation", "d", "sigma_w", "sigma_b", "attention", "beta")
    changes = {name: getattr(found, name) for name in fields} | {"runs": runs, "seed": seed}
    changes |= {
        "gap": GAP,
        "largest": max(20, 2 * found.d),
        "until": min(1.0, 3 / max(abs(found.lyapunov_exponent), 1e-3)),
    }
    save_figure(FIGURES["followups/synchronisation"].draw("quick", changes), file)
    console(stderr=as_json).print(f"figure: {file.resolve()}", soft_wrap=True)
