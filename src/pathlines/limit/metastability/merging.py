"""How long two clusters live: closed forms, in the logarithm, because times reach e^{2β}.

Two clusters of masses m_1 + m_2 = 1 at angle φ (any dimension: their plane is invariant), e = e^{β(cos φ-1)}
(Dynamic metastability in the self-attention model, arXiv:2410.06833; the closed forms derived):

    dφ/dt = -sin φ · e (USA, scaled kernel),   dφ/dt = -sin φ · e [m_2/(m_1+m_2e) + m_1/(m_2+m_1e)] (SA).
"""

from __future__ import annotations

import numpy as np
from scipy import integrate

from pathlines.foundation.errors import finite_array, finite_number, require
from pathlines.foundation.numbers import one_of
from pathlines.foundation.papers import METASTABILITY
from pathlines.numerics.exponential_integral import scaled_e1, scaled_ei

SOURCES = (METASTABILITY,)
KINDS = ("sa", "usa")


def log_merging_time(
    beta: float, start: float, end: float, kind: str = "usa", masses: tuple[float, float] = (0.5, 0.5)
) -> float:
    """ln of the time from angle φ_0 = ``start`` to φ_1 = ``end``, for every β.

    USA, w = 1 - cos φ: T = ½[e^{βw_0}G(w_0) - e^{βw_1}G(w_1)], G(w) = e^{-βw}Ei(βw) + e^{β(2-w)}E_1(β(2-w)), at any
    masses; ~ e^{βw_0}/(β sin²φ_0). SA with equal masses: ½[T + ln(tan(φ_0/2)/tan(φ_1/2))]; other masses by quadrature
    of the same integral, scaled by its largest value. A pair of total mass M < 1 far from everything: USA times 1/M.
    """
    beta = finite_number("beta", beta, 0.0, open_low=True)
    start = finite_number("start", start, 0.0, np.pi, open_low=True)
    end = finite_number("end", end, 0.0, start, open_low=True)
    require(start < np.pi, "start", "be below π (antipodal clusters do not move)", start)
    one_of("kind", kind, KINDS)
    first, second = finite_array("masses", masses, (2,)).astype(float).tolist()
    require(min(first, second) > 0, "masses", "be positive", masses)
    require(abs(first + second - 1) < 1e-12, "masses", "sum to one", masses)
    if kind == "usa":
        return _log_usa(beta, start, end)
    if first == second:
        drift = np.log(np.tan(start / 2) / np.tan(end / 2))
        return float(np.logaddexp(_log_usa(beta, start, end), np.log(drift) if drift > 0 else -np.inf) - np.log(2))
    return _log_sa(beta, start, end, first, second)


def _log_usa(beta: float, start: float, end: float) -> float:
    w0, w1 = 2 * np.sin(start / 2) ** 2, 2 * np.sin(end / 2) ** 2
    # 2 - w from the cosine: near π it has digits that 1 - cos φ has lost
    left = 2 * np.cos(start / 2) ** 2, 2 * np.cos(end / 2) ** 2
    parts = [float(scaled_ei(beta * w)) + float(scaled_e1(beta * v)) for w, v in zip((w0, w1), left, strict=True)]
    return float(beta * w0 + np.log((parts[0] - np.exp(-beta * (w0 - w1)) * parts[1]) / 2))


def _log_sa(beta: float, start: float, end: float, first: float, second: float) -> float:
    """∫ du/(e · bracket) over u = ln tan(φ/2), du = dφ/sin φ, the integrand divided by e^{βw_0}; w = 1 + tanh u."""
    u0, u1 = float(np.log(np.tan(start / 2))), float(np.log(np.tan(end / 2)))
    top = 2 * np.sin(start / 2) ** 2

    def scaled(u: float) -> float:
        w = 2 / (1 + np.exp(-2 * u))
        e = np.exp(-beta * w)
        bracket = second / (first + second * e) + first / (second + first * e)
        return float(np.exp(beta * (w - top)) / bracket)

    width = 1 / (beta * np.sin(start) ** 2 + 1)
    near = [u0 - width * 2.0**k for k in range(-6, 12) if u0 - width * 2.0**k > u1]
    value, _ = integrate.quad(scaled, u1, u0, points=near or None, epsabs=0, epsrel=1e-12, limit=500)
    return float(beta * top + np.log(value))
