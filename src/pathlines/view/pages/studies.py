"""Studies: a file over its axes, as curves or as a map, each point of which is a run to look at."""

from __future__ import annotations

import json
import shlex
from typing import Any
from urllib.parse import urlencode

import msgspec
import numpy as np
from fastapi import FastAPI, Request, Response
from nicegui import ui

from pathlines.foundation.errors import ArgumentError, PathlinesError
from pathlines.model import MODELS
from pathlines.view.observed import mean_and_spread, numbers
from pathlines.view.site.answers import answer_at, said
from pathlines.view.site.elements import box, button, words
from pathlines.view.site.security import MOST_BYTES
from pathlines.view.site.sheet import SAVED
from pathlines.view.site.shell import shell
from pathlines.view.site.state import MOST_WORDS, Stage, state_of, written
from pathlines.view.site.study_data import EXAMPLE, REPEATS, SHELF, StudyData, Variable

LEAD = (
    "A netCDF file over one or two axes, such as a study writes: drop it here. Point at it for values; a point of a "
    "study of a model opens its run."
)
FEW = 6
"""Values of a second axis up to which each has a curve of its own."""
MOST_CELLS = 250_000
AT = "at."
"""Before a dimension that is held at one of its places."""


class View(msgspec.Struct, frozen=True):
    """Which variable is shown over which dimensions; ``held`` are places of the others."""

    study: str = EXAMPLE
    variable: str = ""
    x: str = ""
    y: str = ""
    held: dict[str, int] = {}

    @property
    def words(self) -> dict[str, str]:
        """The address."""
        own = {n: getattr(self, n) for n in ("study", "variable", "x", "y") if getattr(self, n)}
        return own | {f"{AT}{dim}": str(k) for dim, k in self.held.items()}


def view_of(asked: dict[str, str]) -> tuple[View, StudyData]:
    """The view of an address, its gaps filled; names and places that the file does not have are errors in one line."""
    if len(asked) > MOST_WORDS:
        raise ArgumentError(f"An address may hold {MOST_WORDS} settings, but this one has {len(asked)}.")
    for name in asked:
        if name not in ("study", "variable", "x", "y") and not name.startswith(AT):
            raise ArgumentError(f"This page has no setting `{name[:80]}`.")
    study = SHELF.get(asked.get("study", EXAMPLE)[:80])
    name = asked.get("variable") or next(
        (n for n in study.variables if not n.endswith(("_theory", "_error"))), next(iter(study.variables))
    )
    if name not in study.variables:
        raise ArgumentError(f"This study has no variable `{name[:80]}`; it has {', '.join(study.variables)[:300]}.")
    dims = [d for d in study.variables[name].dims if d not in REPEATS]
    long = [d for d in dims if len(study.axes[d].values) > 1] or dims
    x = _dim(asked.get("x", ""), dims, long[-1] if long else "")
    left = [d for d in long if d != x]
    y = _dim(asked.get("y", ""), [d for d in dims if d != x] + ["none"], left[0] if left else "none")
    held = {d: _place(asked.get(AT + d, "0"), d, len(study.axes[d].values)) for d in dims if d not in (x, y)}
    for word in asked:
        if word.startswith(AT) and word[len(AT) :] not in study.axes:
            raise ArgumentError(f"There is no axis `{word[len(AT) :][:80]}` here; there are {', '.join(dims)[:300]}.")
    return View(asked.get("study", EXAMPLE)[:80], name, x, y, held), study


def _dim(text: str, known: list[str], usual: str) -> str:
    if not text or text not in known:
        if text and text not in ("none",):
            raise ArgumentError(f"There is no axis `{text[:80]}` here; there are {', '.join(known)[:300] or 'none'}.")
        return usual if not text else "none"
    return text


def _place(text: str, dim: str, size: int) -> int:
    if not text.isdigit() or len(text) > 9 or int(text) >= size:
        raise ArgumentError(f"Setting `{AT}{dim}` must be an integer from 0 to {size - 1}, but is {text[:40]!r}.")
    return int(text)


