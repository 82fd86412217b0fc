"""What the released scripts of arXiv:2305.05465 integrate, and what they do not.

(a) The R^d script builds four stages k₁…k₄ for each token i, with the attention matrix of the old time in all of them,
and forms stage s by adding the vector k_{s−1} of token i to every token: differences z_j − z_i do not change, so
k₁ = k₂ = k₃ = k₄ and the step is explicit Euler's. (b) The low-rank script moves tokens by x' = Vx.
Both are written here from this description.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from scipy.linalg import expm

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.clustering.emergence_direct import Cube, cube_start, softmax
from pathlines.claim.tolerance import absolute
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import EMERGENCE
from pathlines.foundation.setting import means
from pathlines.integrate import flow
from pathlines.integrate.observe import positions
from pathlines.model.clustering.rescaled import RescaledAttention
from pathlines.observable.attention import attention_matrix

ORDER = 0.02
"""What is allowed for the next order of the error."""


def frozen_stages(start: np.ndarray, value: np.ndarray, until: float, step: float) -> np.ndarray:
    """z at ``until`` by the four-stage scheme with frozen attention and one common shift a token."""
    z = start.copy()
    for k in range(round(until / step)):
        grown = z @ expm(k * step * value).T
        P = softmax(grown @ grown.T)
        z = np.stack([z[i] + _increment(z, P[i], step * value, i) for i in range(len(z))])
    return z


def _increment(z: np.ndarray, row: np.ndarray, scaled: np.ndarray, i: int) -> np.ndarray:
    """(k₁ + 2k₂ + 2k₃ + k₄)/6 of token i, each k from tokens that are all shifted by a multiple of the k before."""
    k = np.zeros_like(z[i])
    total = np.zeros_like(z[i])
    for shift, weight in ((0.0, 1.0), (0.5, 2.0), (0.5, 2.0), (1.0, 1.0)):
        shifted = z + shift * k
        k = scaled @ (row @ (shifted - shifted[i]))
        total += weight * k
    return total / 6


Steps = Annotated[tuple[of.Positive, ...], means("steps of the scheme", "h", unit="depth-time")]


class Stages(Cube):
    """The steps of the released integrator."""

    low: Annotated[float, means("lower end of the cube's sides")] = -1.0
    high: Annotated[float, means("upper end of the cube's sides")] = 1.0
    value: of.ValueMatrix = ((1.0, 0.0), (0.0, 1.0))
    until: of.Until = 1.0
    steps: Steps = (0.1, 0.05, 0.025, 0.0125, 0.00625, 0.003125)
    rtol: of.Rtol = 1e-12


def _steps(s: Stages) -> np.ndarray:
    """The steps asked for, from the largest, such that a whole number of each ends at ``until``."""
    return np.unique([s.until / max(1, round(s.until / h)) for h in s.steps])[::-1]


def _orders(errors: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Slopes between consecutive step sizes."""
    return np.diff(np.log(errors)) / np.diff(np.log(steps))


def _coarse(orders: np.ndarray) -> dict[str, str]:
    """Advice while the measured order still changes."""
    changing = len(orders) < 2 or abs(orders[-1] - orders[-2]) > ORDER
    return {"order": "smaller steps: the measured order still changes"} if changing else {}


def _solution(s: Stages, value: np.ndarray, **how: Any) -> np.ndarray:
    run = flow(RescaledAttention(value), cube_start(s), times=[s.until], record=positions, form="tokens", **how)
    return run["tokens"].values[-1]


def simulate_script(s: Stages) -> Evidence:
    """Error of the script's scheme against an adaptive 8th-order solution, for several step sizes."""
    value = np.asarray(s.value, float)
    exact = _solution(s, value, method="dop853", rtol=s.rtol)
    steps = _steps(s)
    errors = np.array([np.abs(frozen_stages(cube_start(s), value, s.until, h) - exact).max() for h in steps])
    orders = _orders(errors, steps)
    return Evidence({"order": orders[-1:]}, curves=(Curve("script", steps, errors),), undecided=_coarse(orders))


def predict_fourth(s: Stages) -> Evidence:
    """What the name RK4 promises."""
    steps = _steps(s)
    return Evidence(
        {"order": np.full(1, 4.0)},
        curves=(Curve("order 4", steps, 0.1 * (steps / steps[0]) ** 4),),
        source="the name of the scheme",
    )


