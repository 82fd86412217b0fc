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
    corner_excess,
    error_constant,
    hardest_query,
    law_holds_from,
    law_ratio,
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


@pytest.mark.parametrize(("n", "d", "least"), [(3, 2, 8e-5), (3, 3, 8e-4), (10, 40, 0.1)])
def test_nearest_point_with_corners_vs_samples(n, d, least):
    """A few points, of which the nearest may be in a corner: exact too, to five standard errors."""
    points = np.random.default_rng(6).random((8000, n, d)) - 0.5
    found = np.linalg.norm(points, axis=2).min(axis=1)
    more = corner_excess(n, d)
    assert abs(found.mean() - nearest_distance(n, d) - more) < 5 * found.std() / math.sqrt(8000)
    outside = (1 - math.pi ** (d / 2) / math.gamma(d / 2 + 1) / 2**d) ** n
    assert least < more < (math.sqrt(d) - 1) / 2 * outside


def test_corners_in_closed_form():
    """One point of the square: its mean distance to the centre is (√2 + ln(1 + √2))/6; a line has no corners."""
    mean = (math.sqrt(2) + math.log(1 + math.sqrt(2))) / 6
    assert nearest_distance(1, 2) + corner_excess(1, 2) == pytest.approx(mean, rel=1e-6)
    assert corner_excess(3, 1) == 0.0
    assert corner_excess(100, 8) < 1e-4 * nearest_distance(100, 8)


def test_hardest_query():
    """At the start where the flow contracts; on a line, x' = vasx, s' = 2vas², h² = a²sx² grows to the end."""
    score = np.array([[0.5, 0.2], [0.0, 0.3]])
    assert hardest_query(score, -0.5 * np.eye(2), [1.0, 0.5], 1.0) == pytest.approx(np.linalg.norm(score.T @ [1, 0.5]))
    s = 1 / (1 - 2 * 0.5 * 0.4)
    assert hardest_query([[0.4]], [[0.5]], [1.5], 1.0) == pytest.approx(0.4 * 1.5 * s, rel=1e-7)


def test_where_the_law_holds():
    """The ratio of the exact error to the law: at a sharp query, for one key, and where it is said to begin."""
    found = [law_ratio(4.0, math.exp(16 * c)) for c in (1.25, 1.5, 1.75, 2.0)]
    np.testing.assert_allclose(found, [0.237, 0.517, 0.796, 0.950], atol=1e-3)
    assert law_ratio(1.2, 1e13) == pytest.approx(1, rel=1e-9)  # below 1e-12 the integrals have lost the error
    assert law_ratio(2.0, 2.9e9) == pytest.approx(1, rel=1e-5)  # they meet the law where it takes over
    assert law_ratio(1.3, 1.0) == pytest.approx(math.exp(-(1.3**2) / 2))
    assert law_ratio(1.5, law_holds_from(1.5, 1), 1) == pytest.approx(0.95, abs=1e-6)
    assert law_holds_from(0.0) == 1.0 and math.isinf(law_holds_from(6.0))
    assert context(1.5, n=4 * math.exp(4.5), d=1).regime == "few"  # a mean square 38 % below the law
    assert context(4.0, n=math.exp(34)).regime == "gaussian"
    assert context(0.0, n=1).regime == context(0.001, n=3).regime == "gaussian"


def test_whole_keys():
    """Rounded up, and one key is one key."""
    assert context(0.0, 1.09).n == 4 and "n = 4 keys" in context(0.0, 1.09).sentence
    assert context(0.0, 0.5).n == 16
    assert "a single key leaves 3.61 already" in context(3.0, 100.0).sentence
    assert context(0.0, n=1).sentence.startswith("n = 1 key resolves")


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
