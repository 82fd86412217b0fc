"""Gradients through a random perceptron: Γ at its input, and the gradients of its matrices (derived).

    plain   B = a_m σ_w²κ̇             W_2 : ⟨Γ', a_m κ⟩              W_1 : a_m ⟨Γ'∘X, σ_w²κ̇⟩
    gated   B = a_m σ_w²[κ_g + σ_g²X κ̇_g]     W_2, W_up : ⟨Γ', a_m σ_w² X κ_g⟩     W_gate : a_m σ_w² ⟨Γ'∘X∘X, σ_g²κ̇_g⟩

B∘Γ' is the Gram matrix at the input; the rest is σ²E‖∂W‖². Off the diagonal κ̇(ρ) < κ̇(1): perceptrons turn what
gradients of different tokens share into what they do not. Every law is divided by σ² in closed form, so that a matrix
that starts at zero has its gradient too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pathlines.architecture.record import Architecture
from pathlines.limit.architecture.numbers import Numbers
from pathlines.limit.architecture.perceptron import perceptron_gram, perceptron_slopes


class MatrixGradient(NamedTuple):
    """E‖∂W‖² and what decides the first step: Gram matrices of inputs and of output gradients, each up to a factor."""

    square: float
    inputs: np.ndarray
    outputs: np.ndarray


class PerceptronBack(NamedTuple):
    """Γ at the input of the branch (a stack as given), and its matrices by name."""

    gram: np.ndarray
    matrices: dict[str, MatrixGradient]


def perceptron_back(architecture: Architecture, x: np.ndarray, gradients: np.ndarray) -> PerceptronBack:
    """From a stack of Gram matrices Γ' in front of the branch; matrices are those of the first; O(n²) each."""
    a, numbers, sigma = architecture, Numbers.of(architecture), architecture.deviations
    found, top = perceptron_slopes(a, x), gradients[0]
    outer = a.mlp_residual**2 * a.mlp_width
    branch = perceptron_gram(a, x).gram
    if not a.gated:
        outputs = top * found.slope / max(numbers.sigma_w, 1e-300) ** 2
        inward = outer * sigma.mlp_out**2 * a.width * float(np.sum(outputs * x))
        matrices = {
            "mlp_in": MatrixGradient(inward, x, outputs),
            "mlp_out": MatrixGradient(outer * float(np.sum(top * branch)), branch, top),
        }
        return PerceptronBack(numbers.perceptron * found.slope * gradients, matrices)
    power = numbers.perceptron * numbers.sigma_w**2
    up, gate = top * found.kernel, top * x * found.slope / max(numbers.sigma_gate, 1e-300) ** 2
    matrices = {
        "mlp_in": MatrixGradient(numbers.perceptron * a.width * float(np.sum(up * x)), x, up),
        "mlp_gate": MatrixGradient(power * a.width * float(np.sum(gate * x)), x, gate),
        "mlp_out": MatrixGradient(outer * float(np.sum(top * branch)), branch, top),
    }
    return PerceptronBack(power * (found.kernel + x * found.slope) * gradients, matrices)
