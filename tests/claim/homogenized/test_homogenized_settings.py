"""Claims of the homogenized family at other settings than their own: they hold there too, or refuse the setting."""

import jax
import numpy as np
import pytest

from pathlines.claim import CLAIMS, evaluate
from pathlines.claim.homogenized import direct
from pathlines.claim.homogenized.conformal_noise import cross_ratio_change
from pathlines.claim.slopes import limiting_order
from pathlines.foundation.errors import ArgumentError
from pathlines.integrate.coupling import coupled_chains

HOLDS = [
    ("C02", {"steps": [0.5]}),
    ("C02", {"steps": [0.4, 0.3], "until": 3.0}),
    ("C07", {"n": 3, "b": 5.0, "overlaps": [-0.3, 0.9], "qk_dim": 16}),
    ("C09", {"d": 128, "runs": 4, "seed": 3}),
    ("C09", {"runs": 320, "depth": 40}),
    ("C14", {"n": 40, "d": 96, "heads": 6, "cases": [["post", 0.4, 1.0]], "layers": [16, 24, 32], "runs": 48}),
    ("C20", {"cases": [[3, 1.0]], "starts": [-0.9], "v": 0.05}),
    ("T1", {"ns": [8, 16], "bs": [30.0], "v": 0.2, "runs": 8}),
    ("C11", {"n": 8, "d": 4, "b": 0.5}),
    ("C11", {"n": 2, "d": 2, "b": 0.6, "qk_dim": 2}),
    ("C12", {"d": 8, "runs": 1000}),
    ("C16", {"dims": [6], "v": 0.2, "n": 3, "b": 1.0, "runs": 4000}),
    ("C17", {"ns": [32, 64, 128], "reference": 512, "seed": 5}),
    ("C17", {"ns": [32, 64, 128], "reference": 512, "concentration": 4.0, "b": 1.0}),
    ("C27a", {"ns": [64, 128], "concentration": 2.0, "b": 1.0, "v": 0.1, "layers": 10}),
    ("C27c", {"concentration": 0.0, "b": 4.0, "runs": 4000}),
    ("C27d", {"cells": [48, 96], "nodes": 256, "v": 0.025, "tau": 0.25, "runs": 16}),
    ("C21", {"runs": 1000, "time": 3.0}),
    ("C24", {"d": 12}),
    pytest.param("C01", {"seed": 7, "until": 2.0}, marks=pytest.mark.slow),
    pytest.param("C06", {"d": 32, "b": 3.0}, marks=pytest.mark.slow),
    pytest.param("C08", {"b": 4.0, "heads": 1}, marks=pytest.mark.slow),
    pytest.param("C10", {"d": 6, "n": 8, "tau": 1.0}, marks=pytest.mark.slow),
    pytest.param("C10", {"steps": [0.4, 0.2], "tau": 4.0}, marks=pytest.mark.slow),
    pytest.param("C12", {"d": 16, "width_ratio": 0.25, "times": [0.3, 2.0]}, marks=pytest.mark.slow),
]
UNDECIDED = [
    ("C17", {"ns": [64, 128, 256], "reference": 512, "b": 0.0, "layers": 4}, "take smaller `ns`"),
    ("ER-05b", {"n": 2, "runs": 30000, "dimensions": [52, 3358]}, "runs="),
    ("C25c", {"n": 3, "d": 2, "beta": 2.0, "heads": 1, "pairs": 500, "check_pairs": 500}, "take more pairs"),
    ("C27a", {"ns": [4, 8], "runs": 20, "b": 4.0}, "take larger `ns` or fewer `layers`"),
    ("C27b", {"ns": [16, 32], "layers": 10, "runs": 20}, "v·layers ≥ 1"),
    ("C27c", {"v": 0.1, "runs": 100}, "take v ≤ 0.002"),
    ("C27c", {"concentration": 20.0, "runs": 100}, "take cells ≥ 110"),
    ("C27d", {"cells": [16, 32], "nodes": 64, "v": 0.5, "tau": 2.0, "runs": 8}, "take a smaller v"),
    ("C01", {"steps": [0.18, 0.045, 0.047], "correctors": ["paper"], "rtol": 1e-8}, "steps of at most"),
    ("C03", {"d": 4, "overlap": 0.5, "runs": 20000}, "runs="),
    ("C09", {"d": 32, "n": 8, "depth": 40}, "d="),
    ("C09", {"beta": 0.4, "depth": 16}, "beta="),
    ("C14", {"n": 8, "d": 32, "heads": 4, "cases": [["post", 1.0, 1.0]], "layers": [16], "runs": 4}, "d="),
    ("T1", {"ns": [8, 16], "bs": [30.0], "v": 0.2, "runs": 4, "horizon": 0.4}, "horizon="),
    ("ER-01", {"d": 4096, "runs": 4000}, "smaller d"),
    ("ER-11", {"attentions": [0.3, 0.9], "runs": 8, "layers": 4}, "counterexample"),
    ("ER-11b", {"attentions": [0.463], "runs": 8, "layers": 4}, "threshold"),
]
REFUSED = [
    ("C01", {"steps": [0.1]}, "`steps` must hold at least 2"),
    ("C03", {"layer_times": [0.5, 0.3]}, "`layer_times` must divide tau"),
    ("C04", {"pairs": [[0.3, 1], [0.6, 2]]}, "`pairs` must have the same"),
    ("C06", {"layers": [67]}, "`layers` must be at most depth"),
    ("C16", {"n": 1}, "`n` must be an integer"),
    ("C13", {"dims": [64]}, "`dims` must hold at least 2"),
]


