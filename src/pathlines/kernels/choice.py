"""Which summation is used, and why: the choice is recorded with the run."""

from __future__ import annotations

import os

import msgspec
import numpy as np

from pathlines.attention import Attention, SoftmaxAttention
from pathlines.attention.masks import PositionMask
from pathlines.foundation.errors import ArgumentError
from pathlines.kernels.native import native_serves
from pathlines.kernels.portable import banded
from pathlines.kernels.prefixes import prefix_mask
from pathlines.kernels.spectral import admissible, coefficients, degree, noise_floor
from pathlines.kernels.spectral.cost import spectral_cost
from pathlines.kernels.spectral.portable import BASES

SUMMATIONS = ("auto", "dense", "spectral")

PAIR = {"float32": (0.17, 0.025, 0.0115), "float64": (0.5, 0.05, 0.024)}
"""Nanoseconds on one core for a pair of tokens in the fused kernel: exponential, and each component of query and value
in few dimensions, in many."""

PORTABLE = 2.0
"""How many times longer blocks of plain JAX take."""

MASKED = 2.0
"""How many times longer those of a mask take, whose weights are computed with them."""

ISOLATED = 1e-6
"""The relative error of a token without neighbours above which harmonics are refused, whatever is asked for."""

STEEP = {"float32": 100.0, "float64": 1000.0}
"""Logarithm of the largest ratio of two positional weights, which prefix sums of harmonics hold as they are."""

CALL = 4e3
"""Nanoseconds of a call."""


class Choice(msgspec.Struct, frozen=True):
    """A method with its predicted cost (nanoseconds per sum on this machine) and the reason it was taken, in words.

    ``tolerance`` is the error of the kernel e^{β(<x,y>-1)} that a spectral sum allows itself; zero for direct sums.
    """

    method: str
    reason: str
    cost: float
    tolerance: float = 0.0
    others: tuple[tuple[str, float], ...] = ()


class Sums(msgspec.Struct, frozen=True):
    """What is to be summed: n tokens of dimension d against themselves, β bounding the scores, H heads.

    ``unit`` says that scores are β<x_i, y_j> between unit vectors (Q^T K a multiple of an orthogonal matrix), as
    harmonics need; ``relative`` is the relative error that the caller can bear in A_i (a token without neighbours may
    lose up to ``ISOLATED`` to rounding, and the reason then says how much). ``partition`` is a lower bound of
    Z_i = Σ_j m_j e^{β(<x_i,y_j>-1)}, by which softmax divides (over the mass that a masked row sees); without it
    ``least_partition`` of equal tokens.
    """

    attention: Attention
    n: int
    d: int
    beta: float
    dtype: str = "float64"
    unit: bool = True
    mask: PositionMask | None = None
    heads: int = 1
    relative: float = 1e-9
    partition: float | None = None

    @property
    def least_partition(self) -> float:
        """The smallest number that errors of the kernel may be divided by: one for fixed shifts."""
        if not isinstance(self.attention, SoftmaxAttention):
            return 1.0
        if self.partition is not None:
            return self.partition
        return least_partition(own_share(np.ones(self.n), self.mask), self.beta)


def own_share(masses: np.ndarray, mask: PositionMask | None = None) -> float:
    """The smallest share that a token with mass has of the mass it sees; 0 where a masked one may not hear itself."""
    if mask is None:
        return float(masses[masses > 0].min() / masses.sum())
    prefix = prefix_mask(mask, len(masses))
    if prefix is None or prefix.strict or not masses.all():
        return 0.0
    logs = np.log(masses) + np.asarray(prefix.heights(len(masses)))
    return float(np.exp(logs - np.logaddexp.accumulate(logs)).min())


def least_partition(own: float, beta: float, alignment: float = 1.0) -> float:
    """m e^{-β(1-λ)} + (1 - m) e^{-2β} ≤ Z for a token of mass m: what it gets from itself, and from the others.

    It finds itself at the score βλ or higher, and nobody below -β.
    """
    return float(own * np.exp(-beta * (1 - alignment)) + (1 - own) * np.exp(-2 * beta))


def choose_summation(sums: Sums, method: str = "auto") -> Choice:
    """The cheapest way to sum attention that is accurate enough; ``method`` "dense" or "spectral" asks for one.

    Direct sums cost O(n²d), fused in C++ on a CPU (blocks of plain JAX elsewhere); spectral ones O(nC) with C
    harmonics, for d ≤ 8 while there are few. A method that was asked for and cannot serve is an error that says why.
    """
    if method not in SUMMATIONS:
        raise ArgumentError(f"Argument `summation` must be one of {', '.join(SUMMATIONS)}, but is {method!r}.")
    direct = dense_choice(sums)
    if method == "dense":
        return msgspec.structs.replace(direct, reason=f"asked for; {direct.reason}")
    obstacle = spectral_obstacle(sums)
    if obstacle is not None:
        if method == "spectral":
            raise ArgumentError(f"Argument `summation` cannot be 'spectral': {obstacle}.")
        return msgspec.structs.replace(direct, reason=f"{direct.reason} (harmonics: {obstacle})")
    fast = spectral_choice(sums)
    if method == "spectral":
        return msgspec.structs.replace(fast, reason=f"asked for; {fast.reason}", others=((direct.method, direct.cost),))
    best, other = (fast, direct) if fast.cost < direct.cost else (direct, fast)
    return msgspec.structs.replace(best, others=((other.method, other.cost),))


