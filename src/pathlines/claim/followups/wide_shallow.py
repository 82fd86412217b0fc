"""Gradient descent of wide shallow models: width, escape, fluctuations (arXiv:2605.10775; derived)."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error, root_and_error
from pathlines.claim.fitting import Mistake, simulated_at
from pathlines.claim.tolerance import absolute, at_least, at_most, relative, standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.followups import WIDE_SHALLOW
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow, layers
from pathlines.limit.followups.wide_training import descent_losses, escape_rate, flow_losses, loss_fluctuation
from pathlines.model.followups.wide_shallow import CONVENTION, WideShallow
from pathlines.numerics.teachers import head_teacher, tanh_teacher
from pathlines.observable.training import training_loss

HEADLINE = (
    "every critical measure that is not a global minimum is unstable, so gradient descent from a start with full "
    "support, if it converges, converges to a global minimum"
)
SAME_STEPS = "the same steps in another order of summation: rounding, grown by some thousand steps"
FLOOR = 1e-20
"""Of the loss of silence: below, residuals are 1e-10 of the outputs, and rounding is more than 1e-6 of them."""
MOVED, SAME = 1e-12, 1e-6
"""Starts this far apart, relatively, must stay this near for paths to be compared one by one."""
LONG = 60.0
"""Training time from which a loss counts as final."""

Widths = Annotated[of.Counts, means("widths of the students", "m")]
Rate = Annotated[of.Positive, means("rate of gradient descent in mean-field time", "η")]
Steps = Annotated[of.Count, means("steps of gradient descent")]
Inputs = Annotated[of.Count, means("inputs", "N")]


# --- W1 and W3: students of several widths


class Students(Setting):
    """Students of several widths, each from several Gaussian starts; the same data for all."""

    widths: Widths = (2, 4, 16)
    inputs: Inputs = 60
    step: Rate = 0.25
    steps: Steps = 1000
    starts: of.Starts = 8
    data_seed: Annotated[int, means("seed of the inputs and the teacher")] = 1
    seed: of.Seed = 2


class WideNeurons(Students):
    """Students of a teacher of three neurons, and a crowd of students whose losses are compared early."""

    crowd: Annotated[of.Count, means("students whose early losses are compared")] = 6000
    crowd_width: Annotated[of.Count, means("their width", "m")] = 64
    early: Annotated[of.Count, means("steps after which they are compared")] = 3
    early_step: Annotated[of.Positive, means("rate of these steps", "η")] = 0.6


def neurons_of(s: Students) -> tuple[np.ndarray, np.ndarray]:
    """The data of three tanh neurons: two inputs, two outputs."""
    return tanh_teacher(s.inputs, seed=s.data_seed)


def heads_of(s: Students) -> tuple[np.ndarray, np.ndarray]:
    """The data of two heads: contexts of 8 tokens in three dimensions."""
    return head_teacher(s.inputs, seed=s.data_seed)


def starts_of(s: Students, size: int) -> list[np.ndarray]:
    """(starts, m, D) for each width m."""
    return [np.random.default_rng((s.seed, m)).standard_normal((s.starts, m, size)) for m in s.widths]


def trained(model: WideShallow, starts: np.ndarray, step: float, steps: int) -> np.ndarray:
    """Losses after gradient descent from each start, some side by side."""

    def last(start: Any) -> Any:
        return layers(model, start, depth=steps, step=step, every=steps, record=training_loss)["training_loss"][-1]

    return np.asarray(jax.lax.map(last, starts, batch_size=min(len(starts), 100)))


def soon(s: Students) -> int:
    """Steps after which paths are compared one by one: later, at the edge of stability, a few of them carry rounding to
    the first digit (starts that differ by 1e-12 end .28 apart).
    """
    return max(1, s.steps // 12)


def judged(s: Students, rows: list[np.ndarray], targets: np.ndarray) -> dict[str, Any]:
    """What width does to final losses."""
    none, order = 0.5 * np.mean(np.sum(targets**2, axis=-1)), np.argsort(s.widths)
    final = np.maximum(rows, FLOOR * none)
    middle, spread = np.median(final, axis=1), np.log(final).std(axis=1)
    wide, narrow, between = order[-1], order[0], order[len(order) // 2]
    return {
        "widest": middle[wide] / none,
        "narrowest_over_widest": middle[narrow] / middle[wide],
        "spread": spread[wide] / spread[between] if len(order) > 1 and spread[between] > 0 else np.nan,
    }


def _medians(label: str, s: Students, final: np.ndarray) -> Curve:
    return Curve(label, np.array(s.widths), np.median(final, axis=1))


def simulate_students(s: Students, data: Any, features: str) -> Evidence:
    """The engine's layers are steps of gradient descent."""
    x, y = data(s)
    model = WideShallow(x, y, features)
    starts = starts_of(s, model.width)
    rows = [trained(model, p, s.step, s.steps) for p in starts]
    values = judged(s, rows, y)
    error = {"spread": values["spread"] / np.sqrt(max(s.starts - 1, 1))}  # of the ratio of two standard deviations
    early = np.array([trained(model, p, s.step, soon(s)) for p in starts])
    curve = _medians("median of the engine", s, np.maximum(rows, FLOOR * 0.5 * np.mean(np.sum(y**2, axis=-1))))
    return Evidence({"early_losses": early, **values}, error, curves=(curve,))


