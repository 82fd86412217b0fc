"""What a person writes for a value: on the command line, in a field of a page, in an address."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any


def value_of(text: str) -> Any:
    """What a person typed: JSON, numbers separated by commas, .5 or inf; anything else is the text itself."""
    whole = re.sub(r"(?<![\w.])\.(?=\d)", "0.", text)
    for form in (whole, f"[{whole}]"):
        with suppress(json.JSONDecodeError, RecursionError):
            return json.loads(form)
    with suppress(ValueError):
        return float(text)
    return text
