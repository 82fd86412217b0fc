"""pathlines context: how much context resolves a query."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pathlines.cli.common import AsJson, Figure, Force, Seed, check_outputs, console, ready, waiting

DRAWS = 400
"""Contexts of a simulation."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="context")(context)


def context(
    query_norm: Annotated[
        float, typer.Option("--query-norm", help="|q|, 0 to 6, where keys have variance 1 and scores are q·y.")
    ] = 1.2,
    error: Annotated[
        float | None, typer.Option("--error", help="Root mean square error to reach (0.05 unless --n is given).")
    ] = None,
    d: Annotated[int, typer.Option("--d", help="Dimension d of the tokens (width).")] = 4,
    n: Annotated[int | None, typer.Option("--n", help="Tokens n (context length): what error they leave.")] = None,
    simulate: Annotated[bool, typer.Option("--simulate", help="Draw contexts of that length too.")] = False,
    seed: Seed = 0,
    figure: Figure = None,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Say how many Gaussian keys resolve a query, or what error a given context leaves.

    Softmax attention of a query q to n keys = values from N(0, I) misses its infinite-context output with n E|error|²
    → e^{|q|²}(d + |q|²) (arXiv:2605.16747 for the rate; the constant is derived). The answer is exact at every n, and
    says whether that law is within 5 % of it, and from which n on; before, contexts in which a few keys decide count in
    the mean, and under e^{|q|²/2} the largest weights take all attention.

    Examples: `pathlines context --query-norm 1.2 --error 0.05`, `pathlines context --query-norm 3 --n 1000 --simulate`,
    `pathlines context --query-norm 2 --error 0.1 --d 64 --figure context.pdf --json`.
    """
    ready()
    check_outputs(figures=(figure,))
    from pathlines.foundation.bounds import affordable
    from pathlines.foundation.errors import ArgumentError, positive_integer
    from pathlines.limit.followups.finite_context import context as resolve

    if n is not None:
        positive_integer("n", n)
        if error is not None:
            raise ArgumentError("Options --n and --error ask for each other; give one of them.")
    found = resolve(query_norm, None if n is not None else 0.05 if error is None else error, d, n)
    measured = None
    if simulate:
        affordable(f"{DRAWS} contexts of {found.n:.3g} keys", operations=1e5 * DRAWS * found.n * d, force=force)
        with waiting(f"drawing {DRAWS} contexts"):
            measured = _simulated(found, seed)
    if as_json:
        _print_json(found, measured)
    else:
        console().print(found.sentence)
        if measured:
            console().print(f"drawn: {measured['error']:.4g} ± {measured['standard_error']:.1g} ({DRAWS} contexts)")
    if figure is not None:
        from pathlines.draw import FIGURES, save_figure

        marked = min(found.n, 1e18)
        changes = {"norms": [query_norm], "d": d, "marked": marked, "longest": max(1e5, 10 * marked), "seed": seed}
        changes["draws"] = DRAWS if simulate and d <= 1000 else 0
        save_figure(FIGURES["followups/context"].draw("quick", changes), figure)
        console(stderr=as_json).print(f"figure: {figure.resolve()}", soft_wrap=True)


def _simulated(found: Any, seed: int) -> dict[str, float]:
    """Rms error of drawn contexts of that length, and its standard error."""
    import numpy as np

    from pathlines.claim.estimate import mean_and_error, root_and_error

    rng, squares = np.random.default_rng(seed), []
    for _ in range(DRAWS):
        keys = rng.standard_normal((round(found.n), found.d))
        scores = found.query_norm * keys[:, 0]
        weights = np.exp(scores - scores.max())
        said = weights @ keys / weights.sum()
        said[0] -= found.query_norm
        squares.append(said @ said)
    mean, error = mean_and_error(squares)
    root, spread = root_and_error(float(mean), float(error))
    return {"error": root, "standard_error": spread, "contexts": DRAWS}


def _print_json(found: Any, measured: dict[str, float] | None) -> None:
    import math

    import msgspec

    document = msgspec.to_builtins(found) | {"simulated": measured}
    document = {k: None if isinstance(v, float) and math.isinf(v) else v for k, v in document.items()}
    typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())