def predict_students(s: Students, data: Any, size: int, teachers: int, stable: float) -> Evidence:
    """The same starts, gradients by hand; bounds of what the theorem says."""
    (x, y), starts = data(s), starts_of(s, size)
    paths = [descent_losses(x, y, p, s.step, s.steps) for p in starts]
    early = np.array([path[soon(s)] for path in paths])
    moved = np.array([descent_losses(x, y, p * (1 + MOVED), s.step, soon(s))[-1] for p in starts])
    final = np.maximum([path[-1] for path in paths], FLOOR * 0.5 * np.mean(np.sum(y**2, axis=-1)))
    time, wide = s.step * s.steps, max(s.widths) >= 4 * teachers
    falling = {} if time >= LONG else {"widest": f"steps × step ≥ {LONG:g}: the loss is still falling"}
    narrow = {} if wide else {"widest": f"a width of at least {4 * teachers}"}
    both = {} if wide and min(s.widths) <= teachers else {"narrowest_over_widest": "a narrow and a wide student"}
    several = {} if len(s.widths) > 2 and wide and s.starts >= 6 else {"spread": "three widths and six starts"}
    late = dict.fromkeys(("narrowest_over_widest", "spread"), "more steps") if falling else {}
    with np.errstate(invalid="ignore"):
        same = bool(np.all(np.abs(moved - early) <= SAME * np.abs(early)))
    rough = {} if same else {"early_losses": f"step ≤ {stable:g}: starts {MOVED:g} apart are led further apart"}
    if grew(paths[int(np.argmax(s.widths))]):
        rough = dict.fromkeys(WITHIN, f"step ≤ {stable:g}: a loss grew")
    if y.size < 3 * min(s.widths) * size:
        both = several = dict.fromkeys(("narrowest_over_widest", "spread"), "more inputs: narrow students fit so few")
    values = {"early_losses": early, "widest": 0.01, "narrowest_over_widest": 3.0, "spread": 1.0}
    advice = {**narrow, **falling, **both, **several, **late, **rough}
    return Evidence(values, curves=(_medians("by hand", s, final),), source="gradients by hand", undecided=advice)


def grew(losses: np.ndarray) -> bool:
    """Whether gradient descent (steps first) went up by more than a hundredth of where it began, or was lost.

    Asked of the widest students, of whom the theorem speaks: one neuron or head alone may jump on its way to where it
    gets stuck.
    """
    return not np.all(np.isfinite(losses)) or bool(np.any(np.diff(losses, axis=0) > 0.01 * losses[0]))


WITHIN = {
    "early_losses": relative(1e-5, f"{SAME_STEPS}; starts {MOVED:g} apart stay within {SAME:g}"),
    "widest": at_most("the infimum is zero, and the loss of a wide student goes there"),
    "narrowest_over_widest": at_least("a student narrower than the teacher gets stuck above it"),
    "spread": at_most("wide students follow one mean-field trajectory; four standard errors of few starts", errors=4.0),
}
BLIND = {"spread": "few starts at quick size: their standard errors cover most mistakes"}
SHORTER = simulated_at("{:g} times fewer steps", (10.0, 100.0, 1e3), steps=lambda n, size: max(1, int(n / size)))
NARROW = Mistake(
    "judged",
    "losses of the widest and the narrowest student exchanged",
    lambda right, size: lambda s, rows, y: right(s, rows[::-1], y),
    (1.0,),
)


def simulate_neurons(s: WideNeurons) -> Evidence:
    """Students of several widths, and the losses of a crowd of equal ones after a few steps."""
    found, (x, y) = simulate_students(s, neurons_of, "tanh"), neurons_of(s)
    model = WideShallow(x, y)
    size = (s.crowd, s.crowd_width, model.width)
    early = trained(model, np.random.default_rng((s.seed, 0)).standard_normal(size), s.early_step, s.early)
    variance, error = mean_and_error((early - early.mean()) ** 2 * s.crowd / (s.crowd - 1))
    root, noise = root_and_error(float(variance), float(error))
    grown = np.sqrt(s.crowd_width)
    values = {**found.values, "fluctuation": grown * root}
    return Evidence(values, {**found.uncertainties, "fluctuation": grown * noise}, curves=found.curves)


