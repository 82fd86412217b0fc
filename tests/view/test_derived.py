"""What pages read off the tokens is what a run records."""

import jax
import numpy as np
import pytest

from pathlines.sweep.request import build, compute, law_of
from pathlines.view.frames import frames
from pathlines.view.site.runs import records, run_of
from pathlines.view.site.state import state_of

jax.config.update("jax_enable_x64", True)


@pytest.mark.parametrize(
    "words",
    [
        {"model": "sa", "n": "200", "beta": "6", "until": "5"},
        {"model": "sa", "n": "210", "d": "2", "beta": "2", "layers": "40", "step": "0.3"},
        {"model": "rescaled", "d": "2", "n": "8", "until": "2"},
    ],
)
def test_derived_records_are_those_of_the_run(words):
    state = state_of(words).checked()
    shown, asked = run_of(state), state.request(records(state))
    assert ("cluster_labels" in shown.data) == (state.stage.n >= 200)
    whole = compute(asked, build(asked), law_of(asked), progress=False)
    assert [str(v) for v in shown.data.data_vars][: len(asked.record)] == [str(v) for v in asked.record]
    for name in asked.record:
        np.testing.assert_allclose(shown[name], whole[name], rtol=1e-9, atol=1e-13)
        assert shown.data[name].attrs == whole.data[name].attrs
    assert frames(shown)["clusters"] == frames(whole)["clusters"]
    assert [c["name"] for c in frames(shown)["curves"]] == [c["name"] for c in frames(whole)["curves"]]
