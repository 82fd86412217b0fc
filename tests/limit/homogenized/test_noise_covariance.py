"""The covariance of the common noise against nine digits of an independent program, and against sampling."""

import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.homogenized.noise_covariance import noise_covariance

VALUE = np.array([[0.9, 0.3, -0.2], [-0.1, 0.7, 0.4], [0.2, -0.3, 1.1]])
PAIRS = [(0, 0), (1, 1), (2, 2), (3, 3), (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
SIGMA = 3**-0.5

# d = 3, four tokens, β = 1.5, σ_V² = 1/3; centred: V̄ = Ā = 0, mean: V̄ = VALUE, Ā = 0.8 I. From a NumPy program that
# shares nothing with this package (84³ nodes, degree 52), the last digit uncertain by one.
CENTRED = {
    "products": [*[0.439029758] * 4, -0.168466354, 0.014653764, 0.050747476, 0.061315821, 0.203989932, 0.036400682],
    "traces": [*[0.292686505] * 4, -0.104089840, 0.005173191, 0.017146165, 0.020570217, 0.077985243, 0.012470251],
    "C12": [
        [-0.047756215, 0.013880438, -0.007434589],
        [0.014700652, -0.031767565, -0.014223588],
        [-0.018022701, -0.030995312, -0.024566060],
    ],
}
MEAN = {
    "products": [
        0.486741927, 0.506973054, 0.477058633, 0.483812194, -0.244649438, -0.016165145, 0.025309522, 0.088135505,
        0.267548039, 0.061794237,
    ],
    "traces": [
        0.549703729, 0.480641057, 0.546642989, 0.468802898, -0.259689323, -0.032287782, 0.005959799, 0.024423579,
        0.112916776, 0.010282265,
    ],
    "C12": [
        [-0.094523776, 0.033853610, -0.010883667],
        [0.036734082, -0.096363753, -0.045741085],
        [-0.025607826, -0.100482439, -0.068801794],
    ],
}  # fmt: skip
DRIFT = [
    [-0.051567917, -0.037658151, -0.090007826],
    [-0.286727976, 0.301446616, 0.086349132],
    [-0.047398301, 0.124117001, 0.020034597],
    [-0.081800146, 0.050648151, -0.090551166],
]


def tokens(n=4):
    i = np.arange(1, n + 1)
    x = np.stack([np.cos(i), np.sin(2 * i), np.cos(3 * i) + 0.3], axis=1)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize(("means", "reference"), [((0.0, 0.0), CENTRED), ((VALUE, 0.8), MEAN)])
def test_nine_digits(means, reference):
    found = noise_covariance(tokens(), 1.5, SIGMA, *means)
    rows, columns = np.array(PAIRS).T
    np.testing.assert_allclose(found.products[rows, columns], reference["products"], atol=2e-9)
    np.testing.assert_allclose(found.traces[rows, columns], reference["traces"], atol=2e-9)
    np.testing.assert_allclose(found.covariance[0, 1], reference["C12"], atol=2e-9)
    if means[1]:
        np.testing.assert_allclose(found.drift, DRIFT, atol=2e-9)
    else:
        np.testing.assert_allclose(found.drift, 0, atol=1e-15)
        gram, own = tokens() @ tokens().T, np.eye(4, dtype=bool)
        expected = SIGMA**2 * found.products * np.where(own, 2, 1 + gram**2)
        np.testing.assert_allclose(found.traces, expected, atol=1e-12)


def test_against_sampling_on_the_circle():
    """d = 2, three tokens, means of values and scores: 10⁵ heads in NumPy, each entry within 5 standard errors."""
    rng, count, beta = np.random.default_rng(3), 100_000, 1.2
    angles = np.array([0.3, 1.5, 4.0])
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    value, score = rng.normal(size=(2, 2, 2))
    found = noise_covariance(x, beta, 0.6, value, score, nodes=60, degree=40)
    weights = np.exp(beta * (x @ np.swapaxes(score + rng.normal(size=(count, 2, 2)), 1, 2)) @ x.T)
    m = weights / weights.sum(axis=-1, keepdims=True) @ x
    fields = np.einsum("aed,and->ane", value + 0.6 * rng.normal(size=(count, 2, 2)), m)
    fields = fields - np.sum(fields * x, axis=-1, keepdims=True) * x
    noise = fields - found.drift
    products = np.einsum("aie,ajf->aijef", noise, noise)
    assert np.all(np.abs(fields.mean(axis=0) - found.drift) < 5 * fields.std(axis=0) / np.sqrt(count))
    assert np.all(np.abs(products.mean(axis=0) - found.covariance) < 5 * products.std(axis=0) / np.sqrt(count) + 1e-9)


def test_arguments_are_checked():
    with pytest.raises(ArgumentError, match="unit"):
        noise_covariance(2 * tokens(), 1.0, 1.0)
    with pytest.raises(ArgumentError, match="nodes"):
        noise_covariance(np.eye(5), 1.0, 1.0)
    with pytest.raises(ArgumentError, match="degree"):
        noise_covariance(tokens(), 1.0, 1.0, nodes=20, degree=20)
