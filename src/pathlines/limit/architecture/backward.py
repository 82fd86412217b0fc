"""Gradients of an architecture at initialisation: a second Gram matrix, carried from the loss to the embeddings.

Γ_ij = E g_i·g_j, g_i = ∂loss/∂h_i (a total; forward Gram matrices are per coordinate). Branch by branch downwards,
Γ' in front of the sum and Γ behind it (derived; linear in Γ):

    pre, parallel   Γ = α²Γ' + N[B[Γ']]
    output          Γ = α²Γ' + B[s²N_f[Γ']]
    sandwich        Γ = α²Γ' + N[B[s²N_f[Γ']]]
    post            Γ̃ = N[Γ'],   Γ = α²Γ̃ + B[Γ̃]

with N the norm (``backward_norms``) and B attention's three paths or the perceptron (``backward_attention``,
``backward_perceptron``), at the Gram matrices of the forward pass (``backward_tape``). From both follow the gradients
of every matrix: σ²E‖∂W‖² is ⟨Γ', F⟩ for W_O and W_V alike, ab²⟨Γ'∘Y, T⟩ for W_Q and W_K alike.

The assumption is that of independent gradients: weights met on the way down are fresh. It is right where the gradient
at the top does not know the stack's weights (Yang, arXiv:1902.04760 and 2006.14548); random heads, cross-entropy at
initialisation. Rank collapse starves queries and keys (Noci et al., arXiv:2206.03126): here with the rate.

Post-norm: the typical norm of a seed (geometric mean). Else the mean square, and the typical norm is lower by
e^{-Var/4}, Var the spread of ln‖g‖² over seeds (``backward_spread``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pathlines.architecture.record import Architecture
from pathlines.limit.architecture.attention import AttendedGram
from pathlines.limit.architecture.backward_attention import attention_back, score_products
from pathlines.limit.architecture.backward_norms import below_norm
from pathlines.limit.architecture.backward_perceptron import MatrixGradient, perceptron_back
from pathlines.limit.architecture.backward_spread import fresh_variance
from pathlines.limit.architecture.backward_tape import Sublayer, Tape
from pathlines.limit.architecture.layer import LayerMap
from pathlines.limit.architecture.numbers import Numbers
from pathlines.limit.architecture.sampled import score_epsilon

_CAPPED = np.polynomial.hermite_e.hermegauss(64)
BARE = ("post", "output")
"""Placements whose branches see the stream itself."""
PATHS = ("skip", "value", "query", "key", "perceptron")


@dataclass(frozen=True)
class Descent:
    """Γ at every depth (L+1, starts, n, n), and of the first start: matrices, norms' gains, paths, spread by layer.

    ``paths``: shares of tr Γ by the way it came, (L, 5) in the order of ``PATHS``, attention before perceptron.
    ``variance``: Var ln tr Γ over seeds at every depth.
    """

    grams: np.ndarray
    matrices: dict[str, list[MatrixGradient]]
    gains: dict[str, np.ndarray]
    paths: np.ndarray
    variance: np.ndarray


class _Back(NamedTuple):
    """A branch on the way down: Γ at its input by path, and its matrices."""

    parts: dict[str, np.ndarray]
    matrices: dict[str, MatrixGradient]

    @property
    def gram(self) -> np.ndarray:
        return np.sum(list(self.parts.values()), axis=0)


def descended(tape: Tape, starts: np.ndarray, *, finite: bool = True) -> Descent:
    """From a stack of Γ_L down to the embeddings; O(n³) a branch."""
    a, layers = tape.maps.architecture, len(tape.entropy)
    gradients, variance = np.array(starts, float), 0.0
    grams, spreads = [gradients], [0.0]
    matrices: dict[str, list[MatrixGradient]] = {}
    gains = {kind: np.zeros(layers) for kind in tape.maps.kinds}
    paths = np.zeros((layers, len(PATHS)))
    for sub in reversed(tape.sublayers):
        kept, backs, inward = _below(sub.maps, sub, gradients, finite)
        found = kept + inward
        variance += fresh_variance(sub.maps.architecture, sub.maps, sub, gradients[0], kept[0], inward[0])
        parts = {name: gram for back in backs for name, gram in back.parts.items()}
        _share(paths[sub.layer], a, sub, kept[0], parts, finite)
        for back in backs:
            for name, gradient in back.matrices.items():
                matrices.setdefault(name, []).insert(0, gradient)
        gains[sub.kind][sub.layer] = _gain(sub.maps, sub, gradients[0], sum(gram[0] for gram in parts.values()))
        gradients = found
        if sub.kind == tape.maps.kinds[0]:
            grams.append(gradients)
            spreads.append(variance)
    return Descent(np.array(grams[::-1]), matrices, gains, paths, np.array(spreads[::-1]))


def _gain(maps: LayerMap[AttendedGram], sub: Sublayer, top: np.ndarray, inward: np.ndarray) -> float:
    """‖∂γ‖ of the norm before the branch, or after the sum."""
    a = maps.architecture
    square = np.sum(top * maps.settled(sub.after).gram) if a.placement == "post" else np.sum(inward * sub.x)
    return float(np.sqrt(max(float(square), 0.0))) / a.norm_gain


def _below(
    maps: LayerMap[AttendedGram], sub: Sublayer, gradients: np.ndarray, finite: bool
) -> tuple[np.ndarray, list[_Back], np.ndarray]:
    """What the skip keeps, the branches, and what they add to Γ."""
    a = maps.architecture
    top = gradients
    if a.placement == "post":
        top = below_norm(a, gradients, sub.after.gram, isotropic=False)
    kinds = ("attention", "perceptron") if sub.kind == "parallel" else (sub.kind,)
    backs = [_branch(maps, sub, kind, top, finite) for kind in kinds]
    inward = np.sum([back.gram for back in backs], axis=0)
    if a.placement not in BARE:
        inward = below_norm(a, inward, sub.stream.gram, finite=finite)
    return a.skip**2 * top, backs, inward


def _branch(maps: LayerMap[AttendedGram], sub: Sublayer, kind: str, top: np.ndarray, finite: bool) -> _Back:
    a = maps.architecture
    if a.placement in ("sandwich", "output"):
        top = _below_own_norm(maps, sub, kind, top, finite)
    if kind == "perceptron":
        gram, matrices = perceptron_back(a, sub.x, top)
        return _Back({"perceptron": gram}, matrices)
    return attention_gradients(maps, sub.x, top, sub.directions if finite else np.inf, sub.seed)


def _below_own_norm(
    maps: LayerMap[AttendedGram], sub: Sublayer, kind: str, top: np.ndarray, finite: bool
) -> np.ndarray:
    """Sandwich: the branch's own norm, f at s = 1; s stays in a."""
    a = maps.architecture
    residual = a.attention_residual if kind == "attention" else a.mlp_residual
    bare = maps.bare(kind, sub.x, sub.drawn)
    if residual == 0 or not np.all(np.diag(bare) > 0):
        return np.zeros_like(top)
    return below_norm(a, top, bare / residual**2, finite=finite)


