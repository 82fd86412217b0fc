"""pathlines gaussian: what becomes of a Gaussian token cloud, and whether n tokens would follow it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pathlines.cli.common import AsJson, Figure, Force, Rtol, Tokens, check_outputs, console, ready

_MATRICES = ("value", "query", "key", "score", "covariance")
_NUMBERS = ("scale", "eps")
_WORDS = ("kind", "prefactor")
LATEST = 1e4
"""Depth up to which the end of trust is sought in clouds that do not blow up."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="gaussian")(gaussian)


def gaussian(
    what: Annotated[
        str,
        typer.Argument(
            help="A TOML or JSON file with matrices, or an example: zero, line, two-lines, blow-up, both, …"
        ),
    ] = "blow-up",
    kind: Annotated[str | None, typer.Option("--kind", help="softmax, l2 or sinkhorn (overrides the file).")] = None,
    n: Tokens = 1024,
    tolerance: Annotated[
        float, typer.Option("--tolerance", help="Relative error of the attention field that is still trusted.")
    ] = 0.1,
    until: Annotated[float, typer.Option("--until", help="Scale-free time at which to give up, ≤ 10⁹.")] = 1e6,
    rtol: Rtol = 1e-9,
    figure: Figure = None,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Classify a centred Gaussian cloud under attention: converges, vanishes, grows, or explodes, when and where to.

    A file holds `value` (V), `covariance` (default the identity) and `score` (A, score (Ax)·y) or `query` and `key`
    (l2 needs both), and may set `kind`, `scale`, `eps` and `prefactor` of Sinkhorn. The trust verdict compares the
    field of n tokens with its limit at the start, and says when θ(t) reaches 1/√2 (softmax only).

    Examples: `pathlines gaussian blow-up`, `pathlines gaussian both --figure both.pdf`,
    `pathlines gaussian weights.toml --kind l2 --n 4096 --json`.
    """
    ready()
    check_outputs(figures=(figure,))
    problem = read_problem(what, kind)
    _check_size(len(problem["value"]), force)
    document = judge(problem, n, tolerance, until, rtol)
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())
    else:
        for line in _lines(document):
            console().print(line, soft_wrap=True)
    if figure is not None:
        from pathlines.draw import FIGURES, save_figure

        changes = {k: problem[k] for k in ("kind", "value", "query", "key", "covariance", "scale", "eps", "prefactor")}
        save_figure(FIGURES["gaussian/fate"].draw("quick", changes), figure)
        if not as_json:
            console().print(f"figure: {figure.resolve()}", soft_wrap=True)


FEWEST_STEPS = 50
"""Of the stiff solver that follows a cloud to its fate."""


def _check_size(d: int, force: bool) -> None:
    """A step eliminates in the Jacobian of the d² numbers of a factor."""
    from pathlines.foundation.bounds import affordable

    unknowns = float(d) ** 2
    work = FEWEST_STEPS * unknowns**3 / 3
    affordable(f"The fate of a cloud of dimension {d}", memory=8 * unknowns**2, operations=work, force=force)


def read_problem(what: str, kind: str | None) -> dict[str, Any]:
    """The problem of a file or of a named example, checked: kind, value, query, key, covariance, scale, eps, …."""
    from pathlines.foundation.errors import ArgumentError
    from pathlines.model.gaussian.closure import closure_kinds
    from pathlines.model.gaussian.examples import EXAMPLES

    path = Path(what)
    if path.suffix in (".toml", ".json"):
        given = _file(path)
    else:
        if what not in list(EXAMPLES):
            names = ", ".join(EXAMPLES)
            raise ArgumentError(f"There is no example `{what}`; there are {names}; a file ends in .toml or .json.")
        example = EXAMPLES[what]
        given = {"value": example.value, "query": example.query, "key": example.key, "covariance": example.start}
        given["scale"] = 1.0 if kind == "l2" else example.scale
    problem = {
        "kind": given.get("kind", "softmax") if kind is None else kind,
        "prefactor": given.get("prefactor", "1/eps"),
    }
    problem |= {"scale": given.get("scale", 1.0), "eps": given.get("eps", 1.0)}
    if "value" not in given:
        raise ArgumentError(f"{what} must give the value matrix `value` (V), d × d.")
    problem |= _weights(given, problem["kind"])
    if problem["kind"] in closure_kinds() and problem["kind"] not in ("softmax", "l2", "sinkhorn"):
        raise ArgumentError(
            f"Option --kind must be softmax, l2 or sinkhorn, but is {problem['kind']!r}: "
            f"`pathlines run gaussian-{problem['kind']}` follows its closure without a class."
        )
    return problem


def _file(path: Path) -> dict[str, Any]:
    import json
    import tomllib

    from pathlines.foundation.errors import ArgumentError

    if not path.is_file():
        raise ArgumentError(f"There is no file {path}.")
    try:
        text = path.read_text()
        given = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (tomllib.TOMLDecodeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ArgumentError(f"The file {path} cannot be read: {error}.") from error
    unknown = sorted(set(given) - {*_MATRICES, *_NUMBERS, *_WORDS}) if isinstance(given, dict) else ["a list"]
    if unknown:
        allowed = ", ".join((*_MATRICES, *_NUMBERS, *_WORDS))
        raise ArgumentError(f"The file {path} has {', '.join(unknown)}; allowed are {allowed}.")
    return given


def _weights(given: dict[str, Any], kind: str) -> dict[str, Any]:
    """Square V, Q and K of one shape, a covariance that is one; plain lists."""
    import numpy as np

    from pathlines.foundation.errors import ArgumentError, finite_array
    from pathlines.limit.gaussian.matrices import checked_covariance, square

    value = square("value", given["value"])
    d = len(value)
    if "score" in given and ("query" in given or "key" in given):
        raise ArgumentError("Give `score` (A) or `query` and `key`, not both.")
    if "score" in given and kind == "l2":
        raise ArgumentError("Attention `l2` needs `query` and `key`: its kernel e^(-|Qx-Ky|²) is not a function of A.")
    if "score" in given:
        query, key = square("score", given["score"], d), np.eye(d)
    else:
        query, key = (np.atleast_2d(finite_array(m, given.get(m, np.eye(d)))).astype(float) for m in ("query", "key"))
    if query.shape != key.shape or query.shape[-1] != d:
        raise ArgumentError(
            f"Matrices `query` and `key` must both be p × {d} as `value` is {d} × {d}, but are "
            f"{' × '.join(map(str, query.shape))} and {' × '.join(map(str, key.shape))}."
        )
    start = checked_covariance("covariance", given.get("covariance", np.eye(d)), d)
    return {"value": value.tolist(), "query": query.tolist(), "key": key.tolist(), "covariance": start.tolist()}


def judge(problem: dict[str, Any], n: int, tolerance: float, until: float, rtol: float) -> dict[str, Any]:
    """Class, time, direction and trust of one problem."""
    import msgspec
    import numpy as np

    from pathlines.integrate.gaussian_fate import fates
    from pathlines.limit.gaussian.context import closure_horizon, critical_time
    from pathlines.limit.gaussian.matrices import factor
    from pathlines.model.gaussian.closure import gaussian_closure

    options = {k: problem[k] for k in (("eps", "prefactor") if problem["kind"] == "sinkhorn" else ())}
    matrices = [np.asarray(problem[k]) for k in ("value", "query", "key")]
    model = gaussian_closure(problem["kind"], *matrices, scale=problem["scale"], **options)
    start = factor("covariance", problem["covariance"])
    (fate,) = fates(model, start, until=until, rtol=rtol)
    document = {"problem": problem, "fate": msgspec.to_builtins(fate), "trust": None}
    if problem["kind"] == "softmax":
        score = problem["scale"] * matrices[2].T @ matrices[1]
        found = msgspec.to_builtins(closure_horizon(score, matrices[0], problem["covariance"], n, tolerance))
        last = fate.blow_up_time or min(fate.time, LATEST)
        found["ends"] = critical_time(score, matrices[0], problem["covariance"], last)
        document["trust"] = {k: None if v == float("inf") else v for k, v in found.items()}
    return document


def _lines(document: dict[str, Any]) -> list[str]:
    fate, horizon, kind = document["fate"], document["trust"], document["problem"]["kind"]
    vector = ", ".join(f"{x:.6g}" for x in fate["direction"])
    values = ", ".join(f"{x:.6g}" for x in fate["eigenvalues"])
    scaled = " of Σ/tr Σ" if fate["kind"] in ("blow-up", "exponential") else ""
    lines = [f"class        {fate['kind']} ({kind} attention): {fate['reason']}"]
    if fate["blow_up_time"] is not None:
        lines.append(f"T*           {fate['blow_up_time']:.12g}")
    lines += [
        f"direction    ({vector})",
        f"eigenvalues  {values}{scaled}; rank {fate['rank']}",
        f"reached      t = {fate['time']:.6g}, s = {fate['scale_free']:.3g}, ln(tr Σ/tr Σ₀) = {fate['log_growth']:.4g}",
    ]
    if horizon is not None:
        lines.append(f"finite n     {horizon['verdict']}: {horizon['reason']}")
        if horizon["ends"]:
            lines.append(
                f"             at t = {horizon['ends']:.6g} θ reaches 1/√2, then errors decay more slowly than n^-1/2"
            )
    return lines
