"""Training through ReLU pieces, with and without the surface term."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from pathlines.claim.transport.likelihood_gradients import Trained, entropies, plain_log_prob
from pathlines.draw.gallery import picture
from pathlines.draw.style import COLOURS, new_figure
from pathlines.foundation.papers.transport import NORMALIZING_FLOWS
from pathlines.transport.euclid.training import EVERY, corrected


@picture(
    "transport/likelihood-gradients",
    NORMALIZING_FLOWS,
    "Relative entropy of a ridge flow to samples of target B while the likelihood is climbed, for several draws of the "
    "samples. The plain gradient drops what happens at the hinges and makes the flow worse; with the surface term it "
    "improves, until it overfits.",
    quick=Trained(steps=120, runs=2),
    full=Trained(n=5000, steps=400),
)
def likelihood_gradients(s: Trained) -> Figure:
    """KL over steps."""
    figure, ((panel,),) = new_figure(1, 1, width=4.6, height=3.2)
    kinds = (("plain gradient", plain_log_prob, COLOURS[1], "--"), ("corrected", corrected(s.width), COLOURS[0], "-"))
    for name, log_prob, colour, style in kinds:
        for run in range(s.runs):
            found = entropies(s, log_prob, run)[0]
            steps = np.minimum(EVERY * np.arange(len(found)), s.steps)
            panel.plot(steps, found, style, color=colour, label=name if run == 0 else None)
    panel.set(xlabel="steps of Adam", ylabel="KL(target‖flow)", yscale="log", ylim=(0.03, 1.2))
    panel.set_yticks((0.05, 0.1, 0.2, 0.5, 1.0), ("0.05", "0.1", "0.2", "0.5", "1"))
    panel.minorticks_off()
    panel.legend()
    return figure
