"""What a claim costs is measured by the program and kept beside the claim."""

import json

from pathlines.claim import CLAIMS
from pathlines.claim.cost import Cost

OWN = """
import numpy as np
from pathlines.claim import Evidence, absolute, claim
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting

def simulate(s):
    held = np.ones(int(2e8) // 8)
    return Evidence({"sum": float(sum(range(2 * 10**7)) + 0 * held[0])})

def predict(s):
    return Evidence({"sum": (2 * 10**7 - 1) * 10.0**7})

claim("costly/sum", PERSPECTIVE, "l", "s", models=(), quick=Setting(), within={"sum": absolute(0.0, "r")},
      simulate=simulate, predict=predict)
"""


def test_the_program_measures_and_keeps_what_a_claim_costs(tmp_path, pathlines):
    file = tmp_path / "own.py"
    file.write_text(OWN)
    code, _, said = pathlines("--load", file, "verify", "costly/sum", "--costs")
    assert code == 0, said
    kept = json.loads((tmp_path / "costs.json").read_text())
    assert list(kept) == ["costly/sum"]
    assert 0.1 < kept["costly/sum"]["quick"]["seconds"] < 20
    assert 300 < kept["costly/sum"]["quick"]["megabytes"] < 3000
    claim = CLAIMS["costly/sum"]
    try:
        assert claim.cost() == Cost(**kept["costly/sum"]["quick"])
        assert claim.cost("full") is None
        assert "at quick size" in pathlines("--load", file, "show", "costly/sum")[1]
    finally:
        del CLAIMS._entries["costly/sum"]


def test_costs_are_those_of_claims_as_they_are(pathlines):
    code, _, shown = pathlines("verify", "clustering/CL-43", "--costs", "--set", "n1=4")
    assert code == 2
    assert "without --power" in shown
