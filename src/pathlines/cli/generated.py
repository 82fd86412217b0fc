"""Options that depend on what is named: the parameters of a model, the settings of a figure.

A verb that takes them ends in ``**chosen``. Its command is made anew for each line, from the verb's own signature and
the fields of the thing that the line names; ``pathlines run sa --help`` and shell completion see them too.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand

from pathlines.foundation.written import value_of


class Choice(NamedTuple):
    """One generated option; ``words`` (text), ``flag`` and ``numbers`` (an array) say how its value is written."""

    name: str
    help: str
    metavar: str
    default: str
    flag: bool = False
    words: bool = False
    numbers: bool = False

    @property
    def option(self) -> str:
        """As it is written on the command line."""
        return "--" + self.name.replace("_", "-").replace(".", "-")


def with_choices(app: typer.Typer, name: str, verb: Callable[..., Any], find: Callable[..., Any], panel: str) -> None:
    """Add a verb that ends in ``**chosen``; ``find(words)`` gives the choices for the names on the line."""

    class Generated(TyperCommand):
        def make_context(self, info_name: Any, args: list[str], parent: Any = None, **extra: Any) -> Any:
            found = partial(find, self, list(args))
            choices = _or_none(found) if extra.get("resilient_parsing") else found()
            command = _command(name, signed(verb, choices, panel))
            return command.make_context(info_name, args, parent, **extra)

        def invoke(self, ctx: Any) -> Any:
            return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)

    app.command(name=name, cls=Generated)(signed(verb))


def _or_none(find: Callable[[], list[Choice]]) -> list[Choice]:
    """Completion says nothing rather than an error."""
    try:
        return find()
    except Exception:
        return []


def _command(name: str, verb: Callable[..., Any]) -> Any:
    alone = typer.Typer(add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False)
    alone.command(name=name)(verb)
    return typer.main.get_command(alone)


def signed(verb: Callable[..., Any], choices: Iterable[Choice] = (), panel: str = "") -> Callable[..., Any]:
    """The verb with the choices in place of ``**chosen``, of which those that were given arrive, read."""
    own = [p for p in inspect.signature(verb, eval_str=True).parameters.values() if p.kind is not p.VAR_KEYWORD]
    made = {c.name.replace(".", "__"): c for c in choices}

    @wraps(verb)
    def call(**given: Any) -> Any:
        chosen = {c.name: read(c, given.pop(key)) for key, c in made.items() if given[key] is not None}
        return verb(**{k: v for k, v in given.items() if k not in made}, **chosen)

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [*(p.replace(kind=keyword) for p in own), *(_parameter(k, c, panel) for k, c in made.items())]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in parameters}
    return call


def _parameter(key: str, choice: Choice, panel: str) -> inspect.Parameter:
    names = (choice.option, "--no-" + choice.option[2:]) if choice.flag else (choice.option,)
    shown = f"{choice.help} [default: {choice.default}]" if choice.default else choice.help
    metavar = None if choice.flag else choice.metavar
    made = typer.Option(*names, help=shown, metavar=metavar, rich_help_panel=panel, show_default=False)
    kind = bool | None if choice.flag else str | None
    return inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, made])


def names_on(command: Any, args: list[str], flags: Iterable[str]) -> list[str]:
    """The words of a line that are neither options nor their values; ``flags`` are generated options without one."""
    without = {*flags, *(f"--no-{f[2:]}" for f in flags), "--help"}
    without |= {o for p in command.params if getattr(p, "is_flag", False) for o in p.opts}
    found: list[str] = []
    waiting = list(args)
    while waiting:
        word = waiting.pop(0)
        if word == "--":
            return found + waiting
        if not word.startswith("-") or word == "-":
            found.append(word)
        elif "=" not in word and word not in without and waiting:
            waiting.pop(0)
    return found


def read(choice: Choice, text: Any) -> Any:
    """The value of an option: a .npy file, text as it is, or what ``value_of`` reads."""
    from pathlines.foundation.errors import finite_array

    if not choice.flag and text.endswith(".npy"):
        return read_array(choice.option, Path(text))
    if choice.flag or choice.words:
        return text
    found = value_of(text)
    return finite_array(choice.option, found) if choice.numbers and found is not None else found


def read_array(option: str, path: Path) -> Any:
    """The numbers of a .npy file."""
    import numpy as np

    from pathlines.foundation.errors import ArgumentError, finite_array

    try:
        with path.open("rb") as file:
            return finite_array(option, np.load(file, allow_pickle=False))
    except ArgumentError:
        raise
    except Exception as error:
        why = getattr(error, "strerror", None) or error
        raise ArgumentError(f"Option {option} takes an array of numbers, but {path} cannot be read ({why}).") from None


def from_record(record: Any) -> list[Choice]:
    """The fields of a record, whose values are the defaults."""
    from pathlines.foundation.setting import fields

    return [as_choice(f, getattr(record, f.name)) for f in fields(type(record))]


def as_choice(f: Any, default: Any, prefix: str = "") -> Choice:
    """One field of a record."""
    symbol = f"{f.symbol}: " if f.symbol and f.symbol != f.name else ""
    unit = f" ({f.unit})" if f.unit else ""
    allowed = f.allowed.removesuffix(" or null")
    flag = allowed == "true or false"
    named = " or " in allowed and not flag
    words = allowed == "text" or (named and not allowed.startswith(("number", "integer")))
    many = allowed == "numbers" or allowed.startswith("[")
    bounds = f", {allowed}" if allowed[-1].isdigit() else ""
    metavar = (
        "FILE.npy|JSON"
        if many
        else allowed.replace("text", "TEXT").replace("[numbers, …]", "FILE.npy").replace(" or ", "|")
        if words or named
        else allowed.split()[0].upper()
    )
    shown = json.dumps(default).replace(" ", "")[1:-1] if isinstance(default, tuple) else str(default)
    shown = "" if default is None or flag else shown
    numbers = allowed == "numbers"
    return Choice(prefix + f.name, f"{symbol}{f.meaning}{unit}{bounds}", metavar, shown, flag, words, numbers)
