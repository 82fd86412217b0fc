"""asymptotics_figure: a variable along sizes, with its fit and the theory it goes to."""

from __future__ import annotations

from matplotlib.figure import Figure

from pathlines.draw.style import COLOURS, MUTED, house_style, new_figure, theory_line
from pathlines.foundation.errors import of_kind
from pathlines.sweep.asymptotics import SURE, Asymptotics


def asymptotics_figure(found: Asymptotics) -> Figure:
    """Points with bars of two standard errors, the fit y = L + C n^{-p} with the band of its limit; theory dashed, with
    the band of the tolerance, and a line where the size suffices.
    """
    of_kind("found", found, Asymptotics, "an answer of `asymptotics`")
    with house_style():
        figure, ((axes,),) = new_figure(1, 1, width=4.6, height=3.2)
        bars = SURE * found.errors
        style = {"color": COLOURS[0], "marker": "o", "ms": 4.0, "ls": "none", "capsize": 2.5}
        axes.errorbar(found.sizes, found.values, yerr=bars, label="measured ± 2 s.e.", **style)
        if found.fit is not None and found.power is not None:
            label = f"$L + C\\,{found.along}^{{-p}}$, p = {found.power.value:.3g}"
            axes.plot(found.sizes, found.fit, color=COLOURS[0], lw=1.2, label=label)
        if found.limit is not None and found.theory is None:
            axes.axhspan(found.limit.low, found.limit.high, color=COLOURS[2], alpha=0.2, lw=0)
            axes.axhline(found.limit.value, color=COLOURS[2], lw=1.0, label=f"limit {found.limit.value:.4g}, 95 % band")
        if found.theory is not None:
            allowed = found.tolerance * abs(found.theory) if (found.theory != 0).all() else found.tolerance
            share = f"± {100 * found.tolerance:g} %"
            low, high = found.theory - allowed, found.theory + allowed
            axes.fill_between(found.sizes, low, high, color=MUTED, alpha=0.18, lw=0, label=share)
            theory_line(axes, found.sizes, found.theory)
        if found.size is not None:
            axes.axvline(
                found.size, color=COLOURS[1], lw=1.0, ls=":", label=f"enough from {found.along} = {found.size:g}"
            )
        axes.set_xscale("log")
        axes.set_xticks(found.sizes, [f"{size:g}" for size in found.sizes])
        axes.minorticks_off()
        axes.set(xlabel=found.along, ylabel=found.variable.replace("_", " "))
        axes.legend(fontsize=7)
    return figure
