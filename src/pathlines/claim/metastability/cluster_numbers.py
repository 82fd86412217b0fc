"""How many clusters: about √(2β), from √(3β/2) maxima of the potential of uniform tokens (arXiv:2410.23228)."""

from __future__ import annotations

from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.metastability.mode_selection import SHARES, disagreement
from pathlines.claim.metastability.quiet_runs import QuietStarts, counts, saturation, start_moments
from pathlines.claim.slopes import log_slope
from pathlines.claim.tolerance import absolute, standard_errors
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import METASTABLE_EMERGENCE
from pathlines.foundation.setting import Setting, means
from pathlines.limit.metastability.linear_phase import mean_maxima
from pathlines.limit.metastability.quiet_starts import maxima_of_starts
from pathlines.model.base import Snapshot
from pathlines.model.metastability.circle import CircleAttention
from pathlines.observable.patterns import potential_modes


class ClusterNumbers(QuietStarts):
    """Numbers of clusters over β."""

    runs: of.Runs = 8
    points: Annotated[of.Count, means("quantile points that stand for the tokens")] = 300
    noisy: Annotated[of.Count, means("Fourier modes that carry noise")] = 50
    betas: of.Betas = (4.0, 25.0)
    tokens: of.ManyTokens = 10000.0


def _means(s: ClusterNumbers) -> tuple[np.ndarray, np.ndarray]:
    """Mean number of maxima, and its error, for each β, at half the saturation time."""
    found = [counts(CircleAttention(b), s, s.tokens, [saturation(b, s.tokens) / 2])[:, 0] for b in s.betas]
    return mean_and_error(found, axis=1, unit=1)


def simulate_numbers(s: ClusterNumbers) -> Evidence:
    """Maxima of the potential when the pattern has just formed."""
    mean, error = _means(s)
    curve = Curve("quiet starts", s.betas, mean, error)
    return Evidence({"maxima": mean, "rice": mean}, {"rice": error}, curves=(curve,))


def predict_numbers(s: ClusterNumbers) -> Evidence:
    """Another solver from the same starts, and Rice's formula in the linear phase, at the same times."""
    half = lambda b: saturation(b, s.tokens) / 2  # noqa: E731
    starts = start_moments(s, s.tokens)
    again = [float(maxima_of_starts(b, starts, [half(b)]).mean()) for b in s.betas]
    fine = np.geomspace(min(s.betas), max(s.betas), 40)
    curves = (
        Curve("another solver", s.betas, again),
        Curve("linear phase (Rice)", fine, [float(mean_maxima(b, half(b))) for b in fine]),
        Curve("√(2β)", fine, np.sqrt(2 * fine)),
    )
    values = {"maxima": again, "rice": [float(mean_maxima(b, half(b))) for b in s.betas]}
    return Evidence(values, {"maxima": disagreement(s.runs)}, curves=curves, source="another solver; closed form")


claim(
    "metastability/S5",
    METASTABLE_EMERGENCE,
    "clusters grow like √β",
    "From N i.i.d. uniform tokens on the circle the pattern that forms has about √(2β) clusters; on average the number "
    "of maxima of the potential is √(Σk⁴gₖ²e^{2λₖt}/Σk²gₖ²e^{2λₖt}).",
    where="number of clusters of order √β; constants derived",
    models=("circle",),
    quick=ClusterNumbers(runs=120),
    full=ClusterNumbers(runs=400, points=500, noisy=60, betas=(4.0, 9.0, 25.0, 81.0)),
    within={
        "maxima": standard_errors(5.0, SHARES),
        "rice": absolute(0.1, "5 standard errors of independent starts; the first mergers", errors=5.0),
    },
    simulate=simulate_numbers,
    predict=predict_numbers,
    blind={"rice": "the first mergers lower the mean by 0.1, 1 % at β = 25 and 81; `maxima` notices 1 %"},
    axes=Axes("β", "clusters", x_scale="log", y_scale="log"),
)


