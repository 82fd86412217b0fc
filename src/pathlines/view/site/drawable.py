"""Which models a page can draw: those whose tokens are points of the circle, the sphere, the plane or space."""

from __future__ import annotations

from functools import cache

from pathlines.foundation.errors import PathlinesError
from pathlines.model import MODELS
from pathlines.sweep.request import build
from pathlines.view.site.presets import usual
from pathlines.view.site.state import state_of

PAIRS = ("circle-density", "wide-shallow", "synchronising-pair")
"""Models whose state has tokens, but starts from something else than tokens."""


@cache
def drawable_models() -> tuple[str, ...]:
    """Names of models that can be shown, self-attention first."""
    found = [name for name in MODELS if name not in PAIRS and _shows_tokens(name)]
    return tuple(sorted(found, key=lambda name: (name not in ("sa", "usa"), name)))


def _shows_tokens(name: str) -> bool:
    from pathlines.view.site.runs import check_work

    try:
        state = state_of(usual(name))
        check_work(state)
        return build(state.request()).has_tokens
    except PathlinesError:
        return False


def offered_models(shown: str) -> tuple[str, ...]:
    """The same for a list on a page, which waits for nobody (all, before they are known), and the one shown."""
    known = drawable_models() if drawable_models.cache_info().currsize else tuple(MODELS)
    return known if shown in known else (shown, *known)