def prepared(asked: dict[str, str]) -> tuple[Any, Any]:
    """The view of an address, and what answers it."""
    view, study = view_of(asked)
    return view, lambda: answer(view, study)


def answer(view: View, study: StudyData) -> dict[str, Any]:
    """Curves or a map, and what a point of them opens."""
    variable = study.variables[view.variable]
    mean, error = chosen(view, variable)
    flat = view.y == "none" or len(study.axes[view.y].values) <= FEW
    if not flat and mean.size > MOST_CELLS:
        raise ArgumentError(f"A map shows at most {MOST_CELLS:,} cells, but this one has {mean.size:,}.")
    figure = _curves(view, study, mean, error) if flat else _map(view, study, mean)
    return {
        "title": study.title,
        "figure": figure,
        "play": _play(view, study),
        "x": view.x,
        "y": view.y,
        "command": f"python -c {shlex.quote(python(view).replace(chr(10), '; ').replace(chr(39), chr(34)))}",
        "python": python(view),
    }


def chosen(view: View, variable: Variable) -> tuple[np.ndarray, np.ndarray | None]:
    """Values over (y, x) or x, averaged over repetitions, with their standard error where there are some."""
    values = np.asarray(variable.values, float)
    dims = list(variable.dims)
    for dim, place in view.held.items():
        values = np.take(values, place, axis=dims.index(dim))
        dims.remove(dim)
    order = [d for d in dims if d in REPEATS] + [d for d in (view.y, view.x) if d in dims]
    values = np.transpose(values, [dims.index(d) for d in order])
    repeats = sum(d in REPEATS for d in order)
    if not repeats:
        return values, None
    rows = values.reshape(-1, *values.shape[repeats:])
    return mean_and_spread(rows) if len(rows) > 1 else (rows[0], None)


def _axis(study: StudyData, dim: str) -> dict[str, Any]:
    axis = study.axes[dim]
    v = np.array(axis.values)
    steps = v[1:] / v[:-1] if len(v) > 3 and v.min() > 0 else np.array([])
    log = bool(len(steps)) and np.allclose(steps, steps[0], rtol=0.05) and steps[0] > 1.05
    return {
        "label": axis.label,
        "symbol": axis.symbol or dim,
        "values": axis.values,
        "scale": "log" if log else "linear",
    }


def _curves(view: View, study: StudyData, mean: np.ndarray, error: np.ndarray | None) -> dict[str, Any]:
    variable = study.variables[view.variable]
    axis = _axis(study, view.x) if view.x else {"label": "", "symbol": "", "values": [0.0], "scale": "linear"}
    single = view.y == "none"
    rows = np.atleast_2d(mean) if single or mean.ndim < 2 else mean
    bars = None if error is None else np.atleast_2d(error)
    lines = []
    for k, row in enumerate(rows):
        label = variable.label if single else f"{study.axes[view.y].symbol or view.y} = {_value(study, view.y, k)}"
        line = {"label": label, "x": axis["values"], "y": numbers(np.atleast_1d(row)), "colour": k}
        if bars is not None:
            line |= {"lower": numbers(row - 2 * bars[k]), "upper": numbers(row + 2 * bars[k])}
        lines.append(line | ({"kind": "points"} if np.size(row) == 1 else {}))
    theory = study.variables.get(f"{view.variable}_theory")
    if single and theory is not None and set(view.held) | {view.x} >= {d for d in theory.dims if d not in REPEATS}:
        dashed = chosen(
            msgspec.structs.replace(view, held={d: k for d, k in view.held.items() if d in theory.dims}), theory
        )[0]
        if np.size(dashed) == len(axis["values"]):
            lines.append({"label": "theory", "x": axis["values"], "y": numbers(dashed), "kind": "dashed"})
    x = {"label": axis["label"], "symbol": axis["symbol"], "scale": axis["scale"]}
    alt = f"{variable.label} over {axis['label']}."
    return {"title": variable.label, "symbol": variable.symbol, "alt": alt, "x": x, "lines": lines, "height": 430}


