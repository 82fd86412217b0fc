"""What a page shows, as one record with an address: a link holds model, setting, seed and time.

A state is read from the words of an address or of the command line and checked before anything is computed; it gives
the request that is run, and the lines that compute the same numbers elsewhere.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlencode

import msgspec
from msgspec import Meta

from pathlines.foundation.errors import ArgumentError, finite_array
from pathlines.foundation.registry import near
from pathlines.foundation.setting import Setting, changed, fields, means
from pathlines.foundation.written import value_of
from pathlines.model import MODELS
from pathlines.model.capability import HasRandomLayers
from pathlines.sweep.request import Request, build, check_size, law_of

MOST_WORDS = 40
"""Settings that one address may hold."""
LONGEST_VALUE = 4000
"""Letters of one of them: a matrix of some hundred numbers."""
SHOWN = ("t", "colour")
"""What an address may say beside the setting: which moment is shown, and how."""
OF_RUN = ("d", "step")
"""Parameters of models that are the run's own."""
DEFAULT = "sa"


class Stage(Setting):
    """What is chosen for a run beside the parameters of its model."""

    n: Annotated[int, Meta(ge=2, le=2000), means("tokens", "n")] = 100
    d: Annotated[int, Meta(ge=2, le=3), means("dimension of the space the tokens live in", "d")] = 3
    until: Annotated[float, Meta(gt=0, le=1e4), means("where the run ends", "T", unit="depth-time")] = 15.0
    start: Annotated[str, Meta(max_length=80), means("law of the start: uniform, clusters:4,0.1")] = "uniform"
    layers: Annotated[int, Meta(ge=1, le=1000), means("layers of a stack, or of a chain", "L")] | None = None
    step: Annotated[float, Meta(gt=0, le=10), means("residual step of a layer", "η")] | None = None
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1), means("seed of everything that is drawn")] = 0
    frames: Annotated[int, Meta(ge=2, le=501), means("recorded times of a flow, evenly spaced")] = 101


class State(msgspec.Struct, frozen=True):
    """A run that is looked at: the model, the parameters that differ from its own, and the stage."""

    model: str = DEFAULT
    parameters: dict[str, Any] = {}
    stage: Stage = Stage()

    @property
    def record(self) -> Setting:
        """All parameters of the model, checked."""
        return changed(f"model `{self.model}`", MODELS[self.model].parameters(), self.parameters)

    def request(self, record: tuple[str, ...] = ()) -> Request:
        """What `pathlines run` would run.

        Pairs are summed directly: harmonics are fewer the smaller β is, and each number of them is a program of its
        own, which takes seconds to compile where the run takes a tenth of one.
        """
        s, usual = self.stage, MODELS[self.model].parameters()
        own = {k: v for k, v in self.parameters.items() if k not in OF_RUN}
        form = "auto"
        if hasattr(usual, "summation") and s.layers is None:
            own, form = {"summation": "dense", **own}, "tokens"
        return Request(
            self.model, own, s.n, s.d, s.until, s.start, record, 1, s.layers, s.step, "rk45", 1e-8,
            form, s.seed, "float64",
        )  # fmt: skip

    def changed(self, name: str, text: str) -> State:
        """With another value, as a person writes it; what is not allowed is an error that says what is."""
        if name in Stage.__struct_fields__:
            return msgspec.structs.replace(self, stage=changed("the run", self.stage, {name: read(name, text)}))
        value = _array(self.model, name, read(name, text))
        record = changed(f"model `{self.model}`", self.record, {name: value})
        usual = MODELS[self.model].parameters()
        kept = {k: v for k, v in self.parameters.items() if k != name}
        if getattr(record, name) != getattr(usual, name):
            kept[name] = msgspec.to_builtins(getattr(record, name))
        return msgspec.structs.replace(self, parameters=kept)

    def checked(self) -> State:
        """Itself, if it can be run and drawn; else an error in one line."""
        check_size(self.request(), force=False)
        model = build(self.request())
        tokens = law_of(self.request())
        if isinstance(model, HasRandomLayers) and self.stage.layers is None:
            return msgspec.structs.replace(self, stage=msgspec.structs.replace(self.stage, layers=100)).checked()
        import jax

        model.check(tokens(jax.random.key(0)))
        return self

    @property
    def words(self) -> dict[str, str]:
        """The address: the model and everything that differs from its usual value."""
        usual = msgspec.structs.asdict(Stage())
        own = {k: v for k, v in msgspec.structs.asdict(self.stage).items() if v != usual[k]}
        return {"model": self.model, **{k: written(v) for k, v in {**self.parameters, **own}.items()}}

    @property
    def query(self) -> str:
        """The words as part of an address."""
        return urlencode(self.words)

    @property
    def options(self) -> str:
        """The same as options of the command line."""
        said = [w for k, v in self.words.items() if k != "model" for w in ("--" + k.replace("_", "-"), v)]
        return shlex.join(said)


def read(name: str, text: str) -> Any:
    """A value from an address or a field: plain data, never a file."""
    text = str(text).strip()
    if len(text) > LONGEST_VALUE:
        raise ArgumentError(f"Setting `{name}` may have {LONGEST_VALUE} letters, but has {len(text)}.")
    if text.lower().endswith(".npy"):
        raise ArgumentError(f"Setting `{name}` must be written as numbers here; files are for the command line.")
    if text in ("", "none", "None"):
        return None
    if name == "start":
        return text
    return value_of(text)


def _array(model: str, name: str, value: Any) -> Any:
    """Numbers, where the parameter is a matrix or vector."""
    kinds = {f.name: f.allowed.removesuffix(" or null") for f in fields(MODELS[model].parameters)}
    if kinds.get(name) != "numbers" or value is None:
        return value
    return finite_array(name, value).tolist()


def written(value: Any) -> str:
    """A value as it stands in an address: what ``read`` understands."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no word for it, and "null" would be allowed
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return msgspec.json.encode(value).decode()


def state_of(words: Mapping[str, str]) -> State:
    """The state of an address; unknown names, values out of bounds and sizes beyond the limits are errors."""
    if len(words) > MOST_WORDS:
        raise ArgumentError(f"An address may hold {MOST_WORDS} settings, but this one has {len(words)}.")
    name = words.get("model", DEFAULT)
    if name not in MODELS:
        meant = near(name[:80], list(MODELS))
        raise ArgumentError(f"There is no model `{name[:80]}`." + (f" Did you mean {meant}?" if meant else ""))
    state = State(name)
    for key, text in words.items():
        if key != "model" and key not in SHOWN:
            state = state.changed(key[:80], text)
    return state


def with_values(state: State, values: Mapping[str, Any]) -> State:
    """The state with values that were read already."""
    for name, value in values.items():
        state = state.changed(name, written(value))
    return state


def moment_of(words: Mapping[str, str]) -> float | None:
    """The time that an address shows."""
    found = value_of(words["t"][:40]) if "t" in words else None
    return float(found) if isinstance(found, (int, float)) and abs(found) < 1e300 else None
