"""A watched training as the file of a run, and as a figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pathlines.foundation.errors import of_kind, require

if TYPE_CHECKING:
    from pathlines.probing.watch import Watch

_PANELS = {
    "mean_cosine": "mean cosine of pairs of tokens",
    "effective_rank": "effective rank",
    "attention_entropy": "entropy of attention (nats)",
    "gradient": "gradient norm of the stream",
}


def save_watch(watch: Watch, path: Path | str) -> Path:
    """What was seen as a run: `pathlines show FILE`, ``pl.open_run``."""
    from pathlines.integrate.run import Run
    from pathlines.store.runs import save_run

    data = watch.dataset()
    model = {"name": f"training of {data.attrs['model']}", **{k: int(data.attrs[k]) for k in ("every", "layers")}}
    setting = {"model": model, "papers": [], "derived": {"steps": watch.steps, "last_cosine": _last(data)}}
    run = Run(data.drop_attrs(), (), (), "completed", setting, watch.seconds)
    return save_run(run, path)


def _last(data: Any) -> float:
    return float(data["mean_cosine"].values[-1, -1])


def watch_figure(data: Any) -> Any:
    """Four panels over layers, a line for each step that was seen; the prediction at initialisation dashed.

    Args:
        data: what ``Watch.dataset`` gives, or the data of its run (``pl.open_run(file).data``).
    """
    import matplotlib as mpl

    from pathlines.draw.style import THEORY, house_style, new_figure

    require("gradient" in getattr(data, "data_vars", ()), "data", "be what Watch recorded", type(data).__name__)
    of_kind("data", data.attrs, dict, "a Dataset")
    with house_style():
        figure, axes = new_figure(2, 2, width=4.3, height=2.7)
        layers, times = data["layer"].values, data["time"].values
        shades = mpl.colormaps["viridis"](np.linspace(0.0, 0.9, len(times)))
        for panel, (name, title) in zip(np.ravel(axes), _PANELS.items(), strict=True):
            for k, time in enumerate(times):
                label = f"step {time:g}" if k in (0, len(times) - 1) else None
                panel.plot(layers, data[name].values[k], color=shades[k], lw=1.2, label=label)
            if name == "mean_cosine" and "predicted_mean_cosine" in data:
                mean, spread = data["predicted_mean_cosine"].values, data["predicted_spread"].values
                panel.plot(layers, mean, "--", color=THEORY, label="predicted at initialisation")
                panel.fill_between(layers, mean - spread, mean + spread, color=THEORY, alpha=0.15, lw=0)
            panel.set(title=title, xlabel=r"layer $\ell$", yscale="log" if name == "gradient" else "linear")
        np.ravel(axes)[0].legend(loc="best")
        return figure