def _value(study: StudyData, dim: str, k: int) -> str:
    axis = study.axes[dim]
    return axis.words[k] if axis.words else f"{axis.values[k]:.4g}"


def _map(view: View, study: StudyData, mean: np.ndarray) -> dict[str, Any]:
    variable = study.variables[view.variable]
    rows = [numbers(row) for row in mean]
    x, y = _axis(study, view.x), _axis(study, view.y)
    alt = f"{variable.label} over {x['label']} and {y['label']}."
    return {"title": variable.label, "alt": alt, "label": variable.symbol or "", "x": x, "y": y, "values": rows}


def _play(view: View, study: StudyData) -> dict[str, Any] | None:
    """The words of *Play* for the point at some places of the axes, where the file says which model was run."""
    origin = study.origin
    if origin is None or origin["model"] not in MODELS:
        return None
    known = {*Stage.__struct_fields__, *MODELS[origin["model"]].parameters.__struct_fields__}
    fixed = {str(k): written(v) for k, v in origin["setting"].items() if k in known and v is not None}
    along: dict[str, dict[str, list[str]]] = {}
    for dim, axis in study.axes.items():
        told = origin["axes"].get(dim)
        told = told if isinstance(told, dict) else {dim: axis.values}
        own = {n: [written(v) for v in vs] for n, vs in told.items() if n in known and len(vs) == len(axis.values)}
        if own:
            along[dim] = own
    base = {"model": origin["model"], **fixed}
    fixed |= {n: vs[0] for d, own in along.items() if d in REPEATS for n, vs in own.items()}
    base |= fixed
    held = {n: vs[view.held[d]] for d, own in along.items() if d in view.held for n, vs in own.items()}
    try:
        state_of(base | held | {n: vs[0] for d, own in along.items() for n, vs in own.items() if d not in view.held})
    except PathlinesError:
        return None
    return {"base": base | held, "axes": {d: own for d, own in along.items() if d in (view.x, view.y)}}


def python(view: View) -> str:
    """Lines of Python: the same numbers."""
    if view.study == EXAMPLE:
        return (
            "import numpy as np, pathlines as pl\nfrom pathlines.limit.clustering.equiangular import overlap_at\n"
            "print([overlap_at(np.linspace(0.25, 15.0, 60), 3, beta, 'sa', 0.0) for beta in np.linspace(0.0, 9.0, 37)])"
        )
    held = f".isel({', '.join(f'{d!r}: {k}' for d, k in view.held.items()).join('{}')})" if view.held else ""
    return f"import xarray as xr\nprint(xr.open_dataset('study.nc')[{view.variable!r}]{held}.values)"


