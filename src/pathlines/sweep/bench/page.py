"""The page of a bench: date, machine, tables, goals."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from pathlines.sweep.bench.case import EXTRA, GROUPS
from pathlines.sweep.bench.goals import VERDICTS
from pathlines.sweep.bench.machine import Machine
from pathlines.sweep.bench.measure import Result
from pathlines.sweep.bench.quiet import warning
from pathlines.sweep.bench.report import Report

TITLES = {
    "drift": "One softmax drift, general (Q, K, V)",
    "steps": "A hundred dependent drifts",
    "circle": "Series on the circle",
    "sphere": "Series on the sphere of R³",
    "solve": "One small system to a tolerance",
    "ensemble": "A thousand small systems",
}


def page(report: Report, figure: str = "") -> str:
    """Markdown; ``figure`` is the path of a picture to show."""
    lines = ["# Benchmarks", "", *_head(report)]
    if figure:
        lines += [f"![Times of our methods and their peers]({figure})", ""]
    lines += ["## Goals", "", "Ratios within this run.", "", "| goal | measured | |", "|---|---|---|"]
    lines += [f"| {g.text} | {g.measured or '–'} | {VERDICTS[g.met]} |" for g in report.goals]
    for group in GROUPS:
        rows = [r for r in report.results if r.group == group]
        if rows:
            lines += ["", f"## {TITLES[group]}", "", *table(rows)]
    lines += ["", *_left_out(report)]
    return "\n".join(lines).rstrip() + "\n"


def _head(report: Report) -> Iterator[str]:
    command = "pathlines bench" + (" --quick" if report.size == "quick" else "")
    yield f"Measured on {report.date} by `{command}`: all contenders in one process, one sample of each a round;"
    yield "medians in milliseconds. *automatic* is what a user gets without asking; the last columns are the time of"
    yield "the best peer over that of *automatic*, and the largest deviation of ours from an independent float64 sum."
    yield ""
    if report.machine is not None:
        yield from _machine(report.machine)
    if warning(report.others):
        yield f"**{warning(report.others)}**"
        yield ""
    if report.memories:
        yield "Peak memory of one drift, float64, interpreter and libraries included: " + ", ".join(
            f"{m.method} {m.peak / 1e9:.2f} GB ({m.rows:,} of {m.n:,} rows, d = {m.d}; {m.before / 1e9:.2f} GB before)"
            for m in report.memories
        ) + "."  # fmt: skip
        yield ""


def _machine(m: Machine) -> Iterator[str]:
    pair = lambda rates: " / ".join(f"{rates[t]:.3g}" for t in ("float32", "float64") if t in rates)  # noqa: E731
    registers = f", in registers {pair(m.exponentials_in_registers)}" if m.exponentials_in_registers else ""
    versions = ", ".join(f"{name} {number}" for name, number in m.versions.items())
    text = (
        f"Machine: {m.processor}, {m.cores} cores. Its peaks in the same process (float32 / float64): matrix products "
        f"{pair(m.gemm)} GFLOP/s; 10⁹ exponentials per second, in cache {pair(m.exponentials)}{registers}; copy "
        f"{m.copy:.3g} GB/s; a call of a compiled function that hardly computes {m.empty_call:.0f} µs. "
        f"Versions: {versions}."
    )
    yield from (*wrap(text, 120), "")


def table(rows: list[Result]) -> Iterator[str]:
    """One line a problem, one column per method, float32 / float64 where both were measured."""
    methods = list(dict.fromkeys(t.method for r in rows for t in r.timings))
    problems: dict[str, list[Result]] = {}
    for r in rows:
        problems.setdefault(r.case.removesuffix(f"/{r.dtype}").partition("/")[2], []).append(r)
    both = any(len(results) > 1 for results in problems.values())
    yield f"| {'float32 / float64' if both else 'ms'} | " + " | ".join(methods) + " | best peer / automatic | error |"
    yield "|---|" + "---:|" * (len(methods) + 2)
    for problem, results in problems.items():
        cells = [" / ".join(_ms(r.seconds(method)) for r in results) for method in methods]
        ratios = " / ".join("–" if r.ratio is None else f"{r.ratio:.2f}" for r in results)
        errors = " / ".join(_error(r) for r in results)
        yield f"| {problem} | " + " | ".join(cells) + f" | {ratios} | {errors} |"


def _ms(seconds: float | None) -> str:
    return "–" if seconds is None else f"{1e3 * seconds:.3g}"


def _error(result: Result) -> str:
    ours = [t.error for t in result.timings if t.ours]
    return f"{max(ours):.0e}" if ours else "–"


def left_out(report: Report) -> list[str]:
    """Which contenders did not take part, why, and in which cases."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for r in report.results:
        for method, why in r.left_out.items():
            reasons.setdefault((method, why), []).append(r.case)
    return [f"{method}: {why} ({', '.join(cases)})." for (method, why), cases in reasons.items()]


def _left_out(report: Report) -> Iterator[str]:
    lines = left_out(report)
    if lines:
        yield from ("Left out:", "", *(f"- {line}" for line in lines))
    if report.missing:
        yield ""
        yield f"Peers that are not installed: {', '.join(report.missing)} (`{EXTRA}`)."