def predict_neurons(s: WideNeurons) -> Evidence:
    """By hand; the fluctuation from the influence of single neurons along wide trajectories."""
    found, (x, y) = predict_students(s, neurons_of, 5, 3, 0.25), neurons_of(s)
    wide = [np.random.default_rng((s.seed, 1, k)).standard_normal((1000, 5)) for k in range(24)]
    middle, error = mean_and_error([loss_fluctuation(x, y, p, s.early_step, s.early) for p in wide])
    few = (
        {}
        if s.crowd_width >= 64 and s.early_step * s.early <= 4
        else {"fluctuation": "crowd_width ≥ 64 and early times"}
    )
    values = {**found.values, "fluctuation": middle}
    advice = {**found.undecided, **few}
    return Evidence(values, {"fluctuation": error}, curves=found.curves, source=found.source, undecided=advice)


claim(
    "followups/W1",
    WIDE_SHALLOW,
    "wide students learn any teacher, narrow ones get stuck",
    f"In wide shallow models with a bounded φ, {HEADLINE}. Students of three tanh neurons: the loss of wide ones falls "
    "towards zero from every Gaussian start, that of two neurons gets stuck above it, and final losses spread less the "
    "wider the student. Early, √m times the standard deviation of the loss over starts tends to that of the influence "
    "of a single neuron along the mean-field trajectory.",
    where="abstract, on tanh neurons; the law of fluctuations is derived",
    models=("wide-shallow",),
    quick=WideNeurons(),
    full=WideNeurons(widths=(2, 4, 8, 16, 32, 128), steps=6000, starts=12, crowd=24000, crowd_width=128),
    within={
        **WITHIN,
        "fluctuation": relative(0.02, "finite width, about 1/m of the law, and five standard errors", errors=5.0),
    },
    simulate=simulate_neurons,
    predict=predict_neurons,
    axes=Axes("width m", "final loss", "log", "log"),
    mistakes=(SHORTER, NARROW),
    blind=BLIND,
    marks=("abstract", "derived", "assumed"),
    convention=CONVENTION,
)

claim(
    "followups/W3",
    WIDE_SHALLOW,
    "wide students of attention heads learn any teacher",
    f"In wide shallow models of attention heads, {HEADLINE}. Last-token regression on two heads (d = 3, context 8): as "
    "for neurons, the loss of wide students falls towards zero from every Gaussian start, that of students narrower "
    "than the teacher gets stuck, and final losses spread less the wider the student.",
    where="abstract, on multi-head attention; the experiment is ours",
    models=("wide-shallow",),
    quick=Students(widths=(1, 4, 10), inputs=30, step=0.05, steps=1200, starts=6),
    full=Students(widths=(1, 2, 4, 8, 16, 32, 64), step=0.05, steps=8000, starts=12),
    within=WITHIN,
    simulate=partial(simulate_students, data=heads_of, features="heads"),
    predict=partial(predict_students, data=heads_of, size=18, teachers=2, stable=0.05),
    axes=Axes("width m", "final loss", "log", "log"),
    mistakes=(SHORTER, NARROW),
    blind=BLIND,
    marks=("abstract", "unverified", "assumed"),
    convention=CONVENTION,
)


# --- W2: escape from a critical measure that is not optimal


class Escape(Setting):
    """An atom at (a, w) = (0, 0) beside probes (0, w), w Gaussian, of mass ε in all."""

    shares: Annotated[tuple[of.Share, ...], means("masses of the probes", "ε")] = (1.0, 0.1, 0.0)
    probes: Annotated[of.Count, means("probes")] = 64
    times: of.Times = (5.0, 20.0, 100.0)
    step: Rate = 0.05
    until: Annotated[of.Positive, means("where gradient descent ends", unit="mean-field time")] = 20.0
    inputs: Inputs = 60
    drawn: Annotated[of.Count, means("probes whose first velocity is measured")] = 20000
    data_seed: Annotated[int, means("seed of the inputs and the teacher")] = 1
    seed: of.Seed = 2


def neurons_for(s: Escape) -> tuple[np.ndarray, np.ndarray]:
    """The data of three tanh neurons."""
    return tanh_teacher(s.inputs, seed=s.data_seed)


def probed(s: Escape) -> np.ndarray:
    """The atom in the first row, probes below."""
    rows = np.zeros((s.probes + 1, 5))
    rows[1:, 2:] = np.random.default_rng(s.seed).standard_normal((s.probes, 3))
    return rows


def masses_at(s: Escape, share: float) -> np.ndarray:
    """1 - ε and ε."""
    return np.array([1 - share, *np.full(s.probes, share / s.probes)])


