"""One layer applied again and again (ALBERT): its branches add up coherently, so similarity grows faster.

Near-uniform attention sends every token the same W x̄, W = W_O W_V, and a perceptron acts on each token through its
linear part L. A post-normalised layer is then, up to lengths, linear: differences of tokens are multiplied by I + L,
their mean by I + L + W. For Gaussian matrices of wide models (derived; Ginibre: E|M^k x|² = v^k|x|², mixed
powers vanish)

    E|(I + M)^ℓ x|² = f_ℓ(v)|x|²,    f_ℓ(v) = Σ_k C(ℓ,k)² v^k,

with v = a_L for differences and a + a_L for the mean, where fresh layers have (1 + v)^ℓ = Σ_k C(ℓ,k) v^k. The Gram
matrix after ℓ layers is proportional to

    f_ℓ(a_L)(x_i·x_j - |x̄|²) + f_ℓ(a + a_L)|x̄|².

Left out: the logits (b ≪ 1), the perceptron's mean and curvature, fluctuations over seeds of order d^{-1/2}. Cost O(n²)
a layer.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, logsumexp

from pathlines.architecture.record import Architecture
from pathlines.foundation.errors import ArgumentError, finite_number, positive_integer
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.limit.architecture.branch import Stream, stream_of
from pathlines.limit.architecture.numbers import Numbers
from pathlines.limit.architecture.perceptron import perceptron_gram

SOURCES = (HOMOGENIZED,)
_STEP = 1e-3


def log_coherent_growth(layers: int, variance: float) -> float:
    """ln f_ℓ(v) = ln Σ_k C(ℓ,k)² v^k; about 2ℓ√v once ℓ√v ≫ 1."""
    count = positive_integer("layers", layers, least=0)
    v = finite_number("variance", variance, low=0.0)
    if v == 0 or count == 0:
        return 0.0
    k = np.arange(count + 1)
    return float(logsumexp(2 * (gammaln(count + 1) - gammaln(k + 1) - gammaln(count - k + 1)) + k * np.log(v)))


def linear_power(architecture: Architecture) -> float:
    """a_L = a_m κ'(0): the power of the perceptron's linear part at inputs of mean square one."""
    if not architecture.mlp_width:
        return 0.0
    up, down = (perceptron_gram(architecture, np.array([[1.0, rho], [rho, 1.0]])).gram[0, 1] for rho in (_STEP, -_STEP))
    return Numbers.of(architecture).perceptron * float(up - down) / (2 * _STEP)


def iterated(architecture: Architecture, gram: np.ndarray, layers: int) -> Stream:
    """Cosines and mean squares after that many applications of one layer to a stream of Gram matrix ``gram``."""
    if architecture.placement != "post" or architecture.mask != "full":
        raise ArgumentError("The theory of a shared layer is that of post-normalisation without a mask.")
    if layers == 0:
        return stream_of(gram)
    a, linear = Numbers.of(architecture).attention, linear_power(architecture)
    common = float(np.mean(gram))
    gain = np.exp(log_coherent_growth(layers, a + linear) - log_coherent_growth(layers, linear))
    cosines = stream_of(gram - common + gain * common).cosines
    return Stream(cosines, np.full(len(gram), architecture.norm_gain**2))
