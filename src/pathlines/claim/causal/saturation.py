"""Deep decoders: where linear theory ends.

Kinetic theory for Transformers and the lost-in-the-middle phenomenon, arXiv:2605.09213, bounds its remainder by
e^{Ct}/N; what happens beyond is measured.
"""

from __future__ import annotations

from pathlines.claim.base import Evidence, claim, known
from pathlines.claim.causal.decoding import (
    ERRORS,
    POSITION,
    Decoder,
    closed_curve,
    measured,
    nearest,
    profile_of,
    remainder,
    source_positions,
)
from pathlines.claim.causal.vocabulary import Deep, Length, Prompts, Slope
from pathlines.claim.tolerance import at_most, standard_errors
from pathlines.foundation.papers import KINETIC

# --- L18


class Saturated(Decoder):
    """A depth at which linear theory overshoots."""

    slope: Slope = 4.0
    depth: Deep = 3.0
    n: Length = 256
    prompts: Prompts = 8000


def simulate_saturation(s: Saturated) -> Evidence:
    """S_N over the closed form; the largest, with five standard errors."""
    values, errors, curve = measured(s, s.n, s.seed)
    places, closed = nearest(s), profile_of(s)(source_positions(s))
    ratio, error = values[places] / closed, errors[places] / closed
    return Evidence({"ratio": ratio, "below": (ratio + ERRORS * error).max()}, {"ratio": error}, curves=(curve,))


def predict_saturation(s: Saturated) -> Evidence:
    """Reference values at one setting; below one wherever e^{2x}/N is above 0.05.

    They are means of 60,000 prompts of a program of its own (the derivative goes forwards along three starts,
    not backwards), ± 0.006; 0.83, 0.80 and 0.85 were quoted before, ± 0.02.
    """
    setting = {"beta": 1.0, "slope": 4.0, "vocabulary": 8, "depth": 3.0, "n": 256, "sources": (0.25, 0.5, 0.75)}
    reference = known({"ratio": [0.800, 0.805, 0.797]}, s, setting)
    small = "e^(2x)/N is below 0.05: nothing saturates; a larger depth"
    return Evidence(
        {**reference.values, "below": 1.0},
        {"ratio": 0.006},
        curves=(closed_curve(s),),
        source="reference value; bound",
        undecided={"below": small} if remainder(s, s.n) < 0.05 else {},
    )


claim(
    "causal/L18",
    KINETIC,
    "deep decoders saturate",
    "When e^{2x}/N is not small the closed form overshoots: clusters have formed and the response saturates (at 80 % "
    "of it for β=1, λ=4, t=3, N=256, at all three positions).",
    where="derived; outside the paper's range of times",
    models=("causal-decoder",),
    quick=Saturated(),
    full=Saturated(prompts=60_000),
    within={
        "ratio": standard_errors(4.0, "standard errors of both, the reference's being 0.006"),
        "below": at_most("five standard errors are in the measured number"),
    },
    simulate=simulate_saturation,
    predict=predict_saturation,
    axes=POSITION,
    note="0.85 was quoted for σ₀ = 3/4; 0.797 ± 0.006 by an independent program and the measured ratio agree that it "
    "is 0.80.",
)
