"""Fates in compiled C++ against the same steps in the engine."""

import numpy as np
import pytest

from pathlines.integrate import gaussian_fate
from pathlines.kernels.native import native_library
from pathlines.model.gaussian.closure import LinearGaussian, SoftmaxGaussian

pytestmark = pytest.mark.skipif(native_library() is None, reason="no C++ compiler here")


def weights(seed, count, heads, d):
    return np.random.default_rng(seed).standard_normal((2, count, heads, d, d)) / np.sqrt(heads)


def both_ways(models, starts, monkeypatch, **options):
    native = gaussian_fate.fates(models, starts, **options)
    monkeypatch.setattr(gaussian_fate, "native_serves", lambda dtype: False)
    return native, gaussian_fate.fates(models, starts, **options)


def check(native, portable):
    """Both take the same steps up to rounding, and about a hundred of them with rtol = 1e-9 each.

    A cloud is decided at the end of a step, and steps follow error estimates, of which rounding leaves few digits.
    """
    for one, other in zip(native, portable, strict=True):
        assert (one.kind, one.rank) == (other.kind, other.rank)
        assert one.scale_free == pytest.approx(other.scale_free, rel=1e-3)
        assert one.time == pytest.approx(other.time, rel=1e-7)
        assert (one.blow_up_time or 0) == pytest.approx(other.blow_up_time or 0, rel=1e-7)
        assert one.slope == pytest.approx(other.slope, abs=1e-5)
        np.testing.assert_allclose(one.eigenvalues, other.eigenvalues, atol=1e-7 * one.eigenvalues[0])


def test_explicit_and_stiff_steps(monkeypatch):
    """More clouds than fit in the lanes of two cores, of every kind; some take hundreds of stiff steps."""
    V, A = weights(3, 40, 1, 3)
    native, portable = both_ways([SoftmaxGaussian(v, a) for v, a in zip(V, A, strict=True)],
                                 np.stack([np.eye(3)] * 40), monkeypatch)  # fmt: skip
    assert len({f.kind for f in native}) >= 4
    assert max(f.scale_free for f in native) == 1e6
    check(native, portable)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "heads", "d", "r"), [(SoftmaxGaussian, 2, 2, 2), (LinearGaussian, 1, 3, 2), (SoftmaxGaussian, 1, 5, 5)]
)
def test_heads_kinds_and_low_rank(kind, heads, d, r, monkeypatch):
    """Few clouds go with the stiff method alone, from the first step on."""
    V, A = weights(11, 5, heads, d)
    starts = np.random.default_rng(1).standard_normal((5, d, r))
    check(*both_ways([kind(v, a) for v, a in zip(V, A, strict=True)], starts, monkeypatch, until=1e3))