def simulate_escape(s: Escape) -> Evidence:
    """The engine's flow and its gradient descent; first velocities of many probes."""
    (x, y), rows, runs, descent, atom = neurons_for(s), probed(s), [], [], 0.0
    depth = max(1, round(s.until / s.step))
    for share in s.shares:
        model = WideShallow(x, y, multiplicities=masses_at(s, share))
        run = flow(model, rows, times=[0.0, *s.times], record=("training_loss", "tokens"), rtol=1e-9)
        steps = layers(model, rows, depth=depth, step=s.step, every=depth, record=("training_loss", "tokens"))
        runs.append(run)
        descent.append(max(steps["training_loss"].values[-1] / steps["training_loss"].values[0], FLOOR))
        atom = max(atom, *(float(np.abs(r["tokens"].values[:, 0]).max()) for r in (run, steps)))
    kept = np.array([r["training_loss"].values[1:] / r["training_loss"].values[0] for r in runs])
    rate, error = first_rate(s, x, y)
    values = {"loss": kept, "descent": np.array(descent), "atom": atom, "escape_rate": rate}
    return Evidence(values, {"escape_rate": error}, curves=_curves("engine", s, kept), runs=tuple(runs))


def first_rate(s: Escape, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Mean square velocity of Gaussian probes beside an atom that has all the mass, and its error."""
    rows = np.zeros((s.drawn + 1, 5))
    rows[1:, 2:] = np.random.default_rng((s.seed, 1)).standard_normal((s.drawn, 3))
    model = WideShallow(x, y, multiplicities=np.array([1.0, *np.zeros(s.drawn)]))
    moved = np.asarray(model.drift(jnp.asarray(rows), jnp.zeros(())))[1:]
    rate, error = mean_and_error(np.sum(moved**2, axis=1))
    return float(rate), float(error)


def predict_escape(s: Escape) -> Evidence:
    """SciPy's solver and descent by hand, with gradients by hand; the rate from integrals over the plane."""
    (x, y), rows, kept, descent, rough = neurons_for(s), probed(s), [], [], {}
    for share in s.shares:
        masses = masses_at(s, share)
        found = flow_losses(x, y, rows, [0.0, *s.times], masses, 1e-10)
        kept.append(found[1:] / found[0])
        losses = descent_losses(x, y, rows, s.step, max(1, round(s.until / s.step)), masses)
        descent.append(max(losses[-1] / losses[0], FLOOR))
        if grew(losses):
            rough = {"descent": "a smaller step: the loss grew"}
    values = {"loss": np.array(kept), "descent": np.array(descent), "atom": 0.0, "escape_rate": escape_rate(x, y)}
    return Evidence(
        values, curves=_curves("by hand", s, np.array(kept)), source="gradients by hand, quadrature", undecided=rough
    )


def _curves(label: str, s: Escape, kept: np.ndarray) -> tuple[Curve, ...]:
    return tuple(Curve(f"{label}, ε = {e:g}", np.array(s.times), row) for e, row in zip(s.shares, kept, strict=True))


claim(
    "followups/W2",
    WIDE_SHALLOW,
    "escape from a critical measure that is not optimal",
    "The atom at (a, w) = (0, 0) is a critical measure for any data, and not optimal: alone it stays for ever. With a "
    "mass ε of neurons (0, w), w Gaussian, the loss leaves at the rate −dL/dt = ε ∬ ⟨y, y'⟩ E[tanh(w·z) tanh(w·z')], "
    "z = (x, 1), over pairs of data, and falls to zero for every ε > 0 while the atom itself never moves.",
    where="derived; an example of the theorem on escape (abstract)",
    models=("wide-shallow",),
    quick=Escape(),
    full=Escape(shares=(1.0, 0.3, 0.1, 0.0), times=(5.0, 20.0, 100.0, 1000.0), until=1000.0, drawn=200_000),
    within={
        "loss": relative(1e-4, "both solvers keep 1e-9 per step; tails of 1e-4 of the loss lose some digits"),
        "descent": relative(1e-6, SAME_STEPS),
        "atom": absolute(1e-12, "its velocity is a sum of exact zeros"),
        "escape_rate": standard_errors(5.0, "five standard errors of the probes"),
    },
    simulate=simulate_escape,
    predict=predict_escape,
    axes=Axes("mean-field time t", "L/L₀", "log", "log"),
    mistakes=(
        Mistake(
            "probed",
            "the atom {:g} beside the critical point",
            lambda right, size: lambda s: right(s) + size * np.eye(s.probes + 1, 5),
            (1e-6, 1e-3, 0.1),
        ),
    ),
    marks=("abstract", "derived", "assumed"),
    convention=CONVENTION,
)
