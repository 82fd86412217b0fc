"""How far N(0, 1) moved by a piecewise linear map is from its target: both relative entropies and total variation.

The log-density of the flow jumps at every kink, so quadrature panels end at all of them; a rule that does not know
them reports numbers that are wrong by factors. In the coordinate z of the exact map y = T(z) the flow's point is ζ =
f^{-1}(y), and

    KL(target‖flow) = ∫ φ(z) [(ζ² - z²)/2 + log f'(ζ) - L(z)] dz,       L = log T',

with ζ = z at the knots. Tails go on to |z| = 37.5, where φ ends in double precision. KL(target‖flow) is finite if and
only if the target has a second moment, because every schedule keeps Gaussian tails [derived]: it is reported as ∞
otherwise.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import ndtr

from pathlines.transport.euclid.fuse import RidgeMap
from pathlines.transport.euclid.quantile import FARTHEST, LineLaw, log_slope, quantile_map
from pathlines.transport.euclid.schedule import EuclideanSchedule

ENDS = 37.5
"""Where φ is 10^{-306}."""


HALVINGS, TURN = 12, 0.004
"""How often a panel is halved, and how long one may be where the densities cross."""


class LineCertificate(msgspec.Struct, frozen=True):
    """KL(target‖flow), KL(flow‖target), TV, and the difference of the first to a rule with half the nodes."""

    kl: float
    reverse_kl: float
    tv: float
    error: float


def line_certificate(law: LineLaw, flow: EuclideanSchedule, knots: np.ndarray, nodes: int = 16) -> LineCertificate:
    """All three: Gauss–Legendre on panels between the knots, no longer than 1/8; TV from the masses of its signs."""
    edges = _refined(law, flow, _panels(knots), nodes)
    kl, tv, reverse = _integrals(law, flow, edges, nodes)
    rough = _integrals(law, flow, edges, nodes // 2)[0]
    heavy = not (_second_moment(law, -1) and _second_moment(law, 1))
    return LineCertificate(np.inf if heavy else kl, reverse, tv, 0.0 if heavy else abs(kl - rough))


def _integrals(law: LineLaw, flow: EuclideanSchedule, edges: np.ndarray, nodes: int) -> tuple[float, float, float]:
    z, share, zeta, gap, back = _integrands(law, flow, edges[:-1], edges[1:], nodes)
    (run,) = flow._runs if flow.runs == 1 else [None]
    ends = _back(run, quantile_map(law, edges))[0]
    rows, images = (np.column_stack([e[:-1], v, e[1:]]) for e, v in ((edges, z), (ends, zeta)))
    return float(np.sum(share * gap)), _variation(rows, images, gap), float(np.sum(share * back))


def _integrands(
    law: LineLaw, flow: EuclideanSchedule, low: np.ndarray, high: np.ndarray, nodes: int
) -> tuple[np.ndarray, ...]:
    """Nodes z, weights times φ, ζ, and what is averaged for both entropies; rows are panels."""
    at, weight = leggauss(nodes)
    half = (high - low)[:, None] / 2
    z = low[:, None] + half + half * at
    share = half * weight * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    y = quantile_map(law, z.ravel()).reshape(z.shape)
    (run,) = flow._runs if flow.runs == 1 else [None]
    zeta, logs = _back(run, y)
    gap = (zeta**2 - z**2) / 2 - logs - log_slope(law, z, y)
    moved, slopes = _forth(run, z)
    with np.errstate(all="ignore"):
        back = -0.5 * z**2 - 0.5 * np.log(2 * np.pi) - slopes - np.asarray(law.logpdf(moved), float)
    return z, share, zeta, gap, back


def _refined(law: LineLaw, flow: EuclideanSchedule, edges: np.ndarray, nodes: int) -> np.ndarray:
    """Panels halved where two rules disagree, since the target may have kinks of its own, and round changes of sign."""
    low, high, more = edges[:-1], edges[1:], [edges]
    for _ in range(HALVINGS):
        fine, rough = (_integrands(law, flow, low, high, n) for n in (nodes, nodes // 2))
        with np.errstate(all="ignore"):
            apart = [np.abs(np.sum(fine[1] * fine[k], 1) - np.sum(rough[1] * rough[k], 1)) for k in (3, 4)]
        turns = (np.ptp(np.sign(fine[3]), axis=1) > 0) & (high - low > TURN)
        bad = (np.maximum(*apart) > 1e-12) & (np.abs(low + high) < 14) | turns & (np.abs(low + high) < 14)
        if not bad.any() or bad.sum() > len(edges):  # disagreement everywhere is rounding, or an infinite entropy
            break
        middle = (low[bad] + high[bad]) / 2
        more.append(middle)
        low, high = np.concatenate([low[bad], middle]), np.concatenate([middle, high[bad]])
    return np.unique(np.concatenate(more))


def _panels(knots: np.ndarray) -> np.ndarray:
    """Ends of panels: all knots, no panel longer than 1/8 up to |z| = 9 and 1 beyond."""
    far = np.arange(np.ceil(max(9.0, knots[-1], -knots[0])) + 1, ENDS)
    ends = np.concatenate([-far[::-1], [min(-9.0, knots[0] - 1)], knots, [max(9.0, knots[-1] + 1)], far, [-ENDS, ENDS]])
    ends = np.unique(ends)
    near = np.abs(ends[1:] + ends[:-1]) / 2 < 9.5
    parts = np.where(near, np.ceil(np.diff(ends) * 8), 1).astype(int)
    return np.concatenate([*(np.linspace(a, b, k + 1)[:-1] for a, b, k in zip(ends[:-1], ends[1:], parts)), [ENDS]])


def _variation(z: np.ndarray, zeta: np.ndarray, gap: np.ndarray) -> float:
    """TV = half the variation of D(z) = Φ(z) - Φ(ζ(z)), whose slope is φ(z)(1 - e^{-gap}); rows are panels with their
    ends.

    Where the slope changes its sign between two nodes, the extremum in between is found from both slopes; TV then has
    an error of third order in the spacing, where a quadrature of |slope| has one of first.
    """
    d = np.where(z > 0, ndtr(-zeta) - ndtr(-z), ndtr(z) - ndtr(zeta))
    with np.errstate(over="ignore"):
        slope = -np.exp(-(z[:, 1:-1] ** 2) / 2) / np.sqrt(2 * np.pi) * np.expm1(-gap)
    inner, step, turn = d[:, 1:-1], np.diff(z[:, 1:-1]), slope[:, 1:] * slope[:, :-1] < 0
    part = np.where(turn, slope[:, :-1] / np.where(turn, slope[:, :-1] - slope[:, 1:], 1.0), 0.0)
    rise, fall = step * slope[:, :-1] * part / 2, step * slope[:, 1:] * (1 - part) / 2
    peak = (inner[:, :-1] + rise + inner[:, 1:] - fall) / 2
    around = np.abs(peak - inner[:, :-1]) + np.abs(inner[:, 1:] - peak)
    ends = np.abs(d[:, 1] - d[:, 0]) + np.abs(d[:, -1] - d[:, -2])
    return float(np.where(turn, around, np.abs(np.diff(inner))).sum() + ends.sum()) / 2


def _back(run: RidgeMap | None, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ζ and log dζ/dy; points of 10^{150} would overflow the checks of a schedule's own method."""
    if run is None:
        return y, np.zeros_like(y)
    h, j = run.inverse().height(y)
    return y + h, -run.logs[j]


def _forth(run: RidgeMap | None, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if run is None:
        return z, np.zeros_like(z)
    h, j = run.height(z)
    return z + h, run.logs[j]


def _second_moment(law: LineLaw, side: int) -> bool:
    """Whether φ(z)T(z)² decays on that side: the fall of its logarithm between z = 20 and 25.

    It is -.22 for the density 1/(y³ ln y), whose second moment is infinite by a hair, and -.34 for Student's with 2.01
    degrees; quantiles beyond all numbers have none.
    """
    z = side * np.array([20.0, 25.0])
    with np.errstate(all="ignore"):
        far = np.abs(quantile_map(law, z))
        size = -(z**2) / 2 + 2 * np.log(far + 1e-300)
    return bool(size[1] - size[0] < -0.28 and far.max() < np.sinh(FARTHEST) / 10)
