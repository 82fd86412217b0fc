"""Fields of a page from typed settings: what a field is called, means and allows is said where the setting is declared.

Numbers have a slider beside a field that takes what the slider does not reach; words that exclude each other are a
list; matrices are written as on the command line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import inspect

from pathlines.foundation.setting import Field, fields
from pathlines.view.site.elements import box, words
from pathlines.view.site.state import written

THROTTLE = 0.08
"""Seconds between two values of a slider that is being moved."""
REACH = 5.0
"""How far a slider without a bound goes beyond the usual value."""
STEPS = 200.0
RANGES = {"seed": (0.0, 20.0, 1.0), "frames": (11.0, 501.0, 10.0), "n": (2.0, 500.0, 1.0), "until": (0.5, 60.0, 0.5)}
"""Sliders whose bounds are those of the arithmetic, and say nothing of what one would look at."""
Change = Callable[[str, str], None]


class Range(NamedTuple):
    """What a slider covers."""

    low: float
    high: float
    step: float


class Kind(NamedTuple):
    """How a field is asked for."""

    asked: Literal["number", "words", "flag", "text"]
    choices: tuple[str, ...] = ()
    whole: bool = False
    low: float | None = None
    high: float | None = None


def kinds_of(record: msgspec.Struct) -> dict[str, tuple[Field, Kind]]:
    """Every field with how it is asked for."""
    info: Any = inspect.type_info(type(record))
    pairs = zip(info.fields, fields(type(record)))
    return {f.name: (said, _kind(f.type, getattr(record, f.name))) for f, said in pairs}


def _kind(kind: Any, usual: Any = None) -> Kind:
    match kind:
        case inspect.Metadata():
            return _kind(kind.type, usual)
        case inspect.UnionType():
            others = [t for t in kind.types if not isinstance(t, inspect.NoneType)]
            return _kind(others[0], usual) if len(others) == 1 else Kind("text")
        case inspect.IntType() | inspect.FloatType():
            whole = isinstance(kind, inspect.IntType)
            return Kind("number", (), whole, _first(kind.ge, kind.gt), _first(kind.le, kind.lt))
        case inspect.LiteralType():
            return Kind("words", tuple(map(str, kind.values)))
        case inspect.BoolType():
            return Kind("flag")
        case inspect.AnyType() if isinstance(usual, (int, float)):
            return Kind("number")  # a number or a matrix: the slider is for the number
    return Kind("text")


def _first(*values: float | None) -> float | None:
    return next((float(v) for v in values if v is not None), None)


def range_of(name: str, kind: Kind, usual: Any) -> Range:
    """A slider from bound to bound, or five times as far as the usual value, in round steps."""
    if name in RANGES:
        return Range(*RANGES[name])
    centre = float(usual) if isinstance(usual, (int, float)) else 1.0
    far = REACH * max(abs(centre), 1.0 if kind.whole or abs(centre) >= 1 or centre == 0 else abs(centre))
    low = kind.low if kind.low is not None and kind.low >= -4 * far else -far
    high = kind.high if kind.high is not None and kind.high <= 4 * far else far
    step = 1.0 if kind.whole else _round((high - low) / STEPS)
    return Range(low, max(high, low + step), step)


def _round(step: float) -> float:
    """The nearest 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(float(f"{m * power:.6g}") for m in (1, 2, 5, 10) if m * power >= 0.999 * step)


class Controls:
    """The fields of a record, which tell ``change(name, text)`` what a person does; each has room for an error."""

    def __init__(self, change: Change, ranges: Mapping[str, Range] | None = None) -> None:
        self.change = change
        self.ranges = ranges or {}
        self.errors: dict[str, Any] = {}
        self.fields: dict[str, list[Any]] = {}

    def of(self, record: Any, names: list[str] | None = None, usual: Any = None) -> None:
        """Fields for those of a record, by default all."""
        known = kinds_of(record if usual is None else usual)
        for name in names if names is not None else list(known):
            said, kind = known[name]
            value = getattr(record, name)
            self.one(said, kind, value, getattr(usual, name) if usual is not None else value)

    def one(self, said: Field, kind: Kind, value: Any, usual: Any) -> None:
        """One field."""
        tell = self._teller(said.name)
        hint = said.meaning + (f" ({said.unit})" if said.unit else "")
        limits = said.allowed.removesuffix(" or null")
        with box(classes=f"field {kind.asked}", title=f"{said.name}: {hint}; {limits}"):
            with box("label", "name", for_=f"f-{said.name}"):
                words(said.symbol or said.name, "b")
                words(hint, "span", "meaning")
            made = self._asked(said.name, kind, value, usual, tell, hint)
            self.fields[said.name] = made
            self.errors[said.name] = words("", "p", "error", role="alert", id=f"e-{said.name}")

    def _asked(self, name: str, kind: Kind, value: Any, usual: Any, tell: Any, hint: str) -> list[Any]:
        text = "" if value is None else written(msgspec.to_builtins(value))
        named = {"id": f"f-{name}", "aria_describedby": f"e-{name}"}
        match kind.asked:
            case "number":
                return self._number(name, kind, text, usual, tell, named, hint)
            case "flag":
                tick = box("input", type="checkbox", checked=text == "true", **named)
                tick.on("change", tell, js_handler="(e) => emit(String(e.target.checked))")
                return [tick]
            case "words":
                with box("select", **named) as select:
                    for choice in kind.choices:
                        words(choice, "option", value=choice, selected=choice == text)
                select.on("change", tell, js_handler="(e) => emit(e.target.value)")
                return [select]
        field = box("input", type="text", value=text, placeholder="as usual", spellcheck="false", **named)
        field.on("change", tell, js_handler="(e) => emit(e.target.value)")
        return [field]

    def _number(
        self, name: str, kind: Kind, text: str, usual: Any, tell: Any, named: dict[str, str], hint: str
    ) -> list[Any]:
        span = self.ranges.get(name) or range_of(name, kind, usual)
        limits = {"min": span.low, "max": span.high, "step": span.step}
        shown = text or written(span.low)
        slider = box("input", "slider", type="range", value=shown, aria_label=hint, **limits)
        number = box("input", "exact", type="text", inputmode="decimal", value=text, placeholder="as usual", **named)
        other = "e.target.parentElement.querySelector('%s').value = e.target.value"
        both = f"(e) => {{ {other}; emit(e.target.value); }}"
        slider.on("input", tell, throttle=THROTTLE, js_handler=both % ".exact")
        number.on("change", tell, js_handler=both % ".slider")
        return [slider, number]

    def _teller(self, name: str) -> Any:
        return lambda event: self.change(name, str(event.args if not isinstance(event.args, list) else event.args[0]))

    def complain(self, name: str, message: str) -> None:
        """Say beside the field what is wrong, or nothing more."""
        if name in self.errors:
            self.errors[name].text = message
