"""The dual filter: next-token prediction as optimal control, layers as sweeps."""

from __future__ import annotations

import warnings
from typing import Any

import jax.numpy as jnp
import msgspec
import numpy as np

from pathlines.foundation.errors import (
    ArgumentError,
    PathlinesWarning,
    finite_array,
    finite_number,
    of_kind,
    positive_integer,
)
from pathlines.foundation.papers.followups import DUAL_FILTER
from pathlines.foundation.precision import require_float64
from pathlines.model.followups.gaussian_sweeps import SETTLED, Settled, curvature, descend, problem
from pathlines.model.followups.markov_sweeps import chain_of, refine
from pathlines.numerics.sources import HiddenMarkov, Source, StateSpace

MOST_LAYERS = 100_000


class TokenPrediction(msgspec.Struct, frozen=True):
    """What is said of the next token at every place s = 0..T.

    ``next`` has a row for each place: the mean of the next token (Gaussian), or the probability of each token (chain).
    ``states`` are the estimates of the hidden state behind them. ``attention`` (T+1, T) is how strongly a place listens
    to each token: the norm of its weights. ``change`` is the last relative change of the weights (Gaussian; 0 else).
    """

    next: np.ndarray
    states: np.ndarray
    attention: np.ndarray
    layers: int
    change: float = 0.0


class Estimate(msgspec.Struct, frozen=True):
    """An estimate of fᵀX_T: its ``value``, its mean square ``error`` J, the ``weights`` u on the tokens (T, p) and the
    ``dual`` y (T+1, d); ``layers`` were taken, and ``change`` is their last relative change.
    """

    value: float
    error: float
    weights: np.ndarray
    dual: np.ndarray
    layers: int
    change: float


class DualFilter:
    """Predict the next token by layers that solve a control problem (arXiv:2605.15608, see also arXiv:2505.00818).

    Linear Gaussian tokens (``StateSpace``). A layer sweeps backwards, y_t = A y_{t+1} + H u_t, then forwards,
    p_{t+1} = Aᵀp_t + Q y_{t+1}, and moves the weight of every token, u_t ← u_t - η(R u_t + Hᵀp_t). The fixed point is
    Kalman's predictor [derived]. Tokens of a hidden chain (``HiddenMarkov``): a layer replaces measures by what they
    say of each other (``markov_sweeps``); after as many layers as tokens they are those of Bayes [derived]. The layer
    of the paper is a fixed point on measures too, its exact form was not available: ours is our convention.

    You will see weights that decay into the past as fast as the filter forgets. Good values: sequences of 5 to 200
    tokens. Cost O(T²(d² + dp)) per layer.

    Args:
        source: where tokens come from, a ``StateSpace`` or a ``HiddenMarkov``.
        layers: how many are taken. If not given, Gaussian weights are refined until they settle, and chains take as
            many layers as tokens, with which they are exact. The more, the nearer to the exact filter.
        step: η of Gaussian layers, below 2 over the largest curvature of J; 1 over it if not given. The larger, the
            fewer layers are needed, up to that bound.
    """

    papers = (DUAL_FILTER,)

    def __init__(self, source: Source, layers: int | None = None, step: float | None = None) -> None:
        self.source = of_kind("source", source, (StateSpace, HiddenMarkov), "a StateSpace or a HiddenMarkov")
        self.layers = None if layers is None else positive_integer("layers", layers)
        self.step = None if step is None else finite_number("step", step, 0.0, open_low=True)
        if step is not None and isinstance(source, HiddenMarkov):
            raise ArgumentError("Argument `step` must not be given for a HiddenMarkov: its layers have none.")

    def predict(self, tokens: Any) -> TokenPrediction:
        """What is said of the next token at every place of a sequence, before the first token and after the last."""
        require_float64("The dual filter needs")
        z = self.source.checked(tokens)
        return self._of_chain(z) if isinstance(self.source, HiddenMarkov) else self._of_line(z)

    def estimate(self, tokens: Any, target: Any) -> Estimate:
        """The best estimate of fᵀX_T from the tokens, f the ``target`` (d,); Gaussian sources only."""
        require_float64("The dual filter needs")
        source = of_kind("source", self.source, StateSpace, "a StateSpace (chains have `predict`)")
        z = source.checked(tokens)
        f = finite_array("target", target, (len(source.transition),)).astype(float)
        found = self._settled(f[None], np.array([len(z)]), len(z))
        value = float(source.mean @ found.dual[0, 0] - np.sum(found.weights[0] * z))
        weights, dual = np.asarray(found.weights[0]), np.asarray(found.dual[0])
        return Estimate(value, float(found.errors[0]), weights, dual, int(found.layers), float(found.change))

    def _of_line(self, z: np.ndarray) -> TokenPrediction:
        source, places = self.source, len(z) + 1
        d = len(source.transition)
        targets, times = np.tile(np.eye(d), (places, 1)), np.repeat(np.arange(places), d)
        found = self._settled(targets, times, len(z))
        u = np.asarray(found.weights)
        states = (np.asarray(found.dual)[:, 0] @ source.mean - np.einsum("ktp,tp->k", u, z)).reshape(places, d)
        read = np.einsum("sitp,iq->stpq", u.reshape(places, d, *z.shape), source.readout)
        heard = np.sqrt(np.sum(read**2, axis=(2, 3)))
        return TokenPrediction(states @ source.readout, states, heard, int(found.layers), float(found.change))

    def _settled(self, targets: np.ndarray, times: np.ndarray, length: int) -> Settled:
        """The weights of each target after the last layer."""
        q = problem(self.source, jnp.asarray(targets), jnp.asarray(times))
        bend = float(curvature(q, max(length, 1)))
        if self.step is not None and self.step >= 2 / bend:
            raise ArgumentError(
                f"Argument `step` must be below {2 / bend:.4g}, where layers diverge, but is {self.step:g}."
            )
        layers, settled = (MOST_LAYERS, SETTLED) if self.layers is None else (self.layers, -1.0)
        step = jnp.asarray(self.step or 1 / bend)
        found = descend(q, length, step, jnp.asarray(layers), jnp.asarray(settled))
        if self.layers is None and found.change > settled:
            text = (
                f"After {MOST_LAYERS} layers weights still change by {float(found.change):.1g} of their size per layer."
            )
            warnings.warn(text, PathlinesWarning, stacklevel=3)
        return found

    def _of_chain(self, z: np.ndarray) -> TokenPrediction:
        layers = max(len(z), 1) if self.layers is None else self.layers
        found = refine(chain_of(self.source, jnp.asarray(z)), layers)
        measures = np.asarray(found.measures)
        following = measures @ self.source.emission
        cannot = np.flatnonzero(following[np.arange(len(z)), z] <= 0)
        if len(cannot):
            where = f"token {z[cannot[0]]} at place {cannot[0] + 1} cannot follow"
            raise ArgumentError(f"Argument `tokens` has probability 0: {where}.")
        read = np.einsum("stgm,gz->stzm", np.asarray(found.weights), self.source.emission)
        return TokenPrediction(following, measures, np.sqrt(np.sum(read**2, axis=(2, 3))), layers)
