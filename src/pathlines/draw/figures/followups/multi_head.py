"""Heads whose weights change with depth: the energy and its balance, settling, swinging (arXiv:2605.18870)."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from pathlines.claim.followups.multi_head import Heads, engine_path, followed, heads_model, numpy_path, speeds, works
from pathlines.draw.gallery import picture
from pathlines.draw.style import COLOURS, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.followups import TIME_DEPENDENT
from pathlines.foundation.setting import Setting
from pathlines.limit.followups.time_dependent import (
    multi_head_energy,
    multi_head_field,
    multi_head_path,
    omega_limit,
    slowest_rate,
)


class Paths(Setting):
    """Random symmetric heads."""

    n: of.Tokens = 12
    until: of.Until = 30.0
    records: of.Records = 241
    seed: of.Seed = 0


@picture(
    "followups/multi-head",
    TIME_DEPENDENT,
    "Two heads with symmetric weights A_h(t). Left: with oscillating weights the energy E_t goes up and down, and is "
    "its start plus the integrals of |v|² and of ∂_tE_t (dashed). Middle: max|v| when the weights settle like e^{−t}, "
    "with the rate min(1, slowest mode at the ω-limit) (dashed). Right: max|v| when they oscillate does not tend to 0 "
    "(dashed: SciPy).",
    quick=Paths(),
)
def multi_head_figure(s: Paths) -> Figure:
    """Balance, settling, swinging."""
    figure, ((left, middle, right),) = new_figure(1, 3, width=3.5, height=3.0)
    times = np.linspace(0.0, s.until, s.records)
    swinging = Heads(n=s.n, seed=s.seed, until=s.until)
    model, (path, _) = heads_model(engine_path(swinging)), numpy_path(swinging)
    x, _ = followed(swinging, engine_path(swinging), times)
    energy = np.array([multi_head_energy(path(t), y) for t, y in zip(times, x, strict=True)])
    power = np.array(
        [np.mean(np.sum(multi_head_field(path(t), y) ** 2, axis=1)) for t, y in zip(times, x, strict=True)]
    )
    parts = [
        np.concatenate([[0.0], np.cumsum((p[1:] + p[:-1]) / 2 * np.diff(times))])
        for p in (power, works(model, x, times))
    ]
    for k, (part, label) in enumerate(zip(parts, (r"$\int|v|^2$", r"$\int\partial_tE_t$"), strict=True)):
        left.plot(times, part, color=COLOURS[k + 1], lw=1.2, label=label)
    left.plot(times, energy - energy[0], color=COLOURS[0], label=r"$E_t-E_0$")
    theory_line(left, times, parts[0] + parts[1], "sum of both")
    left.set(xlabel="depth-time $t$", ylabel="energy", title="balance")
    left.legend(fontsize=8)
    settling = Heads(path="decaying", frequencies=(1.0, 1.0), n=s.n, seed=s.seed, until=s.until)
    y, _ = followed(settling, engine_path(settling), times)
    found = speeds(engine_path(settling), y, times)
    middle.semilogy(times, found, color=COLOURS[0], label="engine")
    limit = numpy_path(settling)[0](1e9)
    rate, half = min(1.0, slowest_rate(limit, omega_limit(limit, y[-1]))), s.records // 2
    theory_line(
        middle, times[half:], 3 * found[half] * np.exp(-rate * (times[half:] - times[half])), f"rate {rate:.3g}"
    )
    middle.set(xlabel="depth-time $t$", ylabel=r"$\max_i|v_i|$", title="weights that settle")
    middle.legend()
    right.plot(times, speeds(engine_path(swinging), x, times), color=COLOURS[0], label="engine")
    own = multi_head_path(path, x[0], times)
    exact = [np.linalg.norm(multi_head_field(path(t), z), axis=1).max() for t, z in zip(times, own, strict=True)]
    theory_line(right, times, exact, "SciPy")
    right.set(xlabel="depth-time $t$", ylabel=r"$\max_i|v_i|$", title="weights that oscillate")
    right.legend()
    return figure
