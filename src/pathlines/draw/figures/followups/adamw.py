"""Deep chains of random heads: scatter around the averaged flow, training, more tokens (arXiv:2605.11059; derived)."""

from __future__ import annotations

from typing import Annotated

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.claim.estimate import mean_and_error, root_and_error
from pathlines.draw.gallery import picture
from pathlines.draw.style import COLOURS, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.followups import ADAMW
from pathlines.foundation.setting import Setting, means
from pathlines.limit.followups.averaged_heads import AdamW, AveragedHeads, train_by_hand
from pathlines.model.followups.residual_heads import ResidualHeads

SCORE, VALUE = np.diag([0.5, 0.2, -0.3]), np.array([[0.4, 0.3, 0.0], [-0.3, 0.4, 0.0], [0.0, 0.0, -0.2]])
TARGET, FOUR = (0.6, -0.3), ((1.0, 0.2), (-0.5, 0.8), (0.3, -1.0), (-0.9, -0.4))


class Shapes(Setting):
    """Chains of several depths and numbers of heads."""

    depths: Annotated[of.Counts, means("depths", "L")] = (8, 16, 32)
    heads: Annotated[of.Counts, means("heads", "H")] = (1, 8)
    trained: Annotated[tuple[tuple[of.Count, of.Count], ...], means("layers and heads that are trained", "L, H")] = (
        (6, 1),
        (24, 1),
        (24, 16),
    )
    sizes: Annotated[of.Sizes, means("numbers of tokens", "n")] = (6, 12, 24)
    draws: of.Draws = 200
    runs: of.Runs = 6
    seed: of.Seed = 1


@picture(
    "followups/adamw",
    ADAMW,
    "Residual chains of random attention heads with scale 1/(LH). Left: root mean square distance of the last tokens "
    "from the averaged flow over LH, for H = 1 and 8 (bars: two standard errors), the law of the linearised chain "
    "(dashed) and the paper's order L⁻¹ + L^{−1/3}H^{−1/2} with the same constant at H = 1 (dotted). Middle: mean loss "
    "over steps of AdamW at several (L, H), and the same computed by hand (dashed). Right: √(LH) times that distance "
    "for more and more tokens, and the law (dashed).",
    quick=Shapes(),
)
def adamw(s: Shapes) -> Figure:
    """Scatter, training, crowds."""
    figure, ((first, middle, last),) = new_figure(1, 3, width=3.5, height=3.0)
    theory = AveragedHeads(SCORE, VALUE, 0.5, 0.5)
    tokens = 0.7 * np.random.default_rng(0).standard_normal((max(*s.sizes, 6), 3))
    _over_shapes(first, s, theory, tokens[:6])
    _training(middle, s)
    _over_tokens(last, s, theory, tokens)
    return figure


def _distance(s: Shapes, shape: tuple[int, int], x: np.ndarray, end: np.ndarray) -> tuple[float, float]:
    """Root mean square over the draws, and two standard errors of it."""
    model = ResidualHeads(SCORE, VALUE, *shape)
    noise = np.random.default_rng((s.seed, *shape)).standard_normal((s.draws, *shape, 2, 3, 3))
    last = jax.jit(jax.vmap(lambda weights: model.hidden(weights, x)[-1]))(np.array([SCORE, VALUE]) + 0.5 * noise)
    mean, error = mean_and_error(np.sum((np.asarray(last) - end) ** 2, axis=-1).mean(axis=-1))
    root, spread = root_and_error(float(mean), float(error))
    return root, 2 * spread


def _over_shapes(axes: Axes, s: Shapes, theory: AveragedHeads, x: np.ndarray) -> None:
    end, depth = theory.last_tokens(x), np.array(s.depths, float)
    for k, heads in enumerate(s.heads):
        size, error = np.array([_distance(s, (layers, heads), x, end) for layers in s.depths]).T
        law = [theory.fluctuation(x, np.zeros(3), n, heads, draws=4000, gradient=False).tokens for n in s.depths]
        axes.errorbar(depth * heads, size, error, fmt="os^v"[k % 4], ms=3, color=COLOURS[k], label=f"H = {heads}")
        theory_line(axes, depth * heads, law, "law" if k == 0 else None)
        if k == 0:
            bound = 1 / depth + depth ** (-1 / 3) * heads**-0.5
            constant = law[0] * np.sqrt(depth[0] * heads)
            axes.plot(depth * heads, constant * bound, ":", color=COLOURS[-1], label="paper's order")
    axes.set(xlabel="$L \\cdot H$", ylabel="distance from the flow", title="scatter", xscale="log", yscale="log")
    axes.legend()


def _training(axes: Axes, s: Shapes) -> None:
    steps = np.arange(21)
    for k, shape in enumerate(s.trained):
        model = ResidualHeads(np.zeros((2, 2)), np.zeros((2, 2)), *shape, 0.7, 0.7)
        weights = 0.7 * np.random.default_rng((s.seed, *shape)).standard_normal((s.runs, *shape, 2, 2, 2))
        losses = jax.jit(jax.vmap(lambda w, model=model: model.train(FOUR, TARGET, w).losses))(weights)
        axes.semilogy(steps, np.mean(losses, axis=0), color=COLOURS[k], lw=2.2, label=f"L = {shape[0]}, H = {shape[1]}")
        theory_line(axes, steps, train_by_hand(FOUR, TARGET, weights, 20, AdamW())[0].mean(axis=1), None)
    axes.set(xlabel="steps of AdamW", ylabel="mean loss", title="training")
    axes.legend()


def _over_tokens(axes: Axes, s: Shapes, theory: AveragedHeads, tokens: np.ndarray) -> None:
    shape, found, law = (8, 8), [], []
    for n in s.sizes:
        x = tokens[:n]
        found.append(_distance(s, shape, x, theory.last_tokens(x)))
        law.append(theory.fluctuation(x, np.zeros(3), *shape, draws=2000, gradient=False).tokens)
    grown = np.sqrt(shape[0] * shape[1])
    size, error = grown * np.array(found).T
    axes.errorbar(s.sizes, size, error, fmt="o", ms=3, color=COLOURS[0], label=f"L = {shape[0]}, H = {shape[1]}")
    theory_line(axes, s.sizes, grown * np.array(law), "law")
    axes.set(xlabel="tokens $n$", ylabel="$\\sqrt{LH}$ · distance of a token", title="more tokens", xscale="log")
    axes.set_xticks(s.sizes, [f"{n}" for n in s.sizes], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_ylim(0, None)
    axes.legend()
