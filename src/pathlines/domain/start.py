"""Where a run starts: a law with its parameters (`clusters:4,0.1`), or a person's own tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from pathlines.domain.euclidean import Euclidean
from pathlines.domain.sphere import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import ArgumentError, UnknownNameError
from pathlines.foundation.precision import resolve_dtype
from pathlines.foundation.setting import Setting, changed, fields, means

IN_SPACE = ("rescaled", "frozen", "leader")
"""Models of R^d, for which uniform means a cube."""


class Nothing(Setting):
    """No parameters."""


class Simplex(Setting):
    """All pairs at one overlap."""

    overlap: of.Overlap = 0.0


class Cube(Setting):
    """Independent and uniform in [-w, w]^d."""

    half_width: Annotated[of.Positive, means("half the width", "w")] = 1.0


class Normal(Setting):
    """Independent, N(0, s² I) in R^d."""

    scale: Annotated[of.Positive, means("standard deviation", "s")] = 1.0


class VonMisesFisher(Setting):
    """Independent with density ∝ exp(κ⟨x, e₁⟩) on the sphere."""

    concentration: Annotated[of.NonNegative, means("concentration", "κ")] = 4.0


class Clusters(Setting):
    """Around uniform centres on the sphere, as evenly as possible."""

    count: Annotated[of.Count, means("clusters", "k")] = 3
    spread: Annotated[of.NonNegative, means("standard deviation around a centre", "s")] = 0.05


def _clusters(s: Clusters, key: Any, n: int, d: int, dtype: Any) -> Any:
    where, around = jax.random.split(key)
    count = min(s.count, n)
    sizes = [n // count + (k < n % count) for k in range(count)]
    return Sphere(d).clusters(around, Sphere(d).uniform(where, count, dtype), sizes, s.spread, dtype)


STARTS: dict[str, tuple[Setting, Callable[..., Any]]] = {
    "uniform": (Nothing(), lambda s, key, n, d, dtype: Sphere(d).uniform(key, n, dtype)),
    "sines": (Nothing(), lambda s, key, n, d, dtype: Sphere(d).sines(n, dtype)),
    "simplex": (Simplex(), lambda s, key, n, d, dtype: Sphere(d).simplex(n, s.overlap, dtype)),
    "cube": (Cube(), lambda s, key, n, d, dtype: Euclidean(d).cube(key, n, -s.half_width, s.half_width, dtype)),
    "normal": (Normal(), lambda s, key, n, d, dtype: Euclidean(d).gaussian(key, n, s.scale, dtype)),
    "von-mises-fisher": (
        VonMisesFisher(),
        lambda s, key, n, d, dtype: Sphere(d).von_mises_fisher(key, n, s.concentration, None, dtype),
    ),
    "clusters": (Clusters(), _clusters),
}
"""The parameters of each law, and the law: tokens (n, d) from a random key."""


def starting(text: str, n: int, d: int, dtype: str, model: str) -> Callable[[Any], Any]:
    """From a random key to the tokens of `name` or `name:value,value`, parameters in order and within their bounds."""
    name, _, values = text.partition(":")
    if name not in STARTS:
        raise UnknownNameError(f"Option --start must be one of {', '.join(STARTS)}, but is {text!r}.")
    resolve_dtype(dtype)
    known = [f.name for f in fields(type(STARTS[name][0]))]
    words = [w.strip() for w in values.split(",")] if values else []
    if len(words) > len(known):
        said = ", ".join(known) or "no parameters"
        raise ArgumentError(f"Option --start {name} takes {said}, but got {text!r}.")
    law = "cube" if name == "uniform" and model in IN_SPACE else name
    setting, draw = STARTS[law]
    setting = changed(f"start `{name}`", setting, dict(zip(known, map(_number, words))))
    return lambda key: draw(setting, key, n, d, dtype)


def _number(word: str) -> Any:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            pass
    return word


def given(tokens: np.ndarray, dtype: str) -> Callable[[Any], Any]:
    """From any key to these tokens."""
    rows = jnp.asarray(tokens, resolve_dtype(dtype))
    return lambda key: rows
