"""What we look at."""

from pathlines.foundation.namespace import namespace

_OBSERVE = "pathlines.integrate.observe"

namespace(
    __name__,
    lambda: {
        "OBSERVABLES": _OBSERVE,
        "Observable": _OBSERVE,
        "observable": _OBSERVE,
        "tokens": f"{_OBSERVE}:positions",
    },
)
