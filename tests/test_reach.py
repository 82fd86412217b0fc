"""No module is dead: a person reaches each by a public name, by the name of something registered, or by a verb."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pathlines as pl
from pathlines.store import code

ELSEWHERE = {
    "pathlines.limit.architecture.gradient_phases": "a map of gradients over two knobs, drawn by who asks",
    "pathlines.limit.causal.atlas": "final states of causal attention, which no claim looks at yet",
    "pathlines.limit.causal.parking": "parking and centres, which no claim looks at yet",
    "pathlines.limit.gaussian.dirac": "one token alone, beside which the tests put the closures",
    "pathlines.observable.limit_report": "a report on the last state of a run, for scripts",
    "pathlines.probing.watch": "a training that a person watches (``pathlines.probing.Watch``)",
    "pathlines.probing.watched": "its file and its figure",
    "pathlines.weights.varying": "weights that a person passes to a model",
}
"""Files reached by the name of their room only (``pl.limit.causal.parking_coverage``), each with its reason."""

REGISTERING = """
import importlib, json, pkgutil, sys
import pathlines
from pathlines.foundation.registry import Registry
honest, found = Registry.register, set()
def register(self, name, entry):
    frame = sys._getframe(1)
    while frame.f_code.co_name != "<module>" or not frame.f_globals["__name__"].startswith("pathlines."):
        frame = frame.f_back
    found.add(frame.f_globals["__name__"])
    return honest(self, name, entry)
Registry.register = register
for info in pkgutil.walk_packages(pathlines.__path__, "pathlines."):
    if not info.name.endswith("__main__"):
        try:
            importlib.import_module(info.name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("nicegui", "fastapi", "uvicorn"):  # the extra `view`
                raise
print(json.dumps(sorted(found)))
"""


def registering() -> set[str]:
    """Modules that register something while they are imported."""
    shown = subprocess.run([sys.executable, "-c", REGISTERING], capture_output=True, text=True, check=True)
    return set(json.loads(shown.stdout))


def public() -> set[str]:
    """Modules that define the public names."""
    homes = {getattr(getattr(pl, name), "__module__", None) or "" for name in pl.__all__}
    return {home for home in homes if home.startswith("pathlines.")}


def reached(monkeypatch, *modules: str) -> set[str]:
    """Files that the modules import, directly or not; a registry imports nothing here, though it fills itself."""
    monkeypatch.setattr(code, "ROOM", re.compile("(?!)"))
    monkeypatch.setattr(code, "_imported", code._imported.__wrapped__)
    return code._closure(modules, ())


def module(file: Path) -> str:
    return ".".join(("pathlines", *file.relative_to(code.PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def test_every_module_is_reached(monkeypatch):
    files = set(code.PACKAGE.rglob("*.py")) - {code.PUBLIC_NAMES}
    verbs = {module(f) for f in files if f.parent.name == "cli"}
    found = reached(monkeypatch, *registering(), *public(), *verbs, "pathlines.__main__")
    assert sorted(m for f in files if str(f) not in found and (m := module(f)) not in ELSEWHERE) == []


def test_a_module_that_nobody_imports_is_found(monkeypatch):
    found = reached(monkeypatch, "pathlines.kernels.sharded")
    assert str(code.PACKAGE / "kernels" / "choice.py") not in found
    assert str(code.PACKAGE / "kernels" / "spectral" / "portable.py") in found


WITHOUT_THE_ENGINE = """
import importlib, pkgutil, sys
for name in ("jax", "equinox", *(f"pathlines.{room}" for room in sys.argv[1:])):
    sys.modules[name] = None
import pathlines.limit
for info in pkgutil.walk_packages(pathlines.limit.__path__, "pathlines.limit."):
    importlib.import_module(info.name)
"""


def test_theory_is_loaded_where_neither_jax_nor_the_engine_can_be():
    """The contract of imports does not see what comes through the rooms' lazy names; this does."""
    engine = ("integrate", "model", "weights", "kernels", "attention", "domain")
    subprocess.run([sys.executable, "-c", WITHOUT_THE_ENGINE, *engine], check=True)
