"""Common shapes are compiled while the first person reads: afterwards a slider that moves waits for no compiler."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from pathlines.claim import CLAIMS
from pathlines.foundation.errors import PathlinesError
from pathlines.view.site.computing import Answers
from pathlines.view.site.drawable import drawable_models
from pathlines.view.site.presets import PRESETS
from pathlines.view.site.runs import frames_of
from pathlines.view.site.state import state_of

PATIENCE = 0.2
"""Seconds between looks at whether anybody waits for an answer."""


def warm(answers: Answers, presets: tuple[Any, ...] = PRESETS) -> None:
    """Run each preset once, whenever nobody waits; claims are read first, which takes two seconds."""
    list(CLAIMS)
    drawable_models()
    for preset in presets:
        while not answers.idle:
            time.sleep(PATIENCE)
        with contextlib.suppress(PathlinesError, RuntimeError):
            frames_of(state_of(preset.words).checked())