def simulate_exponent(s: ClusterNumbers) -> Evidence:
    """The slope of ln(number) in ln β."""
    mean, error = _means(s)
    exponent = log_slope(s.betas, mean)[0]
    return Evidence({"exponent": exponent}, curves=(Curve("quiet starts", s.betas, mean, error),))


def predict_exponent(s: ClusterNumbers) -> Evidence:
    """-1/2, as printed."""
    fine = np.geomspace(min(s.betas), max(s.betas), 20)
    return Evidence({"exponent": -0.5}, curves=(Curve("β^{−1/2}", fine, fine**-0.5),), source="printed formula")


claim(
    "metastability/ER-01",
    METASTABLE_EMERGENCE,
    "number of clusters ~ β^{−1/2} (slides)",
    "The number of clusters on the circle scales like β^{−1/2}.",
    where="conference slides of the paper",
    models=("circle",),
    quick=ClusterNumbers(),
    full=ClusterNumbers(runs=24, points=500, betas=(4.0, 9.0, 25.0, 81.0)),
    within={"exponent": absolute(0.1, "corrections to the power law and the spread of eight starts")},
    simulate=simulate_exponent,
    predict=predict_exponent,
    expected="refuted",
    corrected_by="metastability/S5",
    axes=Axes("β", "clusters", x_scale="log", y_scale="log"),
    note="β^{−1/2} is the distance between neighbours; the number is its inverse.",
)


def _first_counts(model: CircleAttention, keys: PRNGKeyArray, n: int) -> Array:
    """Maxima of the potential of n i.i.d. uniform tokens, one count a key."""

    def one(key: PRNGKeyArray) -> Array:
        state = model.initial(Sphere(2).uniform(key, n))
        return potential_modes(Snapshot(model, state, jnp.zeros(()), state))

    return jax.jit(lambda keys: jax.lax.map(one, keys))(keys)


class Maxima(Setting):
    """Maxima of the potential of uniform tokens."""

    betas: of.Betas = (9.0, 81.0)
    n: of.Tokens = 2000
    runs: of.Runs = 200
    seed: of.Seed = 0


def simulate_initial(s: Maxima) -> Evidence:
    """Independent uniform tokens, before anything moves."""
    keys = jax.random.split(jax.random.key(s.seed), s.runs)
    found = [np.asarray(_first_counts(CircleAttention(b), keys, s.n), float) for b in s.betas]
    mean, error = mean_and_error(found, axis=1, unit=1)
    return Evidence({"maxima": mean}, {"maxima": error}, curves=(Curve("uniform tokens", s.betas, mean, error),))


def predict_initial(s: Maxima) -> Evidence:
    """Rice's formula for the Gaussian limit n → ∞."""
    fine = np.geomspace(min(s.betas), max(s.betas), 40)
    curves = (
        Curve("Rice", fine, [float(mean_maxima(b)) for b in fine]),
        Curve("√(3β/2)", fine, np.sqrt(1.5 * fine)),
    )
    return Evidence({"maxima": [float(mean_maxima(b)) for b in s.betas]}, curves=curves)


claim(
    "metastability/S6",
    METASTABLE_EMERGENCE,
    "maxima of the potential of uniform tokens (derived)",
    "For N → ∞ i.i.d. uniform tokens on the circle the attention potential has on average √(Σk⁴gₖ²/Σk²gₖ²) → √(3β/2) "
    "maxima, gₖ = e^{−β}Iₖ(β): fewer than the √(2β) clusters that form.",
    where="derived; no statement in the paper",
    models=("circle",),
    quick=Maxima(),
    full=Maxima(n=4000, runs=1000),
    within={"maxima": standard_errors(5.0, "means over independent draws; the non-Gaussian part is of order β^½/n")},
    simulate=simulate_initial,
    predict=predict_initial,
    axes=Axes("β", "maxima of U", x_scale="log", y_scale="log"),
)
