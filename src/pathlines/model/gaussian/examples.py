"""Named weights in the plane: the settings behind the published pictures of Gaussian dynamics."""

from __future__ import annotations

import msgspec
import numpy as np

from pathlines.foundation.registry import Registry
from pathlines.foundation.vocabulary import Matrix
from pathlines.model.gaussian.closure import GaussianClosure, gaussian_closure

HALF = 2**-0.5


class Example(msgspec.Struct, frozen=True):
    """One head in the plane; ``scale`` multiplies the scores of all kinds but l2."""

    title: str
    value: Matrix
    query: Matrix
    key: Matrix
    scale: float = HALF

    def model(self, kind: str = "softmax") -> GaussianClosure:
        """The closure of that kind with these weights."""
        scale = {} if kind == "l2" else {"scale": self.scale}
        return gaussian_closure(kind, np.asarray(self.value), np.asarray(self.query), np.asarray(self.key), **scale)

    def by_rows(self, kind: str = "softmax") -> GaussianClosure:
        """Two heads, one for each row: C_h = e_h e_hᵀV and A_h = scale·K_hᵀQ_h; a row that is missing is zero."""
        value, query, key = np.asarray(self.value), np.zeros((2, 1, 2)), np.zeros((2, 1, 2))
        for h, (q, k) in enumerate(zip(self.query, self.key, strict=True)):
            query[h, 0], key[h, 0] = q, k
        values = np.stack([np.outer(np.eye(2)[h], value[h]) for h in range(2)])
        return gaussian_closure(kind, values, query, key, **({} if kind == "l2" else {"scale": self.scale}))

    @property
    def start(self) -> Matrix:
        """The round covariance of trace one, centre of the disc of starts."""
        return (0.5, 0.0), (0.0, 0.5)

    @property
    def score(self) -> np.ndarray:
        """A = scale·KᵀQ."""
        return self.scale * np.asarray(self.key).T @ np.asarray(self.query)


def disc_of_covariances(side: int, reach: float) -> np.ndarray:
    """½[[1+u, w], [w, 1-u]] for (u, w) on a side × side grid of [-reach, reach]², inside the disc u² + w² < 1."""
    line = np.linspace(-reach, reach, side)
    u, w = (x.ravel() for x in np.meshgrid(line, line))
    inside = u**2 + w**2 < 1 - 1e-9
    u, w = u[inside], w[inside]
    return np.stack([np.stack([1 + u, w], -1), np.stack([w, 1 - u], -1)], -2) / 2


EXAMPLES: Registry[Example] = Registry("example", "pathlines.model")

_IDENTITY = ((1.0, 0.0), (0.0, 1.0))
_QUERY = ((0.6764132657544725, 1.5210991859339182), (-0.5118762450490144, 1.150194635377595))
_KEY = ((-0.5907168066359194, -0.7687652516461853), (-0.33500916605030867, 0.09299944353450965))
_CONTRACTING = ((0.45805494822409054, 0.30834960696491165), (0.23148704503556228, 0.2774245517561259))
_LINE = ((0.4063236466758838, 0.913729223649989),)


def _negative(matrix: Matrix) -> Matrix:
    return tuple(tuple(-x for x in row) for row in matrix)


def _add(name: str, title: str, value: Matrix, query: Matrix, key: Matrix, scale: float = HALF) -> None:
    EXAMPLES.register(name, Example(title, value, query, key, scale))


_add(
    "zero",
    "convergence to zero",
    ((2.6693776102802937, -0.6915301722052816), (-0.6915301722052816, 2.6874461223198938)),
    _CONTRACTING,
    _negative(_CONTRACTING),
)
_add("line", "convergence to a line", _IDENTITY, _LINE, _negative(_LINE))
_add(
    "two-lines",
    "convergence to two lines",
    ((-0.34889445098943, 0.98370343335180), (0.58092283071714, 0.07028444085745)),
    _QUERY,
    _KEY,
)
_add(
    "blow-up",
    "blow-up",
    _IDENTITY,
    ((0.17407206219894, 0.48452074451908), (0.28021766219156, 1.30682141264678)),
    _IDENTITY,
    1.0,
)
_add(
    "both",
    "convergence or blow-up",
    ((1.83175300595879, -0.37688784393619), (0.34811234158601, -0.11628155656537)),
    _QUERY,
    _KEY,
)
_add("exponential", "exponential growth", ((0.0, 1.0), (1.0, 0.0)), ((0.0, 0.0), (1.0, 0.0)), _IDENTITY, 1.0)