async def study_file(request: Request) -> Response:
    """Keep the content of a file that was dropped; its name is never told."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            break

    async def opened() -> bytes:
        import asyncio

        if len(body) > MOST_BYTES:
            raise ArgumentError(f"A study file may have {MOST_BYTES // 10**6} MB; this one has more.")
        name = await asyncio.to_thread(SHELF.open, bytes(body))
        return msgspec.json.encode({"study": name})

    return await said(opened)


def register(app: FastAPI) -> None:
    """The page and its answers."""
    answer_at(app, "studies", prepared)
    app.add_api_route("/data/study-file", study_file, methods=["POST"])
    ui.page("/studies")(page)


def page(request: Request) -> None:
    """The page of an address."""
    Studies(dict(request.query_params))


class Studies:
    """One person's page."""

    def __init__(self, asked: dict[str, str]) -> None:
        self.client = ui.context.client
        problem = ""
        try:
            self.view, self.study = view_of(asked)
        except PathlinesError as error:
            (self.view, self.study), problem = view_of({}), str(error)
        first = f"/data/studies?{urlencode(self.view.words)}"
        with shell("Studies", "Studies", "studies.js", first), box(classes="play"):
            with box("section", "stage-box", aria_label="study"):
                self.title = words(self.study.title, "h1")
                words(LEAD, "p", "lead")
                self.message = words(problem, "p", "error banner", role="alert")
                with box(id="sheet", classes="sheet", data_start=urlencode(self.view.words)):
                    box(id="figure")
                    words("", "p", "small", id="hint")
                words("The file is being read.", "p", "small early", role="status")
            self.panel = box("aside", "panel", aria_label="settings")
            with self.panel:
                self._panel()
            self._again()
        ui.on("study", lambda e: self.change("study", str(e.args)))

    def _again(self) -> None:
        from pathlines.view.site.elements import code_line

        with box("section", "again", aria_label="the same numbers elsewhere"):
            with box(classes="presets"):
                for kind, hint in SAVED:
                    made = words(kind.upper(), "button", type="button", title=hint)
                    made.on("click", js_handler=f"() => window.pathlines.save('{kind}')")
            code_line("", "as command", "command")
            code_line("", "as Python", "python")

    def _panel(self) -> None:
        with box("fieldset"):
            words("File", "legend")
            chooser = box("input", type="file", id="file", accept=".nc,.nc4,.h5,.cdf", aria_label="choose a study file")
            chooser.on("change", js_handler="(e) => window.pathlines.open(e.target.files[0])")
            if self.view.study != EXAMPLE:
                button("back to the example", lambda: self.change("study", EXAMPLE), "quiet")
        variable = self.study.variables[self.view.variable]
        dims = [d for d in variable.dims if d not in REPEATS]
        with box("fieldset"):
            words("Shown", "legend")
            self._choice(
                "variable", "variable", {n: v.label for n, v in self.study.variables.items()}, self.view.variable
            )
            self._choice("x", "across", {d: self.study.axes[d].label for d in dims}, self.view.x)
            others = {d: self.study.axes[d].label for d in dims if d != self.view.x} | {"none": "–"}
            self._choice("y", "upwards", others, self.view.y)
        for dim, place in self.view.held.items():
            self._held(dim, place)
        if any(d in REPEATS for d in variable.dims):
            words("Averaged over repetitions; from three on, bands are two standard errors.", "p", "small")

    def _choice(self, name: str, label: str, choices: dict[str, str], value: str) -> None:
        with box(classes="field words"):
            words(label, "label", "name", for_=f"f-{name}")
            with box("select", id=f"f-{name}") as select:
                for key, text in choices.items():
                    words(text, "option", value=key, selected=key == value)
            select.on("change", lambda e: self.change(name, str(e.args)), js_handler="(e) => emit(e.target.value)")

    def _held(self, dim: str, place: int) -> None:
        axis = self.study.axes[dim]
        with box(classes="field"):
            with box("label", "name", for_=f"f-{dim}"):
                words(axis.symbol or axis.label, "b")
                told = words(_value(self.study, dim, place), "span", "meaning")
            slider = box("input", type="range", id=f"f-{dim}", min=0, max=len(axis.values) - 1, step=1, value=place)

        def moved(event: Any) -> None:
            told.text = _value(self.study, dim, min(int(event.args), len(axis.values) - 1))
            self.change(AT + dim, str(event.args), rebuild=False)

        slider.on("input", moved, throttle=0.08, js_handler="(e) => emit(e.target.value)")

    def change(self, name: str, text: str, *, rebuild: bool = True) -> None:
        """Another choice; what does not fit it any more falls back to the usual."""
        kept = (
            {} if name == "study" else {k: v for k, v in self.view.words.items() if name != "variable" or k == "study"}
        )
        if name == "x":
            kept.pop("y", None)
        if name in ("x", "y"):
            kept = {k: v for k, v in kept.items() if not k.startswith(AT)}
        try:
            self.view, self.study = view_of({**kept, name: text})
        except PathlinesError as error:
            self.message.text = str(error)
            return
        self.message.text, self.title.text = "", self.study.title
        if rebuild:
            self.panel.clear()
            with self.panel:
                self._panel()
        asked = json.dumps({"query": urlencode(self.view.words)})
        self.client.run_javascript(f"window.pathlines.show({asked})")
