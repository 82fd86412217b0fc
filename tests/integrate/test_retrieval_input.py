"""Bad input of retrieval gets one line that names the argument and what is allowed."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest

import pathlines as pl
from pathlines.foundation.errors import ArgumentError
from pathlines.limit.causal.profile import retrieval_profile
from pathlines.model.causal.decoder import CausalDecoder

UPPER = np.full((8, 8), 1 / 8)
LIGHT = np.tril(np.full((8, 8), 0.3), -1)


def simulated(beta=1.0, mask=2.0, n=8, depth=1.0, **options):
    return pl.retrieval(CausalDecoder(beta, mask), n, depth, key=jax.random.key(0), progress=False, **options)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: simulated(mask=UPPER), "`mask` must be lower triangular, but entry (1, 2) is 0.125"),
        (lambda: simulated(mask=LIGHT), "`mask` must have rows that sum to 1, but row 2 sums to 0.3"),
        (lambda: simulated(beta=np.nan), "`beta` must be a finite number"),
        (lambda: simulated(mask=np.inf), "`slope` must be a finite number"),
        (lambda: simulated(mask=None), "`mask` must be a mask of positions"),
        (lambda: simulated(n=1), "`n` must be an integer ≥ 2"),
        (lambda: simulated(vocabulary=1), "`vocabulary` must be an integer ≥ 2"),
        (lambda: simulated(depth=0.0), "`depth` must be a finite number > 0"),
        (lambda: simulated(prompts=1), "`prompts` must be an integer ≥ 2"),
        (lambda: retrieval_profile(np.inf, 2.0, 8, 1.0), "`beta` must be a finite number"),
        (lambda: retrieval_profile(1.0, np.nan, 8, 1.0), "`slope` must be a finite number"),
        (lambda: retrieval_profile(1.0, 2.0, 1, 1.0), "`vocabulary` must be an integer ≥ 2"),
        (lambda: retrieval_profile(1.0, 2.0, 8, -1.0), "`t` must be a finite number > 0"),
        (lambda: retrieval_profile(1.0, 2.0, 8, 1.0)(0.0), "`source` must be > 0 and ≤ 1, but is 0.0"),
        (lambda: retrieval_profile(1.0, 2.0, 8, 1.0)([0.5, 1.1]), "`source` must be > 0 and ≤ 1, but is [0.5, 1.1]"),
    ],
)
def test_one_line(call, words):
    with pytest.raises(ArgumentError) as error:
        call()
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_depth_beyond_linear_theory_is_said_in_the_result():
    assert "e^(2x)/N = " in simulated(beta=2.0, depth=3.0, prompts=4).attrs["warning"]


def test_words_and_matrices_are_masks_too():
    rows = np.tril(np.ones((8, 8)), -1)
    rows[0, 0] = 1.0
    matrix = simulated(mask=rows / rows.sum(axis=1, keepdims=True), prompts=20)
    assert np.allclose(matrix["profile"], simulated(mask="causal", prompts=20)["profile"], rtol=1e-9)


def test_numbers_of_32_bits_are_refused():
    code = (
        "import jax, pathlines as pl; from pathlines.model.causal.decoder import CausalDecoder\n"
        "pl.retrieval(CausalDecoder(1.0, 2.0), 8, 1.0, key=jax.random.key(0))"
    )
    short = {**os.environ, "JAX_ENABLE_X64": "0"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=short)
    assert "Retrieval needs 64-bit numbers: call pathlines.enable_float64()" in done.stderr
