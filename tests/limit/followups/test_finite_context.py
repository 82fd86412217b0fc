"""Finite context: reference values, sampled contexts at every sharpness, linear response, and what is refused."""

import math

import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.followups.finite_context import (
    context,
    context_error,
    context_needed,
    context_spread,
    error_constant,
    nearest_distance,
)

Q = np.linalg.norm([0.6, -0.3, 0.2, 0.4])


def test_reference_values():
    """Numbers of an independent computation: the constant, and n E|e|² at n = 100, 400 to its own noise."""
    assert error_constant(Q, 4) == pytest.approx(8.907264854915, abs=6e-13)
    assert 100 * context_error(Q, 100) ** 2 == pytest.approx(8.59, abs=0.02)
    assert 1e6 * context_error(Q, 1e6) ** 2 == pytest.approx(8.907264854915, rel=1e-5)


@pytest.mark.parametrize(("r", "n"), [(0.0, 7), (0.8, 5), (2.0, 50), (3.0, 20)])
def test_exact_error_vs_samples(r, n):
    """40000 contexts, 5 standard errors: where the Gaussian law holds, and where few keys take all attention."""
    rng = np.random.default_rng(4)
    keys = rng.standard_normal((40_000, n, 3))
    scores = r * keys[..., 0]
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    said = np.einsum("kn,knd->kd", weights, keys) / weights.sum(axis=1)[:, None] - [r, 0, 0]
    squares = np.sum(said**2, axis=1)
    assert abs(squares.mean() - context_error(r, n, 3) ** 2) < 5 * squares.std() / 200


def test_one_key_and_none_too_sharp():
    assert context_error(1.3, 1, 5) == pytest.approx(math.sqrt(5 + 1.3**2))  # the key itself, minus q
    assert context_error(0.0, 64, 5) == pytest.approx(math.sqrt(5 / 64))


def test_context_needed_is_the_inverse():
    for r, error in ((0.3, 0.2), (1.2, 0.05), (3.0, 0.1)):
        assert context_error(r, context_needed(r, error)) == pytest.approx(error, rel=1e-6)
    assert context_needed(1.0, 9.0) == 1.0
    assert math.isinf(context_needed(6.0, 1e-6))


def test_linear_response_along_depth():
    """The end of the infinite-context path, to the digits given, and √n·rms near .56."""
    end, size = context_spread([[0.5, 0.2], [0.0, 0.3]], -0.5 * np.eye(2), [1.0, 0.5], 1.0, 8, 10)
    np.testing.assert_allclose(end, [0.82064204, 0.3709956], atol=6e-8)
    assert size == pytest.approx(0.5668, abs=1e-3)
    _, short = context_spread([[0.5, 0.2], [0.0, 0.3]], np.eye(2), [1.0, 0.5], 1e-3, 8, 2)
    h = np.array([[0.5, 0.2], [0.0, 0.3]]).T @ [1.0, 0.5]
    assert short / 1e-3 == pytest.approx(math.sqrt(error_constant(np.linalg.norm(h), 2)), rel=5e-3)


def test_nearest_point_vs_samples():
    points = np.random.default_rng(5).random((4000, 200, 3)) - 0.5
    found = np.linalg.norm(points, axis=2).min(axis=1)
    assert abs(found.mean() - nearest_distance(200, 3)) < 5 * found.std() / math.sqrt(4000)


def test_sentences():
    good, few, frozen = context(1.2, 0.05), context(3.0, 0.1), context(3.0, n=50)
    assert good.regime == "gaussian" and good.n == pytest.approx(9184, rel=0.01) and "holds here" in good.sentence
    assert few.regime == "few" and "a few keys decide" in few.sentence and few.n < few.gaussian_n
    assert frozen.regime == "frozen" and "no resolution" in frozen.sentence
    assert "more than 10^18" in context(6.0, 1e-6).sentence
    assert context(1.2, n=1000).error == pytest.approx(0.1494, abs=1e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: context(1.0), "`n` must be given without"),
        (lambda: context(1.0, 0.1, n=5), "`n` must be given without"),
        (lambda: context(-1.0, 0.1), "`query_norm` must be a finite number ≥ 0 and ≤ 6"),
        (lambda: context(1.0, 0.0), "`error` must be a finite number > 0"),
        (lambda: context(1.0, n=0), "`n` must be a finite number ≥ 1"),
        (lambda: context(1.0, 0.1, d=0), "`d` must be an integer ≥ 1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
