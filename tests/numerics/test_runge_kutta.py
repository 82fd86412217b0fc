"""Order four, measured against an exact rotation and its phase."""

import numpy as np

from pathlines.numerics.runge_kutta import rk4_step


def turned(steps):
    state = (np.array([1.0, 0.0]), np.array(0.0))
    for _ in range(steps):
        state = rk4_step(lambda x, phase: (np.array([-x[1], x[0]]), 1 + 0 * phase), state, 1 / steps)
    return state


def test_errors_fall_by_two_to_the_fourth():
    """The error of a rotation is C h⁴ (1 + O(h)): halving h = 1/20 gives 16 within 5 %; a constant rate is exact."""
    exact = np.array([np.cos(1), np.sin(1)])
    coarse, fine = (np.linalg.norm(turned(n)[0] - exact) for n in (20, 40))
    np.testing.assert_allclose(coarse / fine, 16, rtol=0.05)
    np.testing.assert_allclose(turned(20)[1], 1, rtol=1e-15 * 20)
