"""Synchronous coupling: n tokens beside copies of the same starts that the mean field of their law drives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from pathlines.domain.quadrature import Markers
from pathlines.foundation.errors import finite_array
from pathlines.integrate.flow import flow
from pathlines.integrate.run import Run
from pathlines.integrate.side_by_side import side_by_side
from pathlines.model.base import Model


class Coupling(msgspec.Struct, frozen=True):
    """Tokens and their copies, (runs, times, n, d), and the run of the mean field."""

    tokens: Any
    copies: Any
    run: Run

    @property
    def errors(self) -> np.ndarray:
        """C_n = (n^{-1} Σ_i |x_i - x̄_i|²)^{1/2} of each run at each time: an upper bound of W_2, free of a floor."""
        return np.sqrt(np.mean(np.sum((self.tokens - self.copies) ** 2, axis=-1), axis=-1))


def synchronous_coupling(
    model: Model, mean_field: Callable[..., Model], law: Markers, samples: Any, *, times: Any, **options: Any
) -> Coupling:
    """Run ``model`` from each of ``samples`` (runs, n, d), and once the law with all samples as tokens of mass zero.

    ``mean_field(multiplicities=…)`` makes the model of the law: the same system without its mask, for masked tokens
    of one law. ``options`` are those of ``flow`` (``method``, ``step`` or ``rtol``). Cost: runs · n² and
    (m + runs · n) · m pairs a drift, m the number of markers.
    """
    starts = finite_array("samples", samples, ("runs", "n", "d")).astype(float)
    listeners = starts.reshape(-1, starts.shape[-1])
    driven = mean_field(multiplicities=np.concatenate([law.masses, np.zeros(len(listeners))]))
    carried = flow(driven, np.concatenate([law.tokens, listeners]), times=times, record="tokens", **options)
    copies = carried["tokens"].values[:, len(law.tokens) :]
    shaped = np.moveaxis(copies.reshape(len(copies), *starts.shape), 0, 1)
    tokens = side_by_side([model] * len(starts), starts, times=times, record="tokens", **options)["tokens"].values
    return Coupling(tokens, shaped, carried)