def dense_choice(sums: Sums) -> Choice:
    """The fused kernel where it exists, row blocks of plain JAX elsewhere."""
    exponential, short, long = PAIR[sums.dtype]
    component = short if sums.d <= 8 else long
    mask, prefix = sums.mask, prefix_mask(sums.mask, sums.n)
    fused = sums.attention.fused is not None and native_serves(sums.dtype) and (mask is None or prefix is not None)
    half = 0.5 if fused and prefix is not None else 1.0
    pair = (exponential + 2 * sums.d * component) * (1.0 if fused else PORTABLE if mask is None else PORTABLE * MASKED)
    pairs = float(sums.n) * (banded(mask, sums.n) if mask is not None and sums.attention.fused is not None else sums.n)
    cost = CALL + _on_all_cores(half * sums.heads * pairs * pair)
    size = f"n = {sums.n}, d = {sums.d}" + ("" if mask is None else f", {type(mask).__name__}")
    if fused:
        return Choice("fused", f"{size}: every pair, in the compiled kernel", cost)
    if pairs < float(sums.n) ** 2:
        return Choice("portable", f"{size}: the {pairs / sums.n:.0f} keys about a token, in blocks of rows", cost)
    return Choice("portable", f"{size}: every pair, in blocks of rows", cost)


def spectral_obstacle(sums: Sums) -> str | None:
    """Why harmonics cannot serve, or nothing."""
    if sums.attention.fused is None:
        return f"{type(sums.attention).__name__} is not a sum of exponentials"
    if sums.mask is not None and (obstacle := _mask_obstacle(sums.mask, sums)) is not None:
        return obstacle
    if not sums.unit or sums.heads != 1:
        return "scores are not a multiple of inner products of unit vectors"
    if not 2 <= sums.d <= max(BASES):
        return f"not for d = {sums.d}"
    if sums.beta < 0:
        return "β is negative"
    if sums.d > 3 and coefficients(sums.d, degree(sums.beta, sums.d, 1e-6)) > sums.n / 4:
        return f"d = {sums.d} takes more than n/4 of them"
    lost = error_of_isolated(sums)
    if lost > max(sums.relative, ISOLATED):
        return f"rounding could cost isolated tokens a relative {lost:.1g}"
    if not admissible(sums.beta, sums.d, _tolerance(sums), sums.dtype):
        return f"β = {sums.beta:g} needs degrees that overflow {sums.dtype}"
    return None


def _mask_obstacle(mask: PositionMask, sums: Sums) -> str | None:
    prefix = prefix_mask(mask, sums.n)
    if prefix is None:
        return f"{type(mask).__name__} is no mask of prefixes in order"
    if not prefix.flat and np.ptp(np.asarray(prefix.heights(sums.n))) > STEEP[sums.dtype]:
        return f"positional weights leave the range of {sums.dtype}"
    return None


def error_of_isolated(sums: Sums) -> float:
    """2(t + f)/(Z - t - f): what the cut t and the rounding f of the kernel do to A_i at the smallest Z."""
    wrong = _tolerance(sums) + noise_floor(sums.beta, sums.d, sums.dtype)
    rest = sums.least_partition - wrong
    return float(2 * wrong / rest) if rest > 0 else np.inf


def _tolerance(sums: Sums) -> float:
    """The cut that leaves an error of ``relative`` at the smallest Z, rounding included, but not far below rounding."""
    floor = noise_floor(sums.beta, sums.d, sums.dtype)
    return max(4 * floor, (1 - 1e-9) * sums.relative / (2 + sums.relative) * sums.least_partition - floor)


def spectral_choice(sums: Sums) -> Choice:
    """Harmonics up to the degree that keeps the relative error, or to that of rounding."""
    tolerance = _tolerance(sums)
    cut = degree(sums.beta, sums.d, tolerance)
    many = coefficients(sums.d, cut)
    masked = sums.mask is not None
    cost = spectral_cost(sums.n, sums.n, sums.d, sums.beta, tolerance, sums.dtype, masked)
    how = f", {type(sums.mask).__name__}: prefix sums of {many}" if masked else f": {many}"
    reason = f"n = {sums.n}{how} harmonics instead of n pairs per token, kernel to {tolerance:.1g}"
    if (lost := error_of_isolated(sums)) > sums.relative:
        reason += f" (isolated tokens to {lost:.1g})"
    return Choice("spectral", reason, cost + CALL, tolerance)


def _on_all_cores(work: float) -> float:
    """Small sums are not worth a second thread."""
    return work if work < 1e5 else work / (os.cpu_count() or 1)
