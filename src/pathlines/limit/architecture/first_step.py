"""The first step of training: how far each matrix moves what it makes, under SGD and under Adam (derived).

A matrix of fan-in N and fan-out N', inputs of Gram matrix X and output gradients of Gram matrix Δ has coherence
χ = tr(XΔX)/(tr X ⟨X,Δ⟩), about 1/n for independent tokens and 1 where tokens or gradients coincide (and 1/D more in
finite width). The relative root mean square change of its own output after one step of rate η:

    SGD     η ‖∂W‖ √χ/(σ √N')               weights: η‖∂W‖/(σ√(NN'))
    Adam    (η/σ) √(cNχ + 1 − c), c = 2/π   weights: η/σ, whatever the gradient (its first step is a sign)

c = (E|φ|)²/Eφ² for W_2. Adam's step does not see how large gradients are, but how alike: smaller initial weights and
collapsed tokens make it larger, which is why training warms up. Where the root mean square entry of a gradient is not
large against Adam's ε the matrix does not move at all. Overestimates W_1 and W_Q by up to a quarter (their entries are
not Gaussian).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pathlines.architecture.record import Architecture
from pathlines.limit.architecture.backward_perceptron import MatrixGradient
from pathlines.limit.architecture.numbers import Numbers
from pathlines.limit.architecture.perceptron import absolute_share

OPTIMISERS = ("adam", "sgd")
ADAM_EPSILON = 1e-8


class FirstStep(NamedTuple):
    """Of one matrix: coherence χ, relative change of the weights and of the output, root mean square entry of ∂W."""

    coherence: float
    weights: float
    output: float
    entry: float


def matrix_shape(architecture: Architecture, name: str) -> tuple[int, int]:
    """(fan-in, fan-out)."""
    a = architecture
    heads, pairs = a.attention_width, a.kv_heads * a.head_dim
    return {
        "query": (a.width, heads), "key": (a.width, pairs), "value": (a.width, pairs), "output": (heads, a.width),
        "mlp_in": (a.width, a.mlp_width), "mlp_gate": (a.width, a.mlp_width), "mlp_out": (a.mlp_width, a.width),
    }[name]  # fmt: skip


def coherence(gradient: MatrixGradient, directions: float = np.inf) -> float:
    """χ of a matrix; 0 where it has no gradient."""
    x, delta = gradient.inputs, gradient.outputs
    size = float(np.trace(x) * np.sum(x * delta))
    return min(float(np.sum((x @ delta) * x)) / size + 1 / directions, 1.0) if size > 0 else 0.0


def first_step(
    architecture: Architecture, name: str, gradient: MatrixGradient, rate: float, optimiser: str, directions: float
) -> FirstStep:
    """One step of ``optimiser`` at rate η; O(n³) for the coherence."""
    a, sigma = architecture, getattr(architecture.deviations, name)
    fan_in, fan_out = matrix_shape(a, name)
    norm, chi = math.sqrt(max(gradient.square, 0.0)), coherence(gradient, directions)
    entry = norm / math.sqrt(fan_in * fan_out)
    if sigma == 0:
        return FirstStep(chi, np.inf, np.inf, entry)
    if optimiser == "sgd":
        return FirstStep(chi, rate * entry / sigma, rate * norm * math.sqrt(chi / fan_out) / sigma, entry)
    c = 2 / math.pi if name != "mlp_out" else absolute_share(a.activation, hidden_size(a))
    return FirstStep(chi, rate / sigma, rate / sigma * math.sqrt(c * fan_in * chi + 1 - c), entry)


def hidden_size(architecture: Architecture) -> float:
    """σ_w of the activated units at inputs of mean square one."""
    numbers = Numbers.of(architecture)
    return numbers.sigma_gate if architecture.gated else numbers.sigma_w
