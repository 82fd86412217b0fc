"""From a config.json (Hugging Face), a TOML file with the record's own names, or six numbers, to an architecture."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from pathlines.architecture.config import Config
from pathlines.architecture.convention import defaults
from pathlines.architecture.family import FAMILIES
from pathlines.architecture.record import Architecture, Deviations
from pathlines.architecture.refused import PARTS, check_refused, left_out
from pathlines.foundation.errors import ArgumentError, UnknownNameError, finite_number, positive_integer, require
from pathlines.foundation.setting import changed_setting

SIX = ("width", "heads", "layers", "context", "mlp_width", "std")


class Reading(msgspec.Struct, frozen=True):
    """An architecture, where it was read, and the fields that were not used.

    ``irrelevant`` fields are known to change nothing at initialisation; what ``unknown`` ones mean is not known here.
    ``assumed``: sentences on what matters, or may, and is left out.
    ``fields`` are those of a config.json as they were given, so that a library can build the model they mean; None for
    other sources.
    """

    architecture: Architecture
    source: str
    irrelevant: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    fields: dict[str, Any] | None = None


def read_architecture(path: str | Path) -> Reading:
    """Read an architecture, and say which fields were not used.

    Args:
        path: a .json or .toml file, or a folder with a config.json.
    """
    require(isinstance(path, str | Path), "path", "be the name of a file or folder", path)
    file = Path(path)
    if file.is_dir():
        file = file / "config.json"
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ArgumentError(f"There is no file {file}; give a config.json, a .toml file or six numbers.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"The file {file} cannot be read as text ({error}).") from error
    if file.suffix == ".toml":
        return _from_toml(text, file.name)
    return from_config(_json(text, file.name), file.name)


def read_text(text: str, source: str = "the text") -> Reading:
    """Read an architecture from a text: a config.json, a TOML file with the record's names, or six numbers."""
    require(isinstance(text, str), "text", "be text", text)
    words = text.replace(",", " ").split()
    if text.lstrip("\ufeff \t\r\n").startswith("{"):
        return from_config(_json(text.lstrip("\ufeff"), source), source)
    if words and all(_is_number(word) for word in words):
        return from_numbers([float(word) for word in words])
    return _from_toml(text, source)


def _is_number(word: str) -> bool:
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False


Source = str | Path | Mapping[str, Any] | Sequence[float] | Reading | Architecture


def reading_of(source: Source) -> Reading:
    """From a file or folder, the fields of a config.json, six numbers, a reading, or the record itself."""
    if isinstance(source, Architecture):
        return Reading(source, "the record")
    if isinstance(source, Reading):
        return source
    if isinstance(source, str | Path):
        return read_architecture(source)
    if isinstance(source, Mapping):
        return from_config(source)
    require(isinstance(source, Sequence), "architecture", "be a file, fields, six numbers or an Architecture", source)
    return from_numbers(source)


def architecture_of(source: Source) -> Architecture:
    """The record of any of these."""
    return reading_of(source).architecture


