"""Where an architecture can be trained: its gradients over residual power and logit scale (derived).

Both branches' residual factors times √x turn their powers a by x; the logit multiplier times y turns b by y. Post-norm
stacks lose ranks and private gradients beyond aL of about 5; sharp attention makes gradients explode beyond b of about
3 to 6, pre- and post-norm alike; where branches are weak (a far below 1/L) sharp attention is harmless.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pathlines.architecture.read import Source, architecture_of
from pathlines.architecture.record import Architecture
from pathlines.foundation.errors import finite_array, require
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.limit.architecture.gradients import predict_gradients
from pathlines.limit.architecture.start import Tokens

SOURCES = (HOMOGENIZED,)


class GradientPhases(NamedTuple):
    """Over (powers, logits): labels, cosine of the last layer, ĝ_0/ĝ_L, Ψ, and ‖∂W_Q‖/‖∂W_V‖ of the last layer."""

    powers: np.ndarray
    logits: np.ndarray
    labels: tuple[tuple[tuple[str, ...], ...], ...]
    cosine: np.ndarray
    relative: np.ndarray
    private: np.ndarray
    queries: np.ndarray


def gradient_phases(
    architecture: Source, powers: Sequence[float], logits: Sequence[float], tokens: Tokens | None = None
) -> GradientPhases:
    """The phase diagram around an architecture, one prediction for each pair.

    Args:
        architecture: a config.json, TOML file or folder, the fields of a configuration, six numbers, or the record.
        powers: factors of the power of both branches; 1 is the architecture's own.
        logits: factors of the logit scale.
        tokens: token ids, or how many different tokens; 64 (or the context) by default.

    A second a pair at 24 layers where heads are drawn, a tenth elsewhere.
    """
    a = architecture_of(architecture)
    axes = []
    for name, values in (("powers", powers), ("logits", logits)):
        found = finite_array(name, values, ("k",)).astype(float)
        require(len(found) > 0 and bool(np.all(found > 0)), name, "hold positive factors", values)
        axes.append(found)
    rows = []
    for x in axes[0]:
        scale = float(np.sqrt(x))
        changed = a.changed(attention_residual=scale * a.attention_residual, mlp_residual=scale * a.mlp_residual)
        rows.append([predict_gradients(_sharper(changed, float(y)), tokens) for y in axes[1]])
    table = lambda read: np.array([[read(g) for g in row] for row in rows])  # noqa: E731
    return GradientPhases(
        axes[0],
        axes[1],
        tuple(tuple(g.labels for g in row) for row in rows),
        table(lambda g: g.cosine[-1]),
        table(lambda g: g.relative[0] / g.relative[-1]),
        table(lambda g: g.transmission),
        table(lambda g: g.matrices["query"][-1] / max(g.matrices["value"][-1], 1e-300)),
    )


def _sharper(a: Architecture, factor: float) -> Architecture:
    return a.changed(logit_multiplier=factor * a.logit_multiplier)
