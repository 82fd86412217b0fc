"""Parameters of an estimator by name, as scikit-learn asks for them."""

from __future__ import annotations

import inspect
from typing import Any, Self

from pathlines.foundation.errors import ArgumentError


class EstimatorSettings:
    """Parameters are the arguments of ``__init__``, kept under their names."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters by name."""
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise ArgumentError(f"{type(self).__name__} has no parameter `{name}`; it has: {', '.join(known)}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        said = ", ".join(f"{n}={v!r}" for n, v in self.get_params().items())
        return f"{type(self).__name__}({said})"
