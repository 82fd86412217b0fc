"""No module is dead: a person reaches each by a public name, by the name of something registered, or by a verb."""

import json
import subprocess
import sys

import grimp

import pathlines as pl

ELSEWHERE = {
    "pathlines.kernels.sharded": "a system over several devices, called by who has them",
    "pathlines.limit.causal": "the causal family, whose claims are being written",
    "pathlines.limit.gaussian.dirac": "one token alone, beside which the tests put the closures",
    "pathlines.observable.limit_report": "the report on the last state of a run, by its import path",
}
"""Modules reached by import path only, each with its reason."""

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
        importlib.import_module(info.name)
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


def reached(graph: grimp.ImportGraph, roots: set[str]) -> set[str]:
    """What the roots import, directly or not, with the packages it lies in."""
    found: set[str] = set()
    waiting = set(roots)
    while waiting:
        module = waiting.pop()
        found.add(module)
        package = module.rpartition(".")[0]
        waiting |= (graph.find_modules_directly_imported_by(module) | ({package} if package else set())) - found
    return found


def test_every_module_is_reached():
    graph = grimp.build_graph("pathlines")
    verbs = {m for m in graph.modules if m.startswith("pathlines.cli.")}
    dead = graph.modules - reached(graph, registering() | public() | verbs | {"pathlines.__main__"})
    assert sorted(m for m in dead if not any(m == e or m.startswith(f"{e}.") for e in ELSEWHERE)) == []


def test_a_module_that_nobody_imports_is_found():
    graph = grimp.ImportGraph()
    graph.add_module("a")
    for importer, imported in (("a.b", "a.c"), ("a.d", "a.b")):
        graph.add_import(importer=importer, imported=imported)
    assert reached(graph, {"a.b"}) == {"a", "a.b", "a.c"}
