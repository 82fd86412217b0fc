"""Your own paper, checked: from a sentence of an abstract to a claim with a verdict and a figure.

The abstract (Quantitative Clustering in Mean-Field Transformer Models, arXiv:2504.14697) says: where attention is
nearly uniform, a law of tokens with a density collapses to one point exponentially fast. It does not say how fast. A
page of algebra does: tokens arrive at rate e^β, those by the antipode leave it at rate e^{-β}, so on the circle

    W₂ ~ e^{-rt},   r = min(e^β, e^{-β}/2)   (derived).

Afterwards this file is a claim like any other:  pathlines --load 10_your_own_paper.py verify mine/rate --set beta=.3
"""

from typing import Annotated

import numpy as np

import pathlines as pl
from pathlines.attention import UnnormalisedAttention
from pathlines.claim import Axes, Curve, Evidence, LastSimulation, claim, evaluate, relative
from pathlines.draw import claim_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import Paper
from pathlines.foundation.setting import Setting, means

PAPER = Paper(
    "mine2025", "Quantitative Clustering in Mean-Field Transformer Models", ("Chen", "Lin"), "2504.14697", 2025
)


class Collapse(Setting):  # what can be changed, with bounds and a meaning: options, tables and forms are made from it
    beta: of.Beta = 0.0
    tilt: Annotated[of.Share, means("density (1 + c cos θ)/2π at the start", "c")] = 0.5
    n: of.Tokens = 10_000
    times: of.Times = (6.0, 8.0)


def simulate(s: Collapse) -> Evidence:  # the engine: tokens at the quantiles, because random ones would hide the rate
    fine = np.linspace(-np.pi, np.pi, 40 * s.n)
    angles = np.interp((np.arange(s.n) + 0.5) / s.n, (fine + s.tilt * np.sin(fine)) / (2 * np.pi) + 0.5, fine)
    model = pl.SelfAttention(s.beta, attention=UnnormalisedAttention())
    tokens = np.column_stack([np.cos(angles), np.sin(angles)])
    run = pl.flow(model, tokens, times=np.linspace(0, s.times[-1], 37), record="variance", rtol=1e-8)
    w2 = np.sqrt(2 - 2 * np.sqrt(1 - run["variance"].values))  # W₂² = 2 - 2|mean|
    rate = -np.diff(np.log(np.interp(s.times, run.time, w2))) / np.diff(s.times)
    return Evidence({"rate": rate}, curves=(Curve("tokens", run.time, w2),), runs=(run,))


def predict(s: Collapse) -> Evidence:  # the theory, in another way: no line of it is shared with the engine
    rate = min(np.exp(s.beta), np.exp(-s.beta) / 2)
    lone = np.exp(s.beta) * np.log(s.n)  # when one token is left by the antipode: then all arrive at rate e^β
    early = {"rate": f"more tokens: the last leaves the antipode at t ≈ {lone:.2g}"} if s.times[-1] > lone else {}
    line = Curve("slope of theory", np.linspace(0, s.times[-1], 9), np.exp(-rate * np.linspace(0, s.times[-1], 9)))
    return Evidence({"rate": np.full(len(s.times) - 1, rate)}, curves=(line,), undecided=early)


RATE = claim(
    "mine/rate",
    PAPER,
    "how fast a law on the circle collapses",
    "W₂(μ_t, δ) ~ e^{-rt} with r = min(e^β, e^{-β}/2).",
    where="derived; the abstract says exponentially",
    models=("sa",),
    quick=Collapse(),
    within={"rate": relative(0.02, "the next term is e^{-2r·6} of the rate at t = 6")},
    simulate=simulate,
    predict=predict,
    axes=Axes("depth-time t", "distance W₂ to the point of collapse", y_scale="log"),
    marks=("abstract", "derived"),
)

if __name__ == "__main__":
    pl.enable_float64()
    last = LastSimulation()  # so that a claim and its variant are simulated once
    for beta in (0.0, 0.3):
        found = evaluate(RATE, changes={"beta": beta}, last=last)
        (rate,) = found.checks
        print(f"β = {beta:g}: rate {rate.measured[0]:.4f}, theory {rate.expected[0]:.4f}: {found.verdict}")
    claim_figure(found, RATE.axes).savefig("rate.pdf")
    hasty = RATE.printed_as(
        "mine/hasty",
        "a mistake, to see that the claim would notice",
        "The rate is e^{-β}: the contraction at the antipode, taken for that of the distance.",
        predict=lambda s: Evidence({"rate": np.array([np.exp(-s.beta)])}),
        where="nowhere",
    )
    print(f"the same with a rate twice as large: {evaluate(hasty, changes={'beta': 0.3}, last=last).verdict}")
