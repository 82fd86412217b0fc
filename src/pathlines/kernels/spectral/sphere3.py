"""The sphere of R^3: harmonics Y_lm = Q_l^m(z) (x + iy)^m without poles, m = 0..l, of mean square one.

z Q_l^m = a_{l+1,m} Q_{l+1}^m + a_{l,m} Q_{l-1}^m,  a_{l,m} = sqrt((l² - m²)/(4l² - 1)),  Q_m^m² = Π_{k≤m} 1 + 1/2k.

Tables are square, [l, m] with zeros for m > l: twice the numbers, but one recurrence in l for all m.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.kernels.spectral.circle import times


def sphere3_features(x: Float[Array, "3 b"], degree: int) -> Float[Array, "F b"]:
    """Re Y_lm for l, m = 0..L, then Im Y_lm. O(L²) per token."""
    count, tokens = degree + 1, x.shape[1]
    k, m = np.arange(count)[:, None], np.arange(count)
    below = m < k
    up = np.divide(1, _neighbour(k, m), where=below, out=np.zeros((count, count)))
    down = up * _neighbour(k - 1, m) * (m < k - 1)
    diagonal = np.diag(np.sqrt(np.cumprod(np.append(1.0, 1 + 0.5 / np.arange(1, count)))))
    rows = tuple(jnp.asarray(table, x.dtype)[..., None] for table in (up, down, diagonal))

    def rise(carry: tuple[Any, ...], row: tuple[Any, ...]) -> tuple[tuple[Any, ...], Array]:
        now, before = carry
        above = row[0] * x[2:] * now - row[1] * before + row[2]
        return (above, now), above

    none = jnp.zeros((count, tokens), x.dtype)
    _, polar = jax.lax.scan(rise, (none, none), rows)
    one = (jnp.ones_like(x[0]), jnp.zeros_like(x[0]))
    _, turns = jax.lax.scan(lambda p, _: (times(p, (x[0], x[1])), p), one, length=count)
    return jnp.concatenate([polar * turn[None] for turn in turns]).reshape(-1, tokens)


def sphere3_moments(x: Float[Array, "3 b"], masses: Float[Array, " b"], degree: int) -> Float[Array, " F"]:
    """Σ_j m_j Y_lm(y_j) in the order of ``sphere3_features``."""
    return jnp.matmul(sphere3_features(x, degree), masses, precision=jax.lax.Precision.HIGHEST)


def sphere3_values(x: Float[Array, "3 b"], series: Float[Array, "e F"], degree: int) -> Float[Array, "e b"]:
    """Σ_lm of the coefficients times ``sphere3_features``."""
    return jnp.matmul(series, sphere3_features(x, degree), precision=jax.lax.Precision.HIGHEST)


def sphere3_series(moments: Float[Array, " G"], spectrum: Float[Array, " L"]) -> Float[Array, "4 F"]:
    """Coefficients of U, A_1, A_2, A_3 in ``sphere3_features`` from the moments up to degree L + 1.

    U weighs the sources by m_j, A_c by m_j times a coordinate, and a coordinate times Y_lm is a sum of neighbours:
    (x + iy) Y_lm = b_{l+1,m+1} Y_{l+1,m+1} - b_{l,-m} Y_{l-1,m+1},  b_{l,m} = sqrt((l+m)(l+m-1)/(4l² - 1)).
    """
    count = spectrum.shape[0]
    k, m = np.arange(count)[:, None], np.arange(count)
    real, imag = moments.astype(float).reshape(2, count + 1, count + 1)
    table = jnp.pad(jax.lax.complex(real, -imag), 1)
    at = lambda dk, dm: table[1 + dk : 1 + dk + count, 1 + dm : 1 + dm + count]  # noqa: E731
    turned, beside = (lambda *of, f=f: jnp.asarray(f(*of), table.dtype) for f in (_turned, _neighbour))
    minus = turned(k + 1, m + 1) * at(1, 1) - turned(k, -m) * at(-1, 1)
    plus = jnp.where(m == 0, jnp.conj(minus), turned(k, m) * at(-1, -1) - turned(k + 1, 1 - m) * at(1, -1))
    third = beside(k + 1, m) * at(1, 0) + beside(k, m) * at(-1, 0)
    weights = spectrum[:, None] * jnp.asarray(np.where(m == 0, 1, 2) * (m <= k), spectrum.dtype)
    sums = (weights.astype(table.dtype) * c for c in (at(0, 0), (plus + minus) / 2, (plus - minus) / 2j, third))
    return jnp.stack([jnp.stack([c.real, -c.imag]).ravel() for c in sums]).astype(moments.dtype)


def _neighbour(k: np.ndarray, m: np.ndarray) -> np.ndarray:
    """a_{l,m}."""
    return np.sqrt(np.maximum(k * k - m * m, 0) / np.maximum(4.0 * k * k - 1, 1))


def _turned(k: np.ndarray, m: np.ndarray) -> np.ndarray:
    """b_{l,m}."""
    return np.sqrt(np.maximum((k + m) * (k + m - 1), 0) / np.maximum(4.0 * k * k - 1, 1))
