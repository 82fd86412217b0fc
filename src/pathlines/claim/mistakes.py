"""Mistakes put into a claim on purpose: what a bound or a zero, which has no size of its own, would notice.

A number that is compared on both sides notices an error of its own prediction (``power.py``). A residual that should be
zero, or a bound, has no such scale; there something is made wrong inside the computation, and the claim must object.
First the mistakes that the claim declares as fitting (``Mistake``), the smallest first; then, for what they leave,
constants of all kinds:

1. the prediction is made at a setting in which one number is off by a factor;
2. a function of theory or an observable that the claim calls returns its numbers times a factor;
3. a model or a law is built with its first number times a factor;
4. every drift is times a factor, or has a share of the next token's drift in it (which no symmetry survives);
5. the simulation is run at a setting in which one number is off (other eigenvalues, half the time), the prediction not.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import time
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import msgspec
import numpy as np

from pathlines.claim.base import Claim, Evidence
from pathlines.claim.evaluate import Check, compared, simulated
from pathlines.claim.fitting import Mistake, scaled
from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.setting import S
from pathlines.model.base import Model

SIZES = (0.1, 0.5, 2.0)
"""Of mistakes; the last is a wrong sign, which monotone quantities notice and factors they do not."""
Place = tuple[dict[str, Any], str, Any]
"""A namespace, a name in it, and the object that it stands for."""
COMPUTATIONS, DRIFT = ("simulate", "predict"), "drift"
ROOMS = ("limit", "transport", "observable", "model", "weights", "domain", "numerics")
SECONDS = 30.0
"""Patience with a claim, in processor time; twenty times its own, if that is longer."""


def objections(claim: Claim[Any], size: str, changes: Mapping[str, Any] | None, checks: list[Check]) -> dict[str, str]:
    """For each bound and each zero that holds: the first mistake that would be refuted, or "" where none was found.

    Declared ones are tried first; then wrong constants of 10 % in either direction, of 50 %, and wrong signs. Cost: one
    evaluation of the claim for each mistake until every quantity has objected, and after the declared ones at most
    twenty times the time of the claim. An erratum, which should be refuted as it stands, is not tried.
    """
    if claim.expected != "holds":
        return {}
    setting = claim.setting(size, changes)
    found = _declared(claim, setting, {c.quantity: "" for c in checks if c.verdict == "holds" and c.notices is None})
    return found if all(found.values()) else _constants(claim, setting, found)


def _declared(claim: Claim[S], setting: S, found: dict[str, str]) -> dict[str, str]:
    """What the mistakes of the claim itself are noticed by."""
    for mistake in claim.mistakes:
        for size in mistake.sizes:
            if all(found.values()):
                return found
            for name in _refuted(functools.partial(_made, claim, setting, mistake, size)):
                if not found.get(name, "-"):
                    found[name] = mistake.words.format(size)
    return found


def _made(claim: Claim[S], setting: S, mistake: Mistake, size: float) -> list[Check]:
    """The claim with the mistake in it."""
    with ExitStack() as stack:
        if mistake.of in COMPUTATIONS:
            wrong = {mistake.of: mistake.change(getattr(claim, mistake.of), size)}
            claim = msgspec.structs.replace(claim, **wrong)
        elif mistake.of == DRIFT:
            stack.enter_context(_drifts(lambda right: mistake.change(right, size)))
        else:
            stack.enter_context(_forgotten(claim))
            for space, name, right in places_of(claim, mistake):
                stack.enter_context(_replaced(space, name, mistake.change(right, size)))
        return compared(claim, simulated(claim, setting)[0], claim.predict(setting))


def places_of(claim: Claim[Any], mistake: Mistake) -> list[Place]:
    """Where the name stands that a declared mistake changes; none is a mistake of the declaration."""
    home, _, name = mistake.of.rpartition(".")
    spaces = [vars(importlib.import_module(home))] if home else [space for space, _ in _called(claim)]
    found = {id(space): (space, name, space[name]) for space in spaces if name in space}
    if not found:
        raise ArgumentError(f"Claim `{claim.id}` declares a mistake of `{mistake.of}`, which its code does not call.")
    return list(found.values())


def _constants(claim: Claim[S], setting: S, found: dict[str, str]) -> dict[str, str]:
    """What wrong constants are noticed by, for the quantities that nothing has disturbed yet."""
    began = time.process_time()
    measured = simulated(claim, setting)[0]
    patience = max(SECONDS, 20 * (time.process_time() - began))
    for amount in SIZES:
        for what, mistaken in _mistakes(claim, setting, measured):
            for factor in (1 + amount, 1 - amount):
                if all(found.values()) or time.process_time() - began > patience:
                    return found
                for name in _refuted(functools.partial(mistaken, factor)):
                    if not found.get(name, "-"):
                        found[name] = f"{what} × {factor:g}"
    return found


def _refuted(checks: Callable[[], list[Check]]) -> list[str]:
    """Quantities refuted by a mistaken computation; one that cannot be done refutes nothing."""
    try:
        return [c.quantity for c in checks() if c.verdict == "refuted"]
    except (Exception, SystemExit):  # a computation made wrong may fail in any way
        return []


def _mistakes(claim: Claim[S], setting: S, measured: Evidence) -> Iterator[tuple[str, Callable[[float], list[Check]]]]:
    """(what is wrong, checks of the claim when it is wrong by a factor)."""

    def elsewhere(name: str, factor: float) -> list[Check]:
        wrong = {name: scaled(getattr(setting, name), factor)}
        return compared(claim, measured, claim.predict(msgspec.structs.replace(setting, **wrong)))

    numbers = [name for name in setting.__struct_fields__ if _has_floats(getattr(setting, name))]
    for name in numbers:
        yield f"{name} of the prediction", functools.partial(elsewhere, name)

    def inside(place: Place, factor: float) -> list[Check]:
        space, name, right = place
        with _forgotten(claim), _replaced(space, name, _wrong(right, factor)):
            return compared(claim, simulated(claim, setting)[0], claim.predict(setting))

    for place in _places(claim):
        yield place[1], functools.partial(inside, place)

    def moved(change: Callable[[Any, float], Any], factor: float) -> list[Check]:
        with _drifts(lambda right: lambda *a: jax.tree.map(lambda v: change(v, factor), right(*a))):
            return compared(claim, simulated(claim, setting)[0], claim.predict(setting))

    if claim.models:
        yield "drift", functools.partial(moved, lambda v, f: v * f)
        yield "next token's drift in the drift", functools.partial(moved, lambda v, f: v + (f - 1) * jnp.roll(v, 1, 0))

    def misled(name: str, factor: float) -> list[Check]:
        wrong = msgspec.structs.replace(setting, **{name: scaled(getattr(setting, name), factor)})
        return compared(claim, simulated(claim, wrong)[0], claim.predict(setting))

    for name in numbers:
        yield f"{name} of the simulation", functools.partial(misled, name)


def _has_floats(value: Any) -> bool:
    return any(_has_floats(v) for v in value) if isinstance(value, list | tuple) else isinstance(value, float)


def _places(claim: Claim[Any]) -> list[Place]:
    """Functions and classes of other rooms that the claim's own functions call."""
    found: dict[tuple[int, str], Place] = {}
    for space, names in _called(claim):
        for name in names:
            value = space.get(name)
            if callable(value) and any(_room(value).startswith(f"pathlines.{r}.") for r in ROOMS):
                found[id(space), name] = (space, name, value)
    return sorted(found.values(), key=lambda place: ROOMS.index(_room(place[2]).split(".")[1]))