def _json(text: str, source: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ArgumentError(
            f"{source} is not valid JSON at {where} ({error.msg}); repair or download it again."
        ) from None
    except RecursionError:
        raise ArgumentError(f"{source} is nested too deeply for a configuration; download it again.") from None


def from_config(fields: Any, source: str = "config.json") -> Reading:
    """From the fields of a Hugging Face configuration; `model_type` says how to read them."""
    if not isinstance(fields, Mapping):
        raise ArgumentError(f"{source} must hold an object with fields, but holds a {type(fields).__name__}.")
    name = fields.get("model_type")
    check_refused(name, source)
    if name not in list(FAMILIES):
        inner = next((part for part in PARTS if isinstance(fields.get(part), Mapping)), None)
        if inner is not None and fields[inner].get("model_type") in list(FAMILIES):
            found = from_config(fields[inner], source)
            note = f"of {name} the part `{inner}` is read, on its own kind of token alone"
            return msgspec.structs.replace(found, assumed=(note, *found.assumed))
        raise ArgumentError(
            f"{source} has `model_type` {name!r}; known are {', '.join(FAMILIES)}. Describe other models in a .toml "
            "file: `pathlines advise --template llama` writes one."
        )
    config = Config(fields, source, defaults().get(name))
    with _named(source):
        architecture = FAMILIES[name].read(config)
    irrelevant, assumed, unknown = config.leftover()
    notes = (*assumed, *left_out(name, architecture))
    return Reading(architecture, source, irrelevant, unknown, notes, fields=dict(fields))


@contextmanager
def _named(source: str) -> Iterator[None]:
    """Errors inside name the file."""
    try:
        yield
    except (ArgumentError, UnknownNameError) as error:
        text = str(error)
        raise ArgumentError(text if text.startswith(source) else f"{source}: {text}") from None


def _from_toml(text: str, source: str) -> Reading:
    """Fields of the record by name; `std` sets every deviation that the table `deviations` does not."""
    try:
        fields = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ArgumentError(f"{source} is not valid TOML: {error}.") from None
    std = fields.pop("std", None)
    given = fields.pop("deviations", {})
    if not isinstance(given, dict):
        raise ArgumentError(
            f"{source}: `deviations` must be a table such as [deviations] embedding = 1, but is {given!r}."
        )
    known = [f for f in Architecture.__struct_fields__ if f != "deviations"]
    for name in fields:
        if name not in known:
            raise ArgumentError(
                f"{source} has an unknown field `{name}`; fields are std, deviations, {', '.join(known)}."
            )
    for name in ("width", "heads", "layers"):
        if name not in fields:
            raise ArgumentError(
                f"{source} has no `{name}`; write for example {name} = {12 if name != 'width' else 768}."
            )
    if std is None and not {"embedding", "query", "key", "value", "output"} <= set(given):
        raise ArgumentError(f"{source} has no `std`; write for example std = 0.02, or every entry of `deviations`.")
    usual = {f.name: f.default for f in msgspec.structs.fields(Architecture) if f.name in known}
    usual["by_layer"] = {}
    with _named(source):
        sizes = changed_setting("the record", {**usual, "width": 1, "heads": 1, "layers": 1}, fields)
        deviations = changed_setting("the table deviations", _usual_deviations(sizes, std), given)
        architecture = Architecture(**sizes, deviations=Deviations(**deviations))
    return Reading(architecture, source)


def _usual_deviations(sizes: Mapping[str, Any], given: Any) -> dict[str, float]:
    std = 0.0 if given is None else changed_setting("the file", {"std": 0.0}, {"std": given})["std"]
    optional = {
        "position": sizes["positions"] == "learned",
        "type": sizes["types"] > 0,
        "projection": sizes["embedding_width"] > 0,
        "mlp_gate": sizes["gated"],
    }
    others = {name: std if there else 0.0 for name, there in optional.items()}
    return msgspec.structs.asdict(Deviations.equal(finite_number("std", std, 0.0), **others))


def from_numbers(values: Sequence[float]) -> Reading:
    """Width, heads, layers, context, perceptron width and std: pre-norm, causal, gelu, learned positions, GPT-2's kind.

    Every matrix has the same std (no 1/√(2L) on projections).
    """
    if len(values) != len(SIX):
        raise ArgumentError(f"Six numbers are {', '.join(SIX)}, but there are {len(values)}.")
    width, heads, layers, context, inner = (
        positive_integer(name, _whole(value)) for name, value in zip(SIX[:-1], values, strict=False)
    )
    std = finite_number("std", values[-1], 0.0)
    architecture = Architecture(
        width=width,
        heads=heads,
        layers=layers,
        context=context,
        mlp_width=inner,
        norm_epsilon=1e-5,
        deviations=Deviations.equal(std, mlp_gate=0.0, position=std),
    )
    return Reading(architecture, "six numbers")


def _whole(value: float) -> Any:
    return int(value) if value == int(value) else value
