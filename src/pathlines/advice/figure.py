"""The figure of an advice: mean cosine with spread, what causes it, rank and norms, attention."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pathlines.advice.advice import Advice
from pathlines.advice.gradients import NAMES, MeasuredGradients
from pathlines.advice.simulate import Simulated
from pathlines.draw.style import COLOURS, MUTED, THEORY, band, house_style, new_figure
from pathlines.limit.architecture.prediction import CAUSES


def advice_figure(
    advice: Advice, simulated: Simulated | None = None, measured: MeasuredGradients | None = None
) -> Figure:
    """Four panels over the layers, and two of gradients where they are predicted."""
    with house_style():
        rows = 2 if advice.gradients is None else 3
        figure, ((cosine, causes), (stream, attention), *below) = new_figure(rows, 2, width=4.3, height=2.7)
        _cosine(cosine, advice, simulated)
        _causes(causes, advice)
        _stream(stream, advice)
        _attention(attention, advice)
        for axes in (cosine, causes, stream, attention):
            axes.set_xlabel(r"layer $\ell$")
            axes.set_xlim(0, len(advice.prediction.mean_cosine) - 1)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        for norms, matrices in below:
            _gradients(norms, matrices, advice, measured)
        return figure


def _gradients(norms: Axes, matrices: Axes, advice: Advice, measured: MeasuredGradients | None) -> None:
    """‖g_ℓ‖ with the spread of seeds, and ‖∂W‖ by kind over layers."""
    found = advice.gradients
    assert found is not None
    layers = np.arange(len(found.stream))
    factor = np.exp(found.seed_spread)
    norms.plot(layers, found.stream, color=COLOURS[0], label="predicted ± s.d. over seeds")
    norms.fill_between(layers, found.stream / factor, found.stream * factor, color=COLOURS[0], alpha=0.22, lw=0)
    if measured is not None:
        error = np.exp(np.array(measured.spread))
        mean = np.array(measured.stream)
        norms.errorbar(
            layers, mean, (mean - mean / error, mean * error - mean), fmt="o", ms=3, mfc="white", lw=0.8,
            color=COLOURS[1], label=f"{measured.seeds} random modules", zorder=6, clip_on=False,
        )  # fmt: skip
    norms.set(title="gradient norm of the stream", yscale="log", xlabel=r"layer $\ell$")
    norms.legend(loc="best")
    for k, (name, values) in enumerate(found.matrices.items()):
        own = np.arange(1, len(values) + 1)
        matrices.plot(own, values, color=COLOURS[k % len(COLOURS)], label=NAMES[name])
        if measured is not None:
            matrices.plot(own, measured.matrices[name], "o", ms=2.5, color=COLOURS[k % len(COLOURS)])
    positive = all(np.all(values > 0) for values in found.matrices.values())
    matrices.set(title="gradient norms of matrices", yscale="log" if positive else "linear", xlabel=r"layer $\ell$")
    matrices.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=7.5)
    for axes in (norms, matrices):
        axes.set_xlim(0, len(found.stream) - 1)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _cosine(axes: Axes, advice: Advice, simulated: Simulated | None) -> None:
    found = advice.prediction
    layers = np.arange(len(found.mean_cosine))
    band(axes, layers, found.mean_cosine, found.spread, COLOURS[0], "predicted ± s.d. over seeds", multiple=1.0)
    if simulated is not None:
        axes.errorbar(
            np.arange(len(simulated.mean)), simulated.mean, simulated.spread, fmt="o", ms=3, mfc="white", lw=0.8,
            color=COLOURS[1], label=f"{simulated.seeds} random models ± s.d.", zorder=6, clip_on=False,
        )  # fmt: skip
    if advice.target is not None:
        axes.axhline(advice.target.cosine, color=MUTED, ls=":", lw=1)
        axes.plot(
            [advice.target.layer],
            [advice.target.cosine],
            "v",
            color=THEORY,
            ms=6,
            label="target",
            zorder=7,
            clip_on=False,
        )
    axes.set(title="mean cosine of pairs of tokens", ylim=(min(-0.02, float(found.mean_cosine.min())), 1.02))
    axes.legend(loc="best")


def _causes(axes: Axes, advice: Advice) -> None:
    """Cumulative contributions; their sum is the mean cosine."""
    totals = np.cumsum(advice.prediction.causes, axis=0)
    layers = np.arange(len(totals))
    for k, (cause, colour) in enumerate(zip(CAUSES, COLOURS, strict=False)):
        if np.any(totals[:, k] != 0):
            axes.plot(layers, totals[:, k], color=colour, label=cause)
    axes.axhline(0, color=MUTED, lw=0.8)
    low, high = axes.get_ylim()
    axes.set(title="what moved it, summed over layers", ylim=(low, high + 0.2 * (high - low)))  # room for the legend
    axes.legend(loc="upper left", ncols=4, columnspacing=0.8, handlelength=1.0, handletextpad=0.5, fontsize=7.5)


def _stream(axes: Axes, advice: Advice) -> None:
    found = advice.prediction
    layers = np.arange(len(found.effective_rank))
    axes.plot(layers, found.effective_rank, color=COLOURS[0])
    axes.set_ylim(0, None)
    axes.set_ylabel("effective rank", color=COLOURS[0])
    axes.set_title("effective rank and size of the stream")
    other = axes.twinx()
    other.plot(layers, found.residual_rms, color=COLOURS[1])
    other.set_ylabel("RMS of the stream", color=COLOURS[1])
    other.spines["right"].set_visible(True)
    other.grid(False)
    if found.residual_rms.max() > 30 * found.residual_rms.min():
        other.set_yscale("log")
    else:
        other.set_ylim(0, 1.05 * found.residual_rms.max())


def _attention(axes: Axes, advice: Advice) -> None:
    found = advice.prediction
    layers = np.arange(len(found.attention_entropy)) + 1
    axes.plot(layers, found.attention_entropy, color=COLOURS[0])
    axes.set_ylim(0, 1.1 * float(found.attention_entropy.max()) or 1.0)
    axes.set_ylabel("entropy (nats)", color=COLOURS[0])
    axes.set_title("attention: entropy and spread of logits")
    other = axes.twinx()
    other.plot(layers, found.logit_std, color=COLOURS[1])
    other.set_ylabel("logit s.d. in a row", color=COLOURS[1])
    other.spines["right"].set_visible(True)
    other.grid(False)
    other.set_ylim(0, 1.1 * float(found.logit_std.max()) or 1.0)
