"""Three theories of position bias, and what random decoders do (derived; see ``limit.causal.rivals``)."""

from __future__ import annotations

from typing import Annotated

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.architecture.read import from_config
from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import BIRTH
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.dependence import dependence
from pathlines.limit.architecture.influence import position_influence
from pathlines.limit.causal.paths import rollout
from pathlines.limit.causal.response import response
from pathlines.limit.causal.rivals import cesaro_density, cesaro_matrix, nearest_rollout, rollout_density


class Rivals(Setting):
    """Closed forms, and random decoders."""

    n: of.Tokens = 64
    layers: Annotated[of.Count, means("layers of the closed forms", "L")] = 6
    skip: Annotated[of.Share, means("residual share of rollout", "α")] = 0.5
    width: Annotated[of.Count, means("width of the random decoders", "d")] = 128
    depth: Annotated[of.Count, means("layers of the random decoders")] = 6
    places: Annotated[of.Count, means("tokens of the random decoders")] = 24
    size: Annotated[of.Positive, means("standard deviation of weights times the root of the width", "σ√d")] = 0.4
    runs: of.Runs = 96
    seed: of.Seed = 0


@picture(
    "causal/rival-theories",
    BIRTH,
    "Left: influence of a token on the last one under uniform causal attention: powers of the mask (arXiv:2603.10123), "
    "rollout with a residual share (arXiv:2602.16837) and the flow of paths (after arXiv:2605.09213) at as many hops; "
    "points are N tokens, lines the closed forms for N = ∞; the last token's own share is left out. Right: random "
    "GPT-2 and Qwen2, root mean square derivative ± 2 standard errors, paths whose squares add (dashed, no free "
    "number), and the rollout nearest to them, its α and scale fitted (dotted).",
    quick=Rivals(),
    full=Rivals(width=256, runs=192),
)
def rival_theories(s: Rivals) -> Figure:
    """Closed forms; random models."""
    figure, ((left, right),) = new_figure(1, 2, width=4.1, height=3.2)
    _closed_forms(left, s)
    _random_models(right, s)
    legend_below(figure, [left, right], columns=3)
    return figure


def _closed_forms(axes: Axes, s: Rivals) -> None:
    grid, own = np.linspace(0.5 / s.n, 0.999, 300), np.arange(1, s.n)
    x, mask = s.layers * (1 - s.skip), cesaro_matrix(s.n)
    flow = np.exp(-x) * response(1.0, 1.0, grid, rate=x, slope=0.0)
    many = 4000
    theories = (
        (f"powers of the mask, L = {s.layers}", rollout(mask, 0.0, s.layers), cesaro_density(grid, s.layers)),
        (f"rollout, α = {s.skip:g}", rollout(mask, s.skip, s.layers), rollout_density(grid, s.skip, s.layers)),
        (f"flow, x = {x:g}", rollout(mask, 1 - x / many, many), flow),
    )
    for k, (label, row, density) in enumerate(theories):
        axes.plot(own / s.n, row[:-1], "o", ms=2.6, color=COLOURS[k], label=label)
        axes.plot(grid, density, color=COLOURS[k], lw=1.1)
    axes.set(xlabel="source position $i/N$", ylabel="$N$ × influence", xscale="log", yscale="log", ylim=(1e-2, None))
    axes.set_title(f"theories, N = {s.n}")


def _random_models(axes: Axes, s: Rivals) -> None:
    std, position = {"initializer_range": s.size / np.sqrt(s.width)}, np.arange(1, s.places + 1)
    gpt2 = {"model_type": "gpt2", "n_embd": s.width, "n_head": 4, "n_layer": s.depth, **std}
    qwen2 = {
        "model_type": "qwen2", "hidden_size": s.width, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_hidden_layers": s.depth, "intermediate_size": 4 * s.width, **std,
    }  # fmt: skip
    for k, (name, fields) in enumerate({"GPT-2": gpt2, "Qwen2": qwen2}.items()):
        architecture = from_config(fields).architecture
        key = jax.random.fold_in(jax.random.key(s.seed), k)
        squares = dependence(architecture, np.arange(s.places), key=key, runs=s.runs, directions=1)
        root = np.sqrt(squares.mean(axis=0))
        error = squares.std(axis=0, ddof=1) / np.sqrt(s.runs) / (2 * root)
        marks = {"fmt": "os"[k], "ms": 3, "lw": 1, "capsize": 1.5, "color": COLOURS[3 + k]}
        axes.errorbar(position, root, 2 * error, label=f"random {name}", **marks)
        theory = np.sqrt(position_influence(architecture, s.places).squared)
        theory_line(axes, position, theory, "squares of hops add" if k == 0 else None)
        alpha, nearest = nearest_rollout(theory, s.depth)
        axes.plot(position, nearest, color=COLOURS[3 + k], ls=":", lw=1.6, label=f"nearest rollout, α = {alpha:.2f}")
    axes.set(xlabel="source position $i$", ylabel=r"influence $\sqrt{\|\partial h_N/\partial h_i\|^2/d}$", yscale="log")
    axes.set_title(f"random decoders, {s.depth} layers, width {s.width}")
