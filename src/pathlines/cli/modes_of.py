"""pathlines modes-of: a stability atlas of a symmetric V."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathlines.cli.common import AsJson, Beta, Figure, Force, Seed, Tokens, check_outputs, console, ready

if TYPE_CHECKING:
    import numpy as np

MOST_STATES = 1e5
"""Kinds of states d²n: two minutes."""
FIRST_ROWS = 12


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="modes-of")(modes_of)


def modes_of(
    file: Annotated[Path, typer.Argument(metavar="V.npy", help="A symmetric matrix: .npy, or text, one row a line.")],
    beta: Beta = 1.0,
    n: Tokens = 20,
    starts: Annotated[
        int, typer.Option("--starts", help="Random starts whose ends are counted (0: theory only).")
    ] = 64,
    seed: Seed = 0,
    figure: Figure = None,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Say where tokens can rest under a symmetric value matrix V = QᵀK, which states are stable, and at which β.

    Pure modes have n₊ tokens at an eigenvector of V and n₋ at its opposite: every split is looked at, with the range of
    β in which it is stable. Mixed ones have three groups in the plane of two eigenvectors. Random starts are simulated
    to see which states they choose. Tokens follow softmax attention on the sphere, dx_i/dt = P Σ_j a_ij V x_j with
    a_ij ∝ e^{β⟨x_i, V x_j⟩} (Spectral Selection in Symmetric Self-Attention Dynamics, arXiv:2604.26085; stability and
    the caveat about single tokens derived). `pl.limit.followups.mode_atlas(V, beta, n)` computes the same in Python.
    With --json an interval of β that never ends, [low, ∞), has null as its end.

    Examples: `pathlines modes-of V.npy`, `pathlines modes-of V.npy --beta 4 --n 12 --figure atlas.pdf`,
    `pathlines modes-of V.csv --starts 0 --json`.
    """
    ready()
    from pathlines.foundation.bounds import within
    from pathlines.foundation.errors import ArgumentError, positive_integer
    from pathlines.limit.followups.mode_atlas import mode_atlas, symmetric_matrix

    check_outputs(figures=(figure,))
    positive_integer("starts", starts, 0)
    if figure is not None and starts == 0:
        raise ArgumentError("Option --figure shows where starts end: it needs --starts of at least 1.")
    value = symmetric_matrix("V", read_matrix(file))
    d = float(len(value))
    within(f"An atlas of {n} tokens in {len(value)} dimensions", d * d * max(n, 0), MOST_STATES, "states", force=force)
    found = mode_atlas(value, beta, n)
    ends = _ends(value, beta, n, starts, seed)
    if as_json:
        import msgspec

        document = {"file": str(file), **found._asdict(), "selected": found.selected, "ends": ends}
        document |= {"pure": [m._asdict() for m in found.pure], "mixed": [m._asdict() for m in found.mixed]}
        document["ends"] = [e._asdict() for e in ends]
        plain = {k: v.tolist() if hasattr(v, "tolist") else v for k, v in document.items()}
        typer.echo(msgspec.json.format(msgspec.json.encode(plain)).decode())
    else:
        _print(found, ends, starts)
    if figure is not None:
        from pathlines.draw import save_figure
        from pathlines.draw.figures.followups.mode_atlas import draw_atlas
        from pathlines.draw.style import house_style

        with house_style():
            save_figure(draw_atlas(found, ends), figure)
        console(stderr=as_json).print(f"figure: {figure.resolve()}", soft_wrap=True)


def _ends(value: np.ndarray, beta: float, n: int, starts: int, seed: int) -> list[Any]:
    if starts == 0:
        return []
    from pathlines.sweep.generic_ends import generic_ends

    return generic_ends(value, beta, n, starts, seed)