def _called(claim: Claim[Any]) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Each function of the room of claims by which the claim is computed: its namespace and the names in its code."""
    seen: set[int] = set()
    waiting: list[Any] = [claim.simulate, claim.predict]
    while waiting:
        function = _plain_function(waiting.pop(), waiting)
        if function is None or id(function) in seen:
            continue
        seen.add(id(function))
        space, names = function.__globals__, sorted(_names(function.__code__))
        waiting.extend(space[name] for name in names if name in space and _of_claims(space[name], space))
        yield space, names


def _of_claims(value: Any, space: dict[str, Any]) -> bool:
    """Whether it stands in the same file, or in the room of claims."""
    room = _room(value)
    return room == space.get("__name__") or room.startswith("pathlines.claim")


def _room(value: Any) -> str:
    return getattr(value, "__module__", "") or ""


def _plain_function(value: Any, waiting: list[Any]) -> types.FunctionType | None:
    """The function under partial applications and caches; what it is applied to waits its turn."""
    if isinstance(value, functools.partial):
        waiting.extend(v for v in (*value.args, *value.keywords.values()) if callable(v))
        return _plain_function(value.func, waiting)
    value = inspect.unwrap(value) if callable(value) else value
    if isinstance(value, types.FunctionType):
        cells = (c.cell_contents for c in value.__closure__ or ())
        waiting.extend(v for v in cells if isinstance(v, types.FunctionType | functools.partial))
        return value
    return None


def _names(code: types.CodeType) -> set[str]:
    return set(code.co_names).union(*(_names(c) for c in code.co_consts if isinstance(c, types.CodeType)))


@contextmanager
def _replaced(space: dict[str, Any], name: str, wrong: Any) -> Iterator[None]:
    """The name stands for the mistaken object."""
    right, space[name] = space[name], wrong
    try:
        yield
    finally:
        space[name] = right


@contextmanager
def _forgotten(claim: Claim[Any]) -> Iterator[None]:
    """What caches of the claim remember is forgotten, before a mistake and after it."""
    spaces = {id(space): space for space, _ in _called(claim)}.values()
    caches = [v for space in spaces for v in space.values() if hasattr(v, "cache_clear") and _of_claims(v, space)]
    for cache in caches:
        cache.cache_clear()
    try:
        yield
    finally:
        for cache in caches:
            cache.cache_clear()


@contextmanager
def _drifts(change: Callable[[Any], Any]) -> Iterator[None]:
    """Every model's drift is changed; compiled programs are forgotten before and after."""
    right = {kind: kind.__dict__["drift"] for kind in _kinds(Model) if "drift" in kind.__dict__}
    for kind, drift in right.items():
        type.__setattr__(kind, "drift", change(drift))
    jax.clear_caches()
    try:
        yield
    finally:
        for kind, drift in right.items():
            type.__setattr__(kind, "drift", drift)
        jax.clear_caches()


def _kinds(kind: type) -> list[type]:
    children: list[type] = type.__subclasses__(kind)
    return children + [k for child in children for k in _kinds(child)]


def _wrong(value: Any, factor: float) -> Any:
    if isinstance(value, type):
        return lambda *a, **k: value(*_first_scaled(a, k, factor)[0], **_first_scaled(a, k, factor)[1])
    return lambda *a, **k: scaled(value(*a, **k), factor)


def _first_scaled(
    arguments: tuple[Any, ...], named: dict[str, Any], factor: float
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with the first real number among them times a factor."""
    for i, v in enumerate(arguments):
        if isinstance(v, float | np.floating):
            return (*arguments[:i], v * factor, *arguments[i + 1 :]), named
    for k, v in named.items():
        if isinstance(v, float | np.floating):
            return arguments, {**named, k: v * factor}
    return arguments, named
