"""The dual filter: whom a place listens to, and how layers approach the exact filters (arXiv:2605.15608; derived)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.draw.gallery import picture
from pathlines.draw.style import COLOURS, HEAT, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.followups import DUAL_FILTER
from pathlines.foundation.setting import Setting, means
from pathlines.limit.followups.filtering import bayes, kalman
from pathlines.model.followups.dual_filter import DualFilter
from pathlines.numerics.sources import HiddenMarkov, StateSpace


class Filters(Setting):
    """Two states that are rarely left, and a state on a line."""

    length: Annotated[of.Count, means("tokens", "T")] = 24
    stay: Annotated[of.Share, means("probability that the hidden state stays")] = 0.92
    clear: Annotated[of.Share, means("probability that a token shows the hidden state")] = 0.7
    layers: Annotated[of.Counts, means("numbers of layers", "L")] = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)
    seed: of.Seed = 1


def _chain(s: Filters) -> tuple[HiddenMarkov, np.ndarray]:
    """Two states, three tokens of which the last is the same for both, and a sequence."""
    seen, none = 0.8 * s.clear, 0.2
    emission = [[seen, 0.8 - seen, none], [0.8 - seen, seen, none]]
    rng, leave = np.random.default_rng(s.seed), 1 - s.stay
    hidden = np.cumsum(rng.random(s.length) < leave) % 2
    tokens = [rng.choice(3, p=emission[x]) for x in hidden]
    return HiddenMarkov([[s.stay, leave], [leave, s.stay]], emission), np.array(tokens)


@picture(
    "followups/dual-filter",
    DUAL_FILTER,
    "Tokens of a hidden chain of two states (0 and 1 hint at a state, 2 says nothing). Left: how strongly each place "
    "listens to each token, the norm of the weights that the control problem gives. Middle: the probability of state 1 "
    "after each token, from one layer, from four and from as many as tokens, beside that of Bayes (dashed). Right: "
    "largest distance to the exact filter over layers, for the chain and, relative to the largest mean, for a linear "
    "Gaussian source beside Kalman's filter: measures become exact after as many layers as "
    "tokens, gradient layers converge geometrically.",
    quick=Filters(),
)
def dual_filter(s: Filters) -> Figure:
    """Attention, measures, convergence."""
    figure, ((first, middle, last),) = new_figure(1, 3, width=3.5, height=3.0)
    source, tokens = _chain(s)
    truth, places = bayes(source, tokens), np.arange(s.length + 1)
    attention = DualFilter(source).predict(tokens).attention
    shown = first.imshow(attention[1:], cmap=HEAT, extent=(0.5, s.length + 0.5, s.length + 0.5, 0.5), aspect="auto")
    first.grid(visible=False)
    figure.colorbar(shown, ax=first, label="weight |U|")
    first.set(xlabel="token that is heard", ylabel="after token", title="attention")
    for k, layers in enumerate((1, 4, s.length)):
        said = DualFilter(source, layers).predict(tokens).states[:, 1]
        middle.plot(places, said, color=COLOURS[k], lw=1.2, label=f"L = {layers}")
    theory_line(middle, places, truth[:, 1], "Bayes")
    middle.set(xlabel="tokens read", ylabel="probability of state 1", title="hidden state", ylim=(0, 1))
    middle.legend()
    _convergence(last, s, source, tokens, truth)
    return figure


def _convergence(axes: Axes, s: Filters, source: HiddenMarkov, tokens: np.ndarray, truth: np.ndarray) -> None:
    """Distances to Bayes and to Kalman over layers."""
    line = StateSpace([[s.stay]], [[1.0]], [[1 - s.stay**2]], [[1.0]])
    values = (tokens[:, None] - 1.0).astype(float)
    means_of = kalman(line, values).means
    scale = np.abs(means_of).max() or 1.0
    chain = [np.abs(DualFilter(source, n).predict(tokens).states - truth).max() for n in s.layers]
    gauss = [np.abs(DualFilter(line, n).predict(values).states - means_of).max() / scale for n in s.layers]
    for k, (label, found) in enumerate((("hidden chain", chain), ("linear Gaussian", gauss))):
        axes.semilogy(s.layers, np.maximum(found, 1e-17), "os"[k] + "-", ms=3, color=COLOURS[k], label=label)
    axes.set(xlabel="layers $L$", ylabel="distance to the exact filter", title="convergence")
    axes.legend()