def _print(found: Any, ends: list[Any], starts: int) -> None:
    from rich.table import Table

    screen = console()
    values = ", ".join(f"{v:.4g}" for v in found.eigenvalues[:FIRST_ROWS]) + (
        ", …" if len(found.eigenvalues) > FIRST_ROWS else ""
    )
    screen.print(f"V of {len(found.eigenvalues)} dimensions, eigenvalues {values}; β = {found.beta:g}, n = {found.n}")
    for line in sentences(found, ends, starts):
        screen.print(line, soft_wrap=True)
    table = Table(box=None, padding=(0, 2), title="pure modes that are stable at some β", title_justify="left")
    for column in ("λ", "n₊+n₋", "growth", "stable now", "stable for β in"):
        table.add_column(column, justify="right")
    rows = [m for m in found.pure if m.stable_betas]
    for m in rows[: 3 * FIRST_ROWS]:
        ranges = ", ".join(
            f"({low:.4g}, {'∞' if high == float('inf') else f'{high:.4g}'})" for low, high in m.stable_betas
        )
        now = "yes" if m.stable else "no"
        table.add_row(f"{m.eigenvalue:.4g}", f"{m.n_plus}+{m.n_minus}", f"{m.growth:+.4g}", now, ranges)
    if rows:
        screen.print(table)
    if len(rows) > 3 * FIRST_ROWS:
        screen.print(f"and {len(rows) - 3 * FIRST_ROWS} more (--json has all)")
    for m in [m for m in found.mixed if m.stable][:FIRST_ROWS]:
        u, v = (f"{found.eigenvalues[i]:.4g}" for i in (m.first, m.second))
        screen.print(f"three groups: {m.m} at u (λ = {u}), {m.k} each at {m.q:.4g} u ± s v (λ = {v}); {m.growth:+.4g}")


def sentences(found: Any, ends: list[Any], starts: int) -> list[str]:
    """What a person takes away."""
    stable, mixed = [m for m in found.pure if m.stable], [m for m in found.mixed if m.stable]
    lines = [
        f"{len(stable)} of {len(found.pure)} pure modes and {len(mixed)} of {len(found.mixed)} three-group states are "
        "stable here."
    ]
    if found.selected == "align":
        lines.append("Tokens that start on one side of the leading eigenvector all align with it; others may polarise.")
    for value, times, name in zip(found.eigenvalues[[0, -1]], found.multiplicities, ("leading", "lowest"), strict=True):
        if times > 1 and value * (1 if name == "leading" else -1) > 0:
            lines.append(
                f"The {name} eigenvalue {value:.4g} is repeated {times} times: it leaves a continuum of rests, within "
                "which tokens turn freely, and none of them counts as stable."
            )
    if found.selected == "polarise":
        lines.append("V is negative: two tokens end opposite each other on the most negative eigenvector.")
    if not stable and not mixed:
        lines.append("Nothing in the atlas is stable at this β: tokens end in other groups, or turn freely.")
    if ends:
        from pathlines.draw.figures.followups.mode_atlas import end_words

        first = "; ".join(f"{end_words(found, e)}: {100 * e.share:.0f} %" for e in ends[:4])
        lines.append(f"Of {starts} random starts: {first}{'; …' if len(ends) > 4 else ''}.")
    return lines


def read_matrix(path: Path) -> np.ndarray:
    """A matrix from .npy, or from text with one row a line (spaces, commas or semicolons)."""
    import numpy as np

    from pathlines.foundation.errors import ArgumentError

    if not path.is_file():
        raise ArgumentError(f"There is no file {path} to read V from.")
    try:
        if path.suffix == ".npy":
            with path.open("rb") as file:
                return np.asarray(np.load(file, allow_pickle=False))
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        words = [line.split("#")[0].replace(",", " ").replace(";", " ").split() for line in lines]
        return np.array([[float(w) for w in row] for row in words if row])
    except Exception as error:
        raise ArgumentError(f"The file {path} is not a matrix ({' '.join(str(error).split())}).") from error
