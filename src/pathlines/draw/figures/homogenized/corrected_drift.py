"""Which correction makes the ODE second order (Homogenized Transformers, arXiv:2604.01978)."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from pathlines.claim.homogenized.direct import fixed_flow, fixed_layers
from pathlines.claim.slopes import log_slope
from pathlines.domain import Sphere
from pathlines.draw.gallery import picture
from pathlines.draw.style import COLOURS, MUTED, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting

INKS = {"none": MUTED, "paper": COLOURS[1], "full": COLOURS[0]}
NAMES = {
    "none": r"$b$",
    "paper": r"$b - \frac{\eta}{2}\nabla_b b$ (printed)",
    "full": r"$b - \frac{\eta}{2}\nabla_b b - \eta\langle x,B\rangle b$ (corrected)",
}
MARKS = {"none": "s", "paper": "o", "full": "D"}


class FixedHead(Setting):
    """One head for all layers, and its steps."""

    n: of.Tokens = 4
    d: of.Dimension = 3
    beta: of.Beta = 1.0
    steps: of.Steps = (0.1, 0.05, 0.025, 0.0125)
    until: of.Until = 1.0
    rtol: of.Rtol = 1e-10
    seed: of.Seed = 0


def _errors(corrector: str, update: str, s: FixedHead) -> list[float]:
    """Largest distance between chain and flow at the grid times t = ηℓ ≤ until, one fixed head."""
    value, score = np.random.default_rng(s.seed).standard_normal((2, s.d, s.d)) / np.sqrt(s.d)
    head, start = (value, score, s.beta), np.asarray(Sphere(s.d).sines(s.n))
    found = []
    for eta in s.steps:
        depth = round(s.until / eta)
        flowed = fixed_flow(start, head, eta, corrector, update, eta * np.arange(depth + 1), s.rtol)
        found.append(float(np.linalg.norm(fixed_layers(start, head, eta, depth, update) - flowed, axis=-1).max()))
    return found


def _panel(axes: Axes, update: str, correctors: tuple[str, ...], s: FixedHead) -> None:
    for corrector in correctors:
        errors = _errors(corrector, update, s)
        label = f"{NAMES[corrector]}, slope {log_slope(s.steps, errors)[0]:.2f}"
        axes.loglog(s.steps, errors, color=INKS[corrector], marker=MARKS[corrector], ms=4.5, mfc="white", label=label,
                    lw=3.4 if corrector == "none" else 1.6)  # fmt: skip
    axes.set(xlabel=r"step $\eta$", ylabel=r"largest error at $t = \eta\ell \leq$" + f" {s.until:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks(s.steps[:4], [f"{eta:g}" for eta in s.steps[:4]])
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2))
    axes.grid(True, which="minor", color=MUTED, alpha=0.12)


@picture(
    "homogenized/corrected-drift",
    HOMOGENIZED,
    "Distance of a chain with one fixed head from dX/dt = D(X), for three drifts. Left, the chain of the paper, N(x + "
    "ηB): the printed correction is still of first order, because normalising divides the step by 1 + η⟨x,B⟩; with "
    "that term the error is of second order. Right, the tangent chain N(x + ηP_xB), for which the printed drift is "
    "right.",
    quick=FixedHead(),
    full=FixedHead(steps=(0.2, 0.1, 0.05, 0.025, 0.0125, 0.00625, 0.003125)),
)
def corrected_drift(s: FixedHead) -> Figure:
    """Ambient update on the left, tangent on the right."""
    figure, ((left, right),) = new_figure(1, 2, width=4.0, height=3.7, sharey=True)
    _panel(left, "ambient", ("none", "paper", "full"), s)
    _panel(right, "tangent", ("none", "paper"), s)
    left.set_title(f"ambient update, n = {s.n}, d = {s.d}")
    right.set_title(r"tangent update $\mathrm{N}(x + \eta P_xB)$")
    return figure
