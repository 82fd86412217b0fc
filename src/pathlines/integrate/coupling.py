"""Couplings: runs that share their noise, and n tokens beside copies that the mean field of their law drives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import msgspec
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.foundation.errors import ArgumentError, a_function, finite_array, of_kind, require
from pathlines.foundation.module import Module
from pathlines.integrate.chain import chain
from pathlines.integrate.flow import flow
from pathlines.integrate.run import Run
from pathlines.integrate.side_by_side import side_by_side
from pathlines.model.base import Model
from pathlines.model.capability import HasRandomLayers
from pathlines.model.homogenized.random_transformer import RandomTransformer
from pathlines.model.homogenized.shared_noise import sharing
from pathlines.numerics.quadrature import WeightedNodes


class Coupling(msgspec.Struct, frozen=True):
    """Tokens and their copies, (runs, times, n, d), and the run of the mean field."""

    tokens: Any
    copies: Any
    run: Run

    @property
    def squares(self) -> np.ndarray:
        """|x_i - x̄_i|² of each run, time and token."""
        return np.sum((self.tokens - self.copies) ** 2, axis=-1)

    @property
    def errors(self) -> np.ndarray:
        """C_n = (n^{-1} Σ_i |x_i - x̄_i|²)^{1/2} of each run at each time: an upper bound of W_2, free of a floor."""
        return np.sqrt(np.mean(self.squares, axis=-1))


def coupled_chains(models: Sequence[Model], starts: Sequence[Any], *, key: PRNGKeyArray, **options: Any) -> list[Run]:
    """One ``chain`` for each model and start, all driven by the same heads, layer by layer and run by run.

    The models are random transformers, their measures (``TransportedMeasure``, ``CircleMeasure``) and their SDE
    (``HomogenizedSDE`` with as many ``noise_heads`` as the chain has heads), of one law, step η and number of heads;
    the numbers of tokens, starts, masses (zero: listeners) and temperatures may differ. An SDE with ``time_step`` = η
    takes the heads of the chain; with η/k, for Gaussian values and fixed scores, both follow one matrix Brownian
    motion. Starts that are laws ``key -> tokens`` draw from the same key too. ``options`` are those of ``chain``.

    Chain and SDE from one start, by the noise of Gaussian values with a mean:

        law = pathlines.GaussianHeads(4, sigma_a=0.0, value_mean=1.0, score_mean=1.0)
        deep = pathlines.RandomTransformer(law=law, beta=1.0, step=0.1)
        limit = pathlines.HomogenizedSDE(law, 1.0, step=0.1, time_step=0.05)
        runs = pathlines.coupled_chains([deep, limit], 2 * [pathlines.Sphere(4).sines(5)], depth=12, key=key, runs=100)
        gap = runs[0]["tokens"] - runs[1]["tokens"]

    Calls with the same key are coupled to each other, too: the heads are a function of key, run and layer.
    """
    for name, value in (("models", models), ("starts", starts)):
        of_kind(name, value, (list, tuple), "a list or tuple")
    if len(models) == 0 or len(models) != len(starts):
        raise ArgumentError(
            f"Argument `starts` must hold one start per model ({len(models)}), but holds {len(starts)}."
        )
    run = lambda m, x: chain(m, x, key=key, sampler=_sampler(m), **options)  # noqa: E731
    return [run(model, start) for model, start in zip(sharing(models), starts, strict=True)]


def _sampler(model: Model) -> str:
    """Full matrices: other samplers draw what depends on the tokens."""
    return "naive" if isinstance(model, RandomTransformer) else "auto"


class WithListeners(Module):
    """A law of starts: the nodes of a measure, then tokens drawn from ``samples``."""

    nodes: Float[Array, "m d"]
    samples: Callable[[PRNGKeyArray], Any] = eqx.field(static=True)

    def __call__(self, key: PRNGKeyArray) -> Float[Array, "k d"]:
        """Nodes and one draw."""
        return jnp.concatenate([self.nodes, self.samples(key)])


def synchronous_coupling(
    model: Model, mean_field: Callable[..., Model], law: WeightedNodes, samples: Any, **options: Any
) -> Coupling:
    """n tokens of ``model`` beside copies of the same starts that the mean field of ``law`` moves, by the same noise.

    The copies are tokens of mass zero: they listen to the markers of the law. ``mean_field(multiplicities=…)`` makes
    the model of the law: the same system (without its mask, for masked tokens of one law).

    For a flow ``samples`` are the starts (runs, n, d) and ``options`` those of ``flow`` (``times``, ``method``,
    ``step`` or ``rtol``); one run of the law carries all copies. Cost: runs · n² and (m + runs · n) · m pairs per
    drift, m the number of markers.

    For random layers ``samples`` is a law ``key -> (n, d)`` and ``options`` are those of ``chain`` (``depth``, ``key``,
    ``runs``, ``every``): in each run both systems have the heads of that run. Propagation of chaos (arXiv:2604.01978)
    is E sup_ℓ |x_i - x̄_i|² = O(1/n), see ``Coupling.squares``.
    """
    of_kind("model", model, Model, "a model")
    of_kind("law", law, WeightedNodes, "WeightedNodes, nodes with masses")
    a_function("mean_field", mean_field)
    couple = _coupled_layers if isinstance(model, HasRandomLayers) else _coupled_flows
    return couple(model, mean_field, law, samples, **options)


def _coupled_layers(
    model: Model,
    mean_field: Callable[..., Model],
    law: WeightedNodes,
    samples: Callable[[PRNGKeyArray], Any],
    *,
    key: PRNGKeyArray,
    **options: Any,
) -> Coupling:
    require(callable(samples), "samples", "be a law key -> (n, d) for a chain", samples)
    driven = mean_field(multiplicities=np.concatenate([law.masses, np.zeros(len(samples(key)))]))
    starts = [samples, WithListeners(jnp.asarray(law.tokens), samples)]
    tokens, carried = coupled_chains([model, driven], starts, key=key, record="tokens", **options)
    return Coupling(tokens["tokens"].values, carried["tokens"].values[..., len(law.tokens) :, :], carried)


def _coupled_flows(
    model: Model, mean_field: Callable[..., Model], law: WeightedNodes, samples: Any, *, times: Any, **options: Any
) -> Coupling:
    starts = finite_array("samples", samples, ("runs", "n", "d")).astype(float)
    require(starts.size > 0, "samples", "hold at least one token", starts)
    listeners = starts.reshape(-1, starts.shape[-1])
    driven = mean_field(multiplicities=np.concatenate([law.masses, np.zeros(len(listeners))]))
    carried = flow(driven, np.concatenate([law.tokens, listeners]), times=times, record="tokens", **options)
    copies = carried["tokens"].values[:, len(law.tokens) :]
    shaped = np.moveaxis(copies.reshape(len(copies), *starts.shape), 0, 1)
    tokens = side_by_side([model] * len(starts), starts, times=times, record="tokens", **options)["tokens"].values
    return Coupling(tokens, shaped, carried)
