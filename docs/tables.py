"""Write the tables of models, papers and benchmarks: ``python docs/tables.py`` (``--check`` only compares)."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pathlines

HERE = Path(__file__).parent


def short(ids: list[str]) -> str:
    """Claim ids by family, consecutive numbers joined: clustering CL-01–03, ER-09b; gaussian C06."""
    families = {i.split("/")[0]: [] for i in ids}
    for i in ids:
        families[i.split("/")[0]].append(i.split("/")[1])
    return "; ".join(f"{family} {joined(names)}" for family, names in families.items())


def joined(names: list[str]) -> str:
    """Runs of numbers after the same letters as first–last."""
    runs: list[list[str]] = []
    for name in names:
        match, last = (re.fullmatch(r"([A-Z]+-?)(\d+)", n) for n in (name, runs[-1][-1] if runs else ""))
        if match and last and match[1] == last[1] and int(match[2]) == int(last[2]) + 1:
            runs[-1].append(name)
        else:
            runs.append([name])
    return ", ".join(r[0] if len(r) == 1 else f"{r[0]}–{r[-1].lstrip('ABCDEFGHIJKLMNOPQRSTUVWXYZ-')}" for r in runs)


def models() -> str:
    """Equation, class, claims."""
    rows = ["| equation | class | claims |", "|---|---|---|"]
    for name, entry in pathlines.MODELS.items():
        using = [i for i, c in pathlines.CLAIMS.items() if name in c.models]
        made = type(entry.build()).__name__
        rows.append(f"| **{entry.title}** `{name}`: {escaped(entry.equation)} | `{made}` | {short(using) or '–'} |")
    return "\n".join(rows)


def papers() -> str:
    """Paper, claims, figures."""
    rows = ["| paper | claims | figures |", "|---|---|---|"]
    for paper in pathlines.PAPERS.values():
        claims = [i for i, c in pathlines.CLAIMS.items() if c.paper == paper]
        figures = [n for n, p in pathlines.FIGURES.items() if p.paper == paper]
        shown = ", ".join(f"`{n}`" for n in figures) or "–"
        title = f"[{paper.title}]({paper.key}.md)" if claims else paper.title
        rows.append(f"| {title}, arXiv:{paper.arxiv} | {short(claims) or '–'} | {shown} |")
    return "\n".join(rows)


def benchmarks() -> str:
    """Every script of benchmarks/, in the first words of its own docstring."""
    rows = ["| script | measures |", "|---|---|"]
    for script in sorted((HERE.parent / "benchmarks").glob("*.py")):
        first = (ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or "").split("\n\n")[0]
        rows.append(f"| `benchmarks/{script.name}` | {escaped(' '.join(first.split()))} |")
    return "\n".join(rows)


def escaped(text: str) -> str:
    """Bars would end a table cell."""
    return text.replace("|", "\\|")


def main() -> None:
    """Rewrite what stands between the markers."""
    pathlines.enable_float64()
    tables = (
        ("models", "models.md", models()),
        ("papers", "papers/index.md", papers()),
        ("benchmarks", "../benchmarks/README.md", benchmarks()),
    )
    for name, page, table in tables:
        path = HERE / page
        text = path.read_text(encoding="utf-8")
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end {name} -->)"
        new = re.sub(pattern, lambda m, table=table: m[1] + table + "\n" + m[2], text, flags=re.DOTALL)
        if "--check" in sys.argv and new != text:
            sys.exit(f"The table of docs/{page} is stale: run `python docs/tables.py`.")
        path.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