@pytest.mark.parametrize(("name", "changes"), HOLDS)
def test_holds(name, changes):
    outcome = evaluate(CLAIMS[f"homogenized/{name}"], "quick", changes)
    assert outcome.verdict == "holds", (outcome.quantity, outcome.measured, outcome.expected)


@pytest.mark.parametrize(("name", "changes", "advice"), UNDECIDED)
def test_says_what_to_change(name, changes, advice):
    outcome = evaluate(CLAIMS[f"homogenized/{name}"], "quick", changes)
    assert outcome.verdict == "inconclusive"
    assert any(advice in c.reason for c in outcome.checks)


def test_a_first_order_error_is_noticed_with_gaussian_values():
    """The printed drift: what is left at first order is refuted, whatever the second program says."""
    changes = {"corrector": "paper", "pairs": 1000, "check_pairs": 500}
    outcome = evaluate(CLAIMS["homogenized/C25c"], "quick", changes)
    assert {c.quantity: c.verdict for c in outcome.checks}["remaining"] == "refuted"


def test_noise_that_is_not_shared_is_noticed(monkeypatch):
    """With a law of its own for every run, laws of more tokens are not closer: C27b is refuted."""
    from pathlines.claim.homogenized import mean_field_chaos as module

    apart = lambda models, starts, *, key, **options: [  # noqa: E731
        coupled_chains([m], [x], key=jax.random.fold_in(key, k), **options)[0]
        for k, (m, x) in enumerate(zip(models, starts, strict=True))
    ]
    monkeypatch.setattr(module, "coupled_chains", apart)
    assert evaluate(CLAIMS["homogenized/C27b"]).verdict == "refuted"


@pytest.mark.parametrize(("name", "changes", "says"), REFUSED)
def test_refused_at_once(name, changes, says):
    with pytest.raises(ArgumentError, match=says):
        evaluate(CLAIMS[f"homogenized/{name}"], "quick", changes)


@pytest.mark.parametrize("factor", [1.0, 1e6])
def test_no_factor_saves_the_printed_lipschitz_rate(factor):
    assert evaluate(CLAIMS["homogenized/ER-09"], "quick", {"factor": factor}).verdict == "refuted"


def test_order_beyond_the_next_term():
    steps = np.array([0.1, 0.05, 0.025])
    assert limiting_order(steps, steps**2 * np.exp(-3 * steps))[0] == pytest.approx(2, abs=1e-12)
    assert limiting_order(steps[:2], steps[:2] ** 2)[0] == pytest.approx(2, abs=1e-12)
    more = np.array([0.4, 0.3, 0.2, 0.15, 0.1])
    order, bend = limiting_order(more, more * np.exp(more - 2 * more**2 + 3 * more**3), bends=3)
    assert (order, bend) == (pytest.approx(1, abs=1e-10), pytest.approx(3e-3, rel=1e-8))


def test_change_of_cross_ratios_is_what_no_conformal_map_explains():
    """Against least squares over a_i + a_j; a conformal change of u = 1 - K leaves nothing."""
    n, rng = 6, np.random.default_rng(1)
    i, j = np.triu_indices(n, 1)
    u, change = rng.uniform(0.5, 1.5, len(i)), rng.normal(0, 0.1, len(i))
    overlaps = np.broadcast_to(np.eye(n), (3, n, n)).copy()
    factors = rng.uniform(-0.1, 0.1, n)
    for k, moved in enumerate((u, u * np.exp(change), u * np.exp(factors[i] + factors[j]))):
        overlaps[k, i, j] = overlaps[k, j, i] = 1 - moved
    design = np.eye(n)[i] + np.eye(n)[j]
    rest = change - design @ np.linalg.lstsq(design, change, rcond=None)[0]
    assert cross_ratio_change(overlaps[0], overlaps[1]) == pytest.approx(rest @ rest / (n * (n - 3) / 2), rel=1e-12)
    assert cross_ratio_change(overlaps[0], overlaps[2]) == pytest.approx(0, abs=1e-28)


def test_wide_layers_are_the_limit_of_drawn_ones():
    """Mean overlaps at d = 64 and d = ∞, 400 runs each: 5 standard errors and 2/d."""
    drawn = direct.random_layers(np.eye(3, 64), 2.0, 0.5, 1, 4, 400, 1, width=np.inf)
    wide = direct.wide_layers(np.eye(3), 2.0, 0.5, 1, 4, 400, 2)
    found = [direct.mean_overlap(g)[:, -1] for g in (drawn, wide)]
    error = np.hypot(*(v.std(ddof=1) / 20 for v in found))
    assert abs(found[0].mean() - found[1].mean()) < 5 * error + 2 / 64
