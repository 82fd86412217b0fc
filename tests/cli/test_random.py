"""`pathlines run random`: chains from the command line."""

import msgspec
import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError, UnknownNameError
from pathlines.sweep.request import Request, execute

REQUEST = Request(
    model="random",
    parameters={"beta": 0.0},
    n=3,
    d=5,
    until=0.3,
    start="simplex",
    record=(),
    runs=1,
    depth=None,
    step=0.3,
    method="rk45",
    rtol=1e-8,
    form="auto",
    seed=1,
    dtype="float64",
)


def test_time_step_and_seed():
    """--until is diffusive time (ceil(0.3/0.09) layers), --step is η, --seed the key; a second run comes from disk."""
    run, how = execute(REQUEST)
    assert how == "computed" and run.data["layer"].values[-1] == 4
    assert run.setting["derived"]["layer_time"] == pytest.approx(0.09)
    assert "layer_time = 0.09" in repr(run)
    assert {"mean_overlap", "mean_square", "effective_rank"} <= set(run.data.data_vars)
    again, how = execute(REQUEST)
    assert how == "stored" and np.array_equal(again["mean_square"], run["mean_square"])
    np.testing.assert_array_equal(again.data["collapse_layer"], run.data["collapse_layer"])


def test_runs_and_layers():
    run, _ = execute(msgspec.structs.replace(REQUEST, runs=3, depth=2, record=("mean_overlap",)))
    assert run["mean_overlap"].dims == ("run", "time") and run["mean_overlap"].shape == (3, 3)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"form": "gram"}, ArgumentError, "it needs n ≤ d/2"),
        ({"parameters": {"depth": 3}}, UnknownNameError, "no setting `depth`"),
        ({"parameters": {"qk_dim": float("inf")}}, ArgumentError, "`logit_scale` must be given"),
    ],
)
def test_refusals(changes, error, message):
    with pytest.raises(error, match=message):
        execute(msgspec.structs.replace(REQUEST, **changes))
