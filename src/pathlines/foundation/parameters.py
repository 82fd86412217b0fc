"""Parameters of models: a record for each model, from the annotations of its builder and the words that models share.

``record_of(build)`` is a ``Setting`` with the parameters of ``build`` and their defaults. A field is what the type
says where that carries a meaning (``beta: of.Beta = 4.0``), else what ``MEANINGS`` says about the name, else the plain
type. One record serves the options of ``pathlines run MODEL``, its help, the checks, and sliders.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec

from pathlines.foundation import vocabulary as of
from pathlines.foundation.setting import Setting, means

PLAIN = (bool, int, float, str)
REQUIRED: Any = inspect.Parameter.empty
"""The default of a parameter that has none."""
Deviation = Annotated[of.NonNegative, means("standard deviation of the entries")]

MEANINGS: dict[str, Any] = {
    "beta": of.Beta,
    "d": of.Dimension,
    "heads": of.Heads,
    "step": of.Step,
    "logit_scale": of.LogitScale,
    "activation": of.Activation,
    "update": of.Update,
    "angles": Annotated[of.Vector, means("angles of the neurons on the circle", "θ", unit="radians")],
    "strengths": of.Strengths,
    "alpha": of.NgptStep,
    "magnitude": of.Magnitude,
    "switch": of.MixSwitch,
    "time_step": of.TimeStep,
    "value": Annotated[Any, means("values: a number v (V = vI), a matrix, or a stack of one per head", "V")],
    "query": Annotated[Any, means("queries: a matrix, or a stack of one per head; the identity by default", "Q")],
    "key": Annotated[Any, means("keys: a matrix, or a stack of one per head; the identity by default", "K")],
    "outer": Annotated[Any, means("outer matrix of a perceptron Wσ(Bx + b) beside attention, d × m", "W")],
    "inner": Annotated[Any, means("its inner matrix, m × d", "B")],
    "inner_bias": Annotated[Any, means("its biases, m numbers; 0 by default", "b")],
    "multiplicities": Annotated[Any, means("masses of the tokens, in any unit; equal by default", "m")],
    "space": Annotated[Literal["sphere", "euclidean"], means("where the tokens live: the unit sphere or R^d")],
    "reduce": Annotated[Literal["sum", "mean"], means("what is seen is summed, or averaged over its mass")],
    "frozen": Annotated[of.Whole, means("tokens, the first, that are heard and do not move")],
    "score": Annotated[float, means("mean of the scores: A = score · I", "a")],
    "scale": Annotated[float, means("factor of the scores ⟨Qx, Ky⟩")],
    "eps": of.Epsilon,
    "prefactor": Annotated[Literal["1/eps", "1"], means("factor of the Sinkhorn field")],
    "iterations": Annotated[of.Count, means("Sinkhorn iterations; as many as the tolerance takes by default")],
    "tolerance": Annotated[of.Positive, means("relative error that is allowed")],
    "bias": Annotated[float, means("bias of the scores", "b")],
    "summed": Annotated[bool, means("sum over the tokens (attention of practice), instead of the mean")],
    "unnormalised": Annotated[bool, means("unnormalised attention (USA) instead of softmax (SA)")],
    "shift": Annotated[float, means("the kernel is e^{β⟨x,y⟩ − shift}")],
    "resolved": Annotated[bool, means("tokens at the Gauss nodes are a density, else rings")],
    "degree": Annotated[of.Count, means("Fourier modes of the density", "K")],
    "nodes": of.Nodes,
    "cells": Annotated[of.Count, means("cells of the grid on the circle")],
    "kappa": Annotated[float, means("drift (2 − κ) tanh y of the pair", "κ")],
    "qk_dim": Annotated[of.Positive, means("width of the query-key factors; that of the tokens by default", "p")],
    "sigma_a": Annotated[Deviation, means("standard deviation of the entries of A", "σ_A")],
    "sigma_v": Annotated[Deviation, means("standard deviation of the entries of V", "σ_V")],
    "sigma_w": of.PreactivationSize,
    "sigma_b": Annotated[Deviation, means("standard deviation of the perceptron's biases", "σ_b")],
    "sigma_q": Annotated[Deviation, means("standard deviation of the entries of Q", "σ_Q")],
    "sigma_k": Annotated[Deviation, means("standard deviation of the entries of K", "σ_K")],
    "sigma_o": Annotated[Deviation, means("standard deviation of the entries of the output matrix", "σ_O")],
    "sigma_1": Annotated[Deviation, means("standard deviation of the entries of the perceptron's inner matrix", "σ₁")],
    "sigma_2": Annotated[Deviation, means("standard deviation of the entries of the perceptron's outer matrix", "σ₂")],
    "noise_heads": Annotated[of.Count, means("heads that draw the noise of one step")],
    "corrector": Annotated[Literal["full", "paper", "none"], means("correction of the drift for finite steps")],
    "strength": Annotated[of.NonNegative, means("strength of the perceptron's noise")],
    "perceptron_step": Annotated[of.Positive, means("residual step of the perceptron", "η_m")],
    "width": Annotated[of.Whole, means("neurons of the perceptron")],
    "residual": Annotated[of.Positive, means("multiplier of the attention block", "s")],
    "perceptron_residual": Annotated[of.Positive, means("multiplier of the perceptron block", "s_m")],
    "logit": Annotated[of.Positive, means("multiplier of the logits", "λ")],
    "embedding": Annotated[of.Positive, means("root mean square of a token at the start")],
    "placement": Annotated[str, means("where the normalisation stands: pre, post, sandwich or parallel")],
    "norm": Annotated[str, means("normalisation: layer or rms")],
    "mlp_width": Annotated[of.Whole, means("neurons of the perceptron; 0: none")],
    "std": Annotated[of.Positive, means("standard deviation of the entries of every matrix")],
    "gated": Annotated[bool, means("a gated perceptron")],
    "mask": Annotated[Literal["causal", "full"], means("who is heard: earlier tokens and itself, or all")],
    "positions": Annotated[str, means("positions: learned, rope, alibi or none")],
    "blocks": Annotated[Any, means("blocks of equal size the tokens are cut into, or one position per token")],
    "shares": Annotated[Any, means("masses of the blocks; those of their tokens by default", "θ")],
    "flow": Annotated[Literal["descent", "ascent"], means("which way the energy goes")],
    "summation": Annotated[
        Literal["auto", "dense", "spectral"], means("how pairs are summed: over all, or by harmonics (d ≤ 8)")
    ],
    "kind": of.Kind,
    "kernel": of.EnergyKernel,
}
"""What a parameter of that name means in every model that does not say otherwise."""


@cache
def record_of(build: Callable[..., Any]) -> type[Setting]:
    """The parameters of a builder as a record, in the order of its signature."""
    return joined_record([(p.name, _kind(p), _default(p)) for p in _signature(build).parameters.values()])


def joined_record(fields: list[tuple[str, Any, Any]]) -> type[Setting]:
    """A record of fields (name, type, default); those whose default is ``REQUIRED`` must be given."""
    ready = [(name, kind) if default is REQUIRED else (name, kind, default) for name, kind, default in fields]
    made: Any = msgspec.defstruct("Parameters", ready, bases=(Setting,), frozen=True, kw_only=True)
    return made


def _signature(build: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(build, eval_str=True)
    except NameError:  # names that are imported for type checkers only
        return inspect.signature(build)


def _default(parameter: inspect.Parameter) -> Any:
    value = parameter.default
    return tuple(value) if isinstance(value, list) else value


def _kind(parameter: inspect.Parameter) -> Any:
    """The annotated type; what may be left out is ``None`` by default."""
    said, default = parameter.annotation, _default(parameter)
    said = next((a for a in get_args(said) if a is not NoneType), said) if NoneType in get_args(said) else said
    plain = said if said in PLAIN else type(default) if isinstance(default, PLAIN) else Any
    shared = MEANINGS.get(parameter.name, plain)
    kind = said if get_origin(said) is Annotated else shared if _fits(default, shared) else plain
    return kind | None if default is None and kind is not Any else kind


def _fits(default: Any, kind: Any) -> bool:
    """Whether a shared meaning is that of this parameter: its default, if it has one, must be allowed."""
    if default is REQUIRED:
        return True
    try:
        msgspec.convert(default, kind | None)
    except msgspec.ValidationError:
        return False
    return True