def simulate_euler(s: Stages) -> Evidence:
    """The engine's explicit Euler at the same step sizes."""
    value = np.asarray(s.value, float)
    exact = _solution(s, value, method="dop853", rtol=s.rtol)
    steps = _steps(s)
    states = [_solution(s, value, method="euler", step=float(h)) for h in steps]
    orders = _orders(np.array([np.abs(z - exact).max() for z in states]), steps)
    return Evidence(
        {"tokens": states[0].ravel(), "order": orders[-1:]},
        curves=(Curve("Euler (engine)", steps, [np.abs(z - exact).max() for z in states]),),
        undecided=_coarse(orders),
    )


def predict_script(s: Stages) -> Evidence:
    """The script's scheme, which is of order one."""
    value, steps = np.asarray(s.value, float), _steps(s)
    tokens = frozen_stages(cube_start(s), value, s.until, steps[0])
    return Evidence(
        {"tokens": tokens.ravel(), "order": np.ones(1)},
        curves=(Curve("order 1", steps, 0.1 * steps / steps[0]),),
        source="the script's scheme",
    )


STEPS = Axes("step size", "largest error of a coordinate", x_scale="log", y_scale="log")

ER_08B = claim(
    "clustering/ER-08b",
    EMERGENCE,
    "integrator of the released R^d script is Euler's (derived)",
    "With attention frozen over the step and one common vector added to all tokens, the four stages of the script are "
    "equal: its scheme is explicit Euler, to rounding, and has order one.",
    where="derived; on the released script behind the figures of tokens in R^d",
    models=("rescaled",),
    quick=Stages(),
    within={
        "tokens": absolute(1e-14, "rounding of 10 steps on coordinates of size one"),
        "order": absolute(ORDER, "the next order of the error, between the two smallest steps"),
    },
    simulate=simulate_euler,
    predict=predict_script,
    axes=STEPS,
)

ER_08B.printed_as(
    "clustering/ER-08a",
    "integrator of the released R^d script",
    "The four-stage scheme of the released R^d script integrates the attention dynamics with order four.",
    where="released script behind the figures of tokens in R^d",
    within={"order": absolute(0.5, "half of one order, between the two smallest steps")},
    simulate=simulate_script,
    predict=predict_fourth,
)


class LowRankScript(Cube):
    """Tokens on a line, as in the released script."""

    n: of.Tokens = 40
    d: of.Dimension = 1
    low: Annotated[float, means("lower end of the cube's sides")] = -1.0
    high: Annotated[float, means("upper end of the cube's sides")] = 1.0
    until: of.Until = 1.5
    records: of.Records = 16
    rtol: of.Rtol = 1e-10


def simulate_attention(s: LowRankScript) -> Evidence:
    """Rescaled tokens and attention of the true dynamics at the end."""
    value = np.eye(s.d)
    times = np.linspace(0, s.until, s.records)
    record = (positions, attention_matrix)
    run = flow(
        RescaledAttention(value), cube_start(s), times=times, record=record, method="dop853", rtol=s.rtol, form="tokens"
    )
    z, start = run["tokens"].values, cube_start(s)
    return Evidence(
        {"tokens": z[-1].ravel(), "attention": run["attention_matrix"].values[-1].ravel()},
        curves=(Curve("attention dynamics", times, np.abs(z - start).max(axis=(1, 2))),),
        runs=(run,),
    )


def predict_linear(s: LowRankScript) -> Evidence:
    """x' = Vx: z never moves."""
    start = cube_start(s)
    grown = start @ expm(s.until * np.eye(s.d)).T
    return Evidence(
        {"tokens": start.ravel(), "attention": softmax(grown @ grown.T).ravel()},
        curves=(Curve("x' = Vx", np.array([0.0, s.until]), np.zeros(2)),),
        source="the script's equation",
    )


claim(
    "clustering/ER-08c",
    EMERGENCE,
    "dynamics of the released low-rank-attention script",
    "Moving tokens by x' = Vx, without attention, as the script behind the low-rank figure does, gives the tokens and "
    "the attention matrix of the attention dynamics.",
    where="released script behind the figure of low-rank attention",
    models=("rescaled",),
    quick=LowRankScript(),
    within={
        "tokens": absolute(1e-3, "far above the error of the script's time step (10⁻⁶)"),
        "attention": absolute(1e-3, "far above the error of the script's time step (10⁻⁶)"),
    },
    simulate=simulate_attention,
    predict=predict_linear,
    expected="refuted",
    corrected_by="clustering/CL-33",
    axes=Axes("depth-time t", "largest displacement of z"),
    note="In d = 1 the limit of P is the same 0/1 matrix, because attention keeps the order of tokens; neither the way "
    "there nor the tokens are.",
)
