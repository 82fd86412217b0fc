"""The result of the slow phase: who merged with whom, when, and the energy in between."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import xarray as xr
from scipy.interpolate import PchipInterpolator


class Merger(msgspec.Struct, frozen=True):
    """Two clusters become one: ln t, the rescaled time, their masses, where, and the plateau Σ_q m_q² that begins.

    ``position`` is one unwrapped angle on the circle, a unit vector elsewhere; ``clusters`` is how many remain.
    """

    log_time: float
    rescaled_time: float
    masses: tuple[float, float]
    position: tuple[float, ...]
    level: float
    clusters: int


class Staircase(msgspec.Struct, frozen=True):
    """Mergers of clusters and the profile between them; times are logarithms because they reach e^{2β}.

    ``log_time``, ``rescaled_time``, ``energy`` (E = Σ m_p m_q e^{β(<x_p,x_q>-1)}, at most one) run over solver steps;
    ``positions[step, cluster]`` follows each initial cluster, merged ones together. ``outcome`` is "one cluster" or
    says why the flow ended earlier.
    """

    kind: str
    beta: float
    delta: float
    masses: np.ndarray
    mergers: tuple[Merger, ...]
    log_time: np.ndarray
    rescaled_time: np.ndarray
    energy: np.ndarray
    positions: np.ndarray
    outcome: str

    @property
    def log_times(self) -> np.ndarray:
        """ln t of each merger."""
        return np.array([m.log_time for m in self.mergers])

    @property
    def log10_times(self) -> np.ndarray:
        """log₁₀ t of each merger."""
        return self.log_times / np.log(10)

    @property
    def rescaled_times(self) -> np.ndarray:
        """Rescaled time of each merger, one unit of which moves the closest pair whatever β."""
        return np.array([m.rescaled_time for m in self.mergers])

    @property
    def levels(self) -> np.ndarray:
        """Plateaus Σ_q m_q²: of the start, then after each merger."""
        return np.array([float(np.sum(self.masses**2)), *(m.level for m in self.mergers)])

    @property
    def final(self) -> np.ndarray:
        """Where each initial cluster is in the end."""
        return self.positions[-1]

    def energy_at(self, log_times: Any) -> np.ndarray:
        """E at given ln t, a monotone cubic between the solver's steps; the last value beyond the last merger.

        Clusters that do not move, such as antipodes, keep the energy of their start.
        """
        known = np.isfinite(self.log_time)
        _, last = np.unique(self.log_time[known][::-1], return_index=True)  # of a merger's two heights the later
        log_t, heights = (column[known][::-1][last] for column in (self.log_time, self.energy))
        if len(log_t) < 2:
            return np.full(np.shape(log_times), float(self.energy[-1]))
        return PchipInterpolator(log_t, heights)(np.clip(np.asarray(log_times, float), log_t[0], log_t[-1]))

    def dataset(self) -> xr.Dataset:
        """Mergers over ``merger``, the profile over ``step``, as one labelled dataset."""
        place = ("step", "cluster") if self.positions.ndim == 2 else ("step", "cluster", "component")
        return xr.Dataset(
            {
                "merger_log_time": ("merger", self.log_times, {"long_name": "logarithm of the merging time"}),
                "merger_rescaled_time": ("merger", self.rescaled_times),
                "level": ("merger", self.levels[1:], {"long_name": "plateau after the merger", "symbol": "Σ m²"}),
                "energy": ("step", self.energy, {"long_name": "energy over its maximum", "symbol": "E"}),
                "positions": (place, self.positions),
                "masses": ("cluster", self.masses),
            },
            coords={"log_time": ("step", self.log_time), "rescaled_time": ("step", self.rescaled_time)},
            attrs={"kind": self.kind, "beta": self.beta, "delta": self.delta, "outcome": self.outcome},
        )

    def as_dict(self) -> dict[str, Any]:
        """The setting and the mergers as plain values, ready for JSON (not the profile)."""
        return {
            "kind": self.kind,
            "beta": self.beta,
            "delta": self.delta,
            "masses": self.masses.tolist(),
            "start": self.positions[0].tolist(),
            "levels": self.levels.tolist(),
            "mergers": [msgspec.to_builtins(m) for m in self.mergers],
            "final": self.final.tolist(),
            "outcome": self.outcome,
        }
