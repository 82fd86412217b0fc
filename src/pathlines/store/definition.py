"""The code behind one definition in a person's file: what stands beside it and is not used by it does not count."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

from pathlines.store.code import fingerprint, imported_by


def definition_fingerprint(file: Path, name: str, *modules: str) -> str:
    """A hash of what a function or class of a file is made of, of what that imports, of our modules and what computes.

    The axes of a study often stand in the file of its function: changing them must not forget what was computed.
    """
    text = defining_text(file.read_text(encoding="utf-8"), name)
    code = fingerprint(*modules, files=imported_by(text, file.resolve().parent))
    return hashlib.sha256(f"{text}\0{code}".encode()).hexdigest()[:16]


def defining_text(text: str, name: str) -> str:
    """The statements at the top level of a file that a name depends on, in their order, without comments."""
    body = ast.parse(text).body
    needed, taken = {name.partition(".")[0]}, set[int]()
    while True:
        new = {k for k, statement in enumerate(body) if k not in taken and _counts(statement, needed, body)}
        if not new:
            return "\n".join(ast.unparse(body[k]) for k in sorted(taken))
        taken |= new
        needed |= {n.id for k in new for n in ast.walk(body[k]) if isinstance(n, ast.Name)}


def _counts(statement: ast.stmt, needed: set[str], body: list[ast.stmt]) -> bool:
    """Whether a statement defines or changes something that is needed; that it only uses it is not enough."""
    if isinstance(statement, ast.Expr):
        root = _root(statement.value)
        plain = {n for s in body if isinstance(s, ast.Assign | ast.AnnAssign) for n in _bound(s)}
        return root in needed & plain
    return bool(_bound(statement) & needed)


def _root(node: ast.expr) -> str:
    """The first name of an expression: TABLE of ``TABLE.append(3)``."""
    while isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _bound(statement: ast.stmt) -> set[str]:
    """Names that a statement binds or changes."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    roots = {_root(t) for t in targets if isinstance(t, ast.expr)} - {""}
    inside = (s for s in ast.iter_child_nodes(statement) if isinstance(s, ast.stmt))
    stored = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return roots | stored | {name for s in inside for name in _bound(s)}