def attention_gradients(
    maps: LayerMap[AttendedGram], x: np.ndarray, top: np.ndarray, directions: float, seed: int | None
) -> _Back:
    """Γ by path and the gradients of W_Q, W_K, W_V, W_O, divided by σ² in closed form."""
    a, numbers, sigma = maps.architecture, maps.numbers, maps.architecture.deviations
    found = attention_back(maps.attended, x, top, directions, seed)
    scale = logit_gain(a) if seed is None else 1.0
    power = numbers.attention
    squared: float | np.ndarray = scale * logit_square(a)
    if a.qk_norm:  # a score of cosines moves by the relative change of its token
        root = np.sqrt(np.diag(x) + score_epsilon(a))
        squared = squared / (root[:, None] * root)
    parts = {
        "value": power * found.value,
        "query": power * squared * found.query,
        "key": power * squared * found.key,
    }
    first, scores = top[0], score_products(a, x)
    bare = a.attention_residual**2 * a.attention_width * a.width
    heard, looked = float(np.sum(first * found.heard)), float(np.sum(first * scores * found.turned))
    heads = scale * a.logit_multiplier**2 * a.head_dim
    other = (a.width * sigma.key) ** 2, (a.width * sigma.query) ** 2
    if a.qk_norm:
        heads *= 1 - 1 / a.head_dim
        other = (1 / sigma.query**2 if sigma.query else 0.0), (1 / sigma.key**2 if sigma.key else 0.0)
    matrices = {
        "query": MatrixGradient(power * heads * other[0] * looked, x, first * found.turned),
        "key": MatrixGradient(power * heads * other[1] * looked, x, found.key[0]),
        "value": MatrixGradient(bare * sigma.output**2 * heard, x, found.value[0]),
        "output": MatrixGradient(bare * sigma.value**2 * heard, found.heard, first),
    }
    return _Back(parts, matrices)


def logit_square(a: Architecture) -> float:
    """b² before any cap."""
    return Numbers.of(a.changed(logit_cap=0.0)).b ** 2 if a.logit_cap else Numbers.of(a).b ** 2


def logit_gain(a: Architecture) -> float:
    """E sech⁴(bz/c): what a cap c leaves of the squared slope of a logit."""
    if not a.logit_cap:
        return 1.0
    nodes, weights = _CAPPED
    return float(
        weights @ np.cosh(np.clip(np.sqrt(logit_square(a)) * nodes / a.logit_cap, -300, 300)) ** -4.0 / weights.sum()
    )


def _share(
    row: np.ndarray, a: Architecture, sub: Sublayer, kept: np.ndarray, parts: dict[str, np.ndarray], finite: bool
) -> None:
    """Shares of tr Γ; the skip's is what passed both branches."""
    sizes = {"skip": float(np.trace(kept))}
    for name, gram in parts.items():
        inward = gram[0] if a.placement in BARE else below_norm(a, gram[0], sub.stream.gram, finite=finite)
        sizes[name] = float(np.trace(inward))
    total = sum(sizes.values())
    passed = sizes["skip"] / total
    if sub.kind == "attention":  # the perceptron above came first
        row[1:] *= passed
        row[0] = passed * row[0] if row[0] else passed
    else:
        row[0] = passed
    for name in sizes.keys() - {"skip"}:
        row[PATHS.index(name)] += sizes[name] / total
