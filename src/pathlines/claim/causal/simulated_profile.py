"""Simulated retrieval against theory: the profile and its shape.

Kinetic theory for Transformers and the lost-in-the-middle phenomenon, arXiv:2605.09213; finite N is derived.
"""

from __future__ import annotations

import numpy as np

from pathlines.claim.base import Curve, Evidence, claim
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
    undecided,
)
from pathlines.claim.fitting import simulated_at
from pathlines.claim.tolerance import absolute, at_least, standard_errors
from pathlines.foundation.papers import KINETIC
from pathlines.limit.causal.paths import path_profile
from pathlines.limit.causal.profile import Profile

# --- L3: extrapolated to N = ∞


def simulate_extrapolated(s: Decoder) -> Evidence:
    """2 S_2N - S_N at the same relative positions, from independent prompts."""
    (one, e1, c1), (two, e2, c2) = (measured(s, n, s.seed + n) for n in (s.n, 2 * s.n))
    i, j = nearest(s), nearest(s, 2)
    values = {"profile": 2 * two[j] - one[i]}
    return Evidence(values, {"profile": np.hypot(2 * e2[j], e1[i])}, curves=(c1, c2))


def predict_extrapolated(s: Decoder) -> Evidence:
    """S_t(σ0), with the square of e^{2x}/N left out by the extrapolation."""
    expected = profile_of(s)(source_positions(s))
    left = expected * remainder(s, s.n) ** 2 / ERRORS
    return Evidence(
        {"profile": expected}, {"profile": left}, curves=(closed_curve(s),), undecided=undecided(s, s.n, "profile")
    )


L3 = claim(
    "causal/L3",
    KINETIC,
    "the simulated profile tends to the closed form",
    "Measured by the adjoint estimator on prompts of N and 2N tokens and extrapolated to N = ∞, the retrieval profile "
    "of the last token is the closed form Σ wₙ g_{aₙ}(t,1;σ₀).",
    where="the expansion of the soft accuracy for uniform prompts",
    models=("causal-decoder",),
    quick=Decoder(prompts=12_000),
    full=Decoder(prompts=200_000),
    within={"profile": standard_errors(ERRORS, "standard errors over prompts, and (e^{2x}/N)² of the extrapolation")},
    simulate=simulate_extrapolated,
    predict=predict_extrapolated,
    axes=POSITION,
)


def predict_unnormalised_integrals(s: Decoder) -> Evidence:
    """The closed form with ŵ(n) = ∫ e^{-inθ} w dθ over the circle, as printed, 2π I_n(β)."""
    profile = profile_of(s)
    wrong = Profile(profile.weights, tuple(2 * np.pi * a for a in profile.rates), s.slope, s.depth)
    return Evidence({"profile": wrong(source_positions(s))}, {"profile": 0.0})


L3.printed_as(
    "causal/ER-01",
    "Fourier coefficients without 1/2π",
    "With Fourier coefficients as integrals over the circle, as printed, the rates are 2π n² Iₙ(β).",
    where="the definition of Fourier coefficients",
    predict=predict_unnormalised_integrals,
    quick=Decoder(prompts=1000),
    note="The paper uses ŵ_β(n) = I_n(β) and the uniform density 1, which need the normalised integral.",
)

# --- L4, L6: one long prompt length


def simulate_long_prompts(s: Decoder) -> Evidence:
    """S_N at relative positions; how far both ends lie above the lowest of them, in standard errors."""
    values, errors, curve = measured(s, s.n, s.seed)
    places = nearest(s)
    low = places[np.argmin(values[places])]
    ends = [(values[k] - values[low]) / np.hypot(errors[k], errors[low]) for k in (0, s.n - 2)]
    # σ0 ↦ A_N with i = ⌊σ0 N⌋, on a grid of 16 points for every token
    stairs = values[np.clip((np.arange(16, 16 * s.n) + 0.5) // 16, 1, s.n - 1).astype(int) - 1]
    found = {"profile": values[places], "ends": ends, "stretch": np.sum(stairs == stairs.min()) / 16}
    return Evidence(found, {"profile": errors[places]}, curves=(curve,))


def predict_paths(s: Decoder) -> Evidence:
    """Σ_n w_n N[e^{a_n t P}]_{Ni}, up to (2 + 1/4σ0) e^{2x}/N; ten standard errors between the ends and the middle.

    What is left out was measured at five settings (β from .5 to 2, slopes from 0 to 6, σ0 ≥ .03; 40,000 prompts each):
    at most .7 of this, negative everywhere, and growing like 1/σ0 because early tokens feel a mean over few.
    """
    p = profile_of(s)
    row = path_profile((s.n, s.slope), np.asarray(p.weights), np.asarray(p.rates), s.depth)
    expected = row[nearest(s)]
    return Evidence(
        {"profile": expected, "ends": [10.0, 10.0], "stretch": 1.0},
        {"profile": expected * (2 + 0.25 / source_positions(s)) * remainder(s, s.n) / ERRORS},
        curves=(Curve("paths of attention", np.arange(1, s.n) / s.n, row[:-1]), closed_curve(s)),
        undecided=undecided(s, s.n, "profile", "ends"),
    )


L4 = claim(
    "causal/L4",
    KINETIC,
    "the profile at N = 256 is the sum over paths",
    "At finite N the retrieval profile is Σ wₙ N[e^{aₙtP}]_{Ni} up to terms of relative order e^{2x}/N, "
    "and e^{2x}/i for the source i.",
    where="derived; the paper has its limit N → ∞",
    models=("causal-decoder",),
    quick=Decoder(n=256, prompts=8000, sources=(0.125, 0.25, 0.5, 0.75, 0.875)),
    full=Decoder(n=512, prompts=60_000, sources=(0.125, 0.25, 0.5, 0.75, 0.875)),
    within={
        "profile": standard_errors(ERRORS, "standard errors, and (2 + 1/4σ₀) e^{2x}/N for third cumulants"),
    },
    simulate=simulate_long_prompts,
    predict=predict_paths,
    axes=POSITION,
)

L6 = claim(
    "causal/L6",
    KINETIC,
    "the U is visible in simulation",
    "The first and the last token before the end are retrieved better than the middle of the prompt, by more than ten "
    "standard errors. With i = ⌊σ₀N⌋ the accuracy is a step function of σ₀: its minimum lies inside the prompt, on a "
    "stretch of length 1/N.",
    where="the phenomenon of the paper's title",
    models=("causal-decoder",),
    quick=Decoder(n=256, prompts=2000, sources=(0.0625, 0.125, 0.25)),
    within={
        "ends": at_least("ten standard errors of a difference"),
        "stretch": absolute(1 / 16, "one point of the grid in σ₀"),
    },
    simulate=simulate_long_prompts,
    predict=predict_paths,
    mistakes=(simulated_at("a slope {:.0%} too small", (0.5, 1.0), slope=lambda slope, size: slope * (1 - size)),),
    axes=POSITION,
)


def predict_unique(s: Decoder) -> Evidence:
    """A single σ0, as printed for A_N."""
    return Evidence({**predict_paths(s).values, "stretch": 0.0})


L6.printed_as(
    "causal/ER-03",
    "one interior minimiser at finite N",
    "For N tokens the accuracy σ₀ ↦ A_N(t,σ₀) has a unique minimiser in (0,1).",
    where="the theorem on the U-shape, its statement about A_N",
    predict=predict_unique,
    quick=Decoder(n=64, prompts=4000, sources=(0.0625, 0.125, 0.25)),
    note="True of the limit S_t; A_N is constant for σ₀ in [i/N, (i+1)/N).",
)
