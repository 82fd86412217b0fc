"""frames: a run as what the player in a page shows, one object of plain types."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from pathlines.foundation.errors import ArgumentError, finite_number, of_kind, positive_integer
from pathlines.integrate.observe import OBSERVABLES
from pathlines.integrate.run import Run
from pathlines.view.clusters import labels_of_frames
from pathlines.view.known import said_of
from pathlines.view.observed import curves_of
from pathlines.view.pace import chosen_frames, time_scale
from pathlines.view.packed import packed_labels, packed_positions
from pathlines.view.places import WORDS, Places, places

FORMAT = "pathlines-frames/1"
MOST_TOKENS = 65_535
"""Labels of clusters have 16 bits."""
MOST_NUMBERS = 24_000_000
"""Coordinates in one page; a browser needs ten bytes for each."""


def frames(
    run: Run,
    *,
    count: int = 240,
    clock: str = "motion",
    observables: list[str] | None = None,
    theory: Any = None,
    overlays: list[dict[str, Any]] | None = None,
    masses: Any = None,
    delta: float = 1e-3,
    path: int = 0,
    title: str = "",
    subtitle: str = "",
    command: str = "",
    python: str = "",
) -> dict[str, Any]:
    """What a page shows of a run: places of the tokens, clusters, curves, words; plain types that JSON can say.

    Args:
        run: a run that recorded its tokens, or mean and covariance of Gaussian clouds in the plane.
        count: frames at most, 240 by default. The more, the smoother and the larger the page: 6 to 8 bytes a token and
            frame.
        clock: "motion" spreads frames over what moves, "time" over t, "log" over the logarithm of t.
        observables: records drawn as curves, by default the first four that are one number at a time.
        theory: a reduction (``pl.simplex``, ``pl.gram``) drawn dashed over the observable that it predicts; by default
            what is known of the model and start.
        overlays: polytopes, hyperplanes, centres: ``{"kind": "polytope", "points": …, "edges": …, "label": …}``.
        masses: of the tokens, by default equal ones. The heavier, the larger a token is drawn.
        delta: δ ≥ 0 of ``cluster_count``: tokens with ½|x_i - x_j|² ≤ δ are of one cluster. The larger, the fewer.
        path: number of the run of an ensemble whose tokens are shown.
        title: over the picture, by default the name of the model.
        subtitle: under the title, by default the numbers of the setting.
        command: shell command that computes it again, shown to be copied.
        python: lines of Python that compute it again, shown to be copied.

    Frames are recorded states, never interpolants. Cost: O(n log n) a frame for the clusters.
    """
    of_kind("run", run, Run, "a run")
    most, delta = positive_integer("count", count), finite_number("delta", delta, 0.0)
    drawn = places(run, path)
    kept = chosen_frames(drawn.times, drawn.shown, most, clock)
    shown, times = drawn.shown[kept], drawn.times[kept]
    n = shown.shape[1]
    _check_size(shown)
    labels = None if drawn.space == "ellipses" else _labels(run, drawn, kept, delta)
    curves = curves_of(run, observables, theory, float(times[-1]))
    return {
        "format": FORMAT,
        "space": drawn.space,
        "n": n,
        "components": shown.shape[2],
        "times": times.tolist(),
        "clock": {"name": "t", "label": _clock(run), "scale": time_scale(run.time)},
        **packed_positions(shown, drawn.space in ("sphere", "circle")),
        **({} if labels is None else {"clusters": packed_labels(labels)}),
        **({} if masses is None else {"masses": _masses(masses, n)}),
        "curves": curves,
        "theory": said_of(curves) if theory is None else "",
        "overlays": _overlays(overlays),
        "title": title or _name(run),
        "subtitle": subtitle or _numbers(run, n, drawn),
        "outcome": run.outcome,
        "command": command,
        "python": python,
        "alt": _alt(drawn, labels, times),
    }


def _labels(run: Run, drawn: Places, kept: np.ndarray, delta: float) -> np.ndarray:
    """The clusters of each frame, from the record where there is one of this δ."""
    record = run.data.get("cluster_labels")
    usual = float(dict(OBSERVABLES["cluster_labels"].parameters)["delta"])
    if record is not None and record.dims == ("time", "token") and delta == usual:
        return np.asarray(record.values)[: len(drawn.points)][kept]
    return labels_of_frames(drawn.points[kept], delta)


def _check_size(shown: np.ndarray) -> None:
    if shown.shape[1] > MOST_TOKENS:
        raise ArgumentError(f"A page shows at most {MOST_TOKENS:,} tokens, but the run has {shown.shape[1]:,}.")
    if shown.size > MOST_NUMBERS:
        raise ArgumentError(
            f"{shown.shape[1]:,} tokens in {shown.shape[0]} frames do not fit a page; ask for fewer frames:"
            f" count={MOST_NUMBERS // shown[0].size}."
        )


def _masses(masses: Any, n: int) -> list[float]:
    values = np.asarray(masses, float)
    if values.shape != (n,) or not np.isfinite(values).all() or values.min() < 0 or values.sum() <= 0:
        raise ArgumentError(f"Argument `masses` must be {n} numbers ≥ 0 that are not all zero.")
    return values.tolist()


def _overlays(overlays: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    kinds = ("polytope", "hyperplane", "centre", "points")
    for overlay in overlays or ():
        if not isinstance(overlay, dict) or overlay.get("kind") not in kinds:
            raise ArgumentError(f"Argument `overlays` must hold records whose kind is one of {', '.join(kinds)}.")
    return [{k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in o.items()} for o in overlays or ()]


def _clock(run: Run) -> str:
    return "layer" if "layer" in run.data.coords else "depth-time t"


def _name(run: Run) -> str:
    name = str(run.setting.get("model", {}).get("name", "Tokens"))
    return "".join(f" {c.lower()}" if c.isupper() and k else c for k, c in enumerate(name)).strip()


def _numbers(run: Run, n: int, drawn: Places) -> str:
    """The scalars of the model's setting, as a line."""
    model = run.setting.get("model", {})
    beta = model.get("beta", (model.get("inner") or {}).get("beta") if isinstance(model.get("inner"), dict) else None)
    what = "ellipse" if drawn.space == "ellipses" else "token"
    parts = [f"{n} {what}{'s' if n > 1 else ''}", "" if drawn.space == "ellipses" else WORDS[drawn.space]]
    parts += [f"β = {beta:g}" if isinstance(beta, int | float) else "", drawn.note]
    return " · ".join(p for p in parts if p)


def _alt(drawn: Places, labels: np.ndarray | None, times: np.ndarray) -> str:
    n = drawn.shown.shape[1]
    kind = "Gaussian clouds" if drawn.space == "ellipses" else "tokens"
    words = f"{n} {kind} {WORDS[drawn.space]} from t = {times[0]:.4g} to {times[-1]:.4g}."
    if labels is None:
        return words
    first, last = (len(np.unique(labels[k])) for k in (0, -1))
    return f"{words} They are {first} cluster{'s' * (first > 1)} at first and {last} at the end."


def as_text(data: dict[str, Any]) -> str:
    """The object as JSON that may stand inside a script element of a page: no letter of markup is left in it."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
