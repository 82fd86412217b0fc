"""The code behind a result: what it imports, and the versions that compute."""

from __future__ import annotations

import ast
import hashlib
import os
import platform
import re
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pathlines.foundation.namespace import PACKAGE, homes, is_namespace

PUBLIC_NAMES = PACKAGE / "__init__.py"
"""Imported by everything and computing nothing but the compiler's flags, which have a file of their own."""
ALWAYS = "pathlines.foundation.compiler"
COMPUTING = ("jax", "jaxlib", "equinox", "numpy", "scipy")
ENVIRONMENT = ("PATHLINES_NATIVE",)
NOT_LOOKED_UP = ("pathlines.claim", "pathlines.draw")
"""Rooms that no computation asks for by name: a claim depends on its own file and not on its neighbours."""

FROM = re.compile(r"^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)", re.MULTILINE)
IMPORT = re.compile(r"^[ \t]*import[ \t]+([\w.]+(?:[ \t]+as[ \t]+\w+)?(?:,[ \t]*[\w.]+)*)", re.MULTILINE)
ROOM = re.compile(r"""Registry\(\s*["'][^"']*["'],\s*["'](pathlines[\w.]*)["']""")


def fingerprint(*modules: str, files: tuple[str, ...] = ()) -> str:
    """A hash of the source of these modules and of everything of ours that they import, and of what computes.

    ``files`` are files of a user, by path: they count with the files beside them that they import. Imports inside
    functions count too; a registry counts as an import of the whole room it fills itself from; native code counts as
    soon as something that calls it does. Cost: reading some hundred files once, about 30 ms.
    """
    digest = hashlib.sha256()
    for path in sorted(_closure(modules, files)):
        digest.update(path.removeprefix(str(PACKAGE)).encode() + b"\0" + _bytes(path))
    digest.update(repr(versions()).encode())
    return digest.hexdigest()[:16]


def imported_by(text: str, beside: Path) -> tuple[str, ...]:
    """Source files, ours and a person's, that a piece of Python imports which stands in the folder ``beside``."""
    return tuple(sorted({str(p) for name in _names_of_a_user(text) for p in _paths(name, beside)}))


def user_files(files: tuple[str, ...]) -> tuple[str, ...]:
    """The files of a person that these ones import, directly or not, themselves included."""
    return tuple(sorted(p for p in _closure((), files) if PACKAGE not in Path(p).parents))


def versions() -> dict[str, str]:
    """Versions of the libraries that compute, and the settings that choose what does."""
    found = {name: _version(name) for name in COMPUTING}
    chosen = {name: os.environ.get(name, "") for name in ENVIRONMENT}
    return {"python": platform.python_version(), **found, **chosen}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _closure(modules: tuple[str, ...], files: tuple[str, ...]) -> set[str]:
    """Paths of all source files behind the modules and files."""
    found: set[str] = set()
    waiting = [str(p) for m in (ALWAYS, *modules) for p in _paths(m, None)] + [str(Path(f).resolve()) for f in files]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting.extend(_imported(path))
    return found


@cache
def _bytes(path: str) -> bytes:
    return Path(path).read_bytes()


@cache
def _imported(path: str) -> tuple[str, ...]:
    """Source files that one source file imports."""
    file = Path(path)
    if file.suffix != ".py":
        return ()
    text = _bytes(path).decode("utf-8", "replace")
    beside = None if PACKAGE in file.parents else file.parent
    names = _names(text) if beside is None else _names_of_a_user(text)
    found = {p for name in names for p in _paths(name, beside)}
    for room in ROOM.findall(text):
        if room not in NOT_LOOKED_UP:
            found.update((PACKAGE.parent / room.replace(".", "/")).rglob("*.py"))
    if file.parent.name == "native" and beside is None:
        found.update(f for kind in ("*.cpp", "*.h") for f in file.parent.glob(kind))
    return tuple(sorted(map(str, found)))


def _names(text: str) -> Iterator[str]:
    """Modules that a text may import: ``from a import b`` may mean a.b."""
    for module, what in FROM.findall(text):
        yield module
        yield from (f"{module}.{word.split()[0]}" for word in what.strip("()").split(",") if word.split())
    for words in IMPORT.findall(text):
        yield from (word.split()[0] for word in words.split(","))


def _names_of_a_user(text: str) -> Iterator[str]:
    """The same for code in any style: several imports on a line, after a colon, by ``import_module("name")``, and what
    it takes from our namespaces (``pl.limit.homogenized.overlap_curve``).
    """
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError):
        nodes = []
    ours = {
        alias.asname or alias.name: f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if (getattr(node, "module", None) or alias.name).split(".")[0] == PACKAGE.name
    }
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute) and (first := ast.unparse(node).partition("."))[0] in ours:
            yield f"{ours[first[0]]}.{first[2]}"
        elif isinstance(node, ast.ImportFrom):
            parent = "." * node.level + (f"{node.module}." if node.module else "")
            yield from (parent, *(parent + alias.name for alias in node.names))
        elif isinstance(node, ast.Call) and "import" in ast.unparse(node.func):
            yield from (a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str))


def _paths(module: str, beside: Path | None) -> list[Path]:
    """The source of a module of ours (or of a user's) and of the packages it lies in; nothing for installed ones."""
    parts = [part for part in module.split(".") if part]
    if not parts:
        return []
    if parts[0] == PACKAGE.name:
        return _paths_of_ours(tuple(parts))
    if beside is None:
        return []
    up = len(module) - len(module.lstrip("."))
    roots = [[beside, *beside.parents][up - 1]] if up else [beside, *_folders_of_the_user()]
    return [file for root in roots for file in _candidates(root, parts) if file.is_file()]


@cache
def _paths_of_ours(parts: tuple[str, ...]) -> list[Path]:
    ours = _our_files()
    return [f for f in _candidates(PACKAGE.parent, _home(list(parts))) if str(f) in ours and f != PUBLIC_NAMES]


def _candidates(root: Path, parts: list[str]) -> list[Path]:
    """Where the source of a dotted name may stand."""
    heads = [root.joinpath(*parts[: k + 1]) for k in range(len(parts))]
    return [*(head / "__init__.py" for head in heads), heads[-1].with_suffix(".py")]


@cache
def _our_files() -> frozenset[str]:
    """All source files of the package: asked for at once, because asking for each takes longer than reading them."""
    return frozenset(str(f) for f in PACKAGE.rglob("*.py"))


def _home(parts: list[str]) -> list[str]:
    """The module behind a dotted name of ours: rooms find the names in their files by themselves."""
    for k in range(1, len(parts)):
        package = ".".join(parts[:k])
        if str(PACKAGE.parent.joinpath(*parts[:k], "__init__.py")) not in _our_files():
            break
        import_module(package)
        if is_namespace(package) and parts[k] in homes(package):
            return homes(package)[parts[k]].partition(":")[0].split(".")
    return parts


def _folders_of_the_user() -> list[Path]:
    """Where Python looks for modules, without the folders of installed ones."""
    installed = [Path(p).resolve() for p in (sys.prefix, sys.base_prefix, *sysconfig.get_paths().values())]
    looked = [Path(p or ".").resolve() for p in sys.path]
    return [p for p in looked if p != PACKAGE.parent and not any(p == i or i in p.parents for i in installed)]
