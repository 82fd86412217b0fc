"""Write the stubs of the lazy namespaces, so that type checkers and editors see every public name.

``python docs/stubs.py`` writes an ``__init__.pyi`` beside each ``__init__.py`` that is a namespace; ``--check`` only
compares.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pathlines
from pathlines.foundation.namespace import PACKAGE, folders, homes, is_namespace, single_files

OWN = {"pathlines": "__version__: str\n"}
"""What an ``__init__.py`` itself defines."""


def namespaces(package: str = pathlines.__name__) -> list[str]:
    """The package and all namespaces inside it."""
    import_module(package)
    inside = [name for folder in folders(package) for name in namespaces(f"{package}.{folder}")]
    return [package, *inside] if is_namespace(package) else inside


def stub(package: str) -> str:
    """Every name with the file that it comes from; rooms and files as modules."""
    named = homes(package)
    modules = sorted({*folders(package), *single_files(package)} - set(named))
    lines = [f"from {package} import {name} as {name}" for name in modules]
    for name, home in sorted(named.items()):
        module, _, attribute = home.partition(":")
        lines.append(f"from {module} import {attribute or name} as {name}")
    return f"# Written by docs/stubs.py.\n{OWN.get(package, '')}" + "\n".join(lines) + "\n"


def main() -> None:
    """Write what differs; or only say that it does."""
    wanted = {PACKAGE.joinpath(*p.split(".")[1:], "__init__.pyi"): stub(p) for p in namespaces()}
    there = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.pyi")}
    if "--check" in sys.argv:
        sys.exit(wanted != there and "Stubs are stale: run `python docs/stubs.py`.")
    for path in Path(PACKAGE).rglob("*.pyi"):
        path.unlink()
    for path, text in wanted.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
