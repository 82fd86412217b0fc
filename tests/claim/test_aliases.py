"""A claim under a second id: verified, shown and cited by either, simulated once, both ids in JSON."""

import json

from typer.testing import CliRunner

from pathlines.claim import CLAIMS, evaluate
from pathlines.claim.evaluate import LastSimulation
from pathlines.cli.program import app
from pathlines.cli.show import _claim

ALIAS, OWN = "followups/S3", "clustering/CL-38"


def test_an_alias_is_the_claim_under_the_id_that_was_asked_for():
    alias, own = CLAIMS[ALIAS], CLAIMS[OWN]
    assert (alias.id, alias.alias_of, own.alias_of) == (ALIAS, OWN, "")
    assert (alias.simulate, alias.quick, alias.within) == (own.simulate, own.quick, own.within)
    assert alias.cost() == own.cost()
    assert ALIAS in CLAIMS.match("followups")


def test_both_ids_are_judged_by_one_simulation():
    calls, last = [], LastSimulation()
    own = CLAIMS[OWN]
    for claim in (own, CLAIMS[ALIAS]):
        measured, _ = last.of(claim, own.setting("quick", {"runs": 2}))
        calls.append(measured)
    assert calls[0] is calls[1]


def test_outcome_and_page_name_both():
    outcome = evaluate(CLAIMS[ALIAS], changes={"runs": 2})
    assert (outcome.id, outcome.alias_of) == (ALIAS, OWN)
    assert ("claim", f"{ALIAS} (an alias of {OWN})") in _claim(CLAIMS[ALIAS])


def test_verbs_take_the_alias():
    runner = CliRunner()
    (said,) = json.loads(runner.invoke(app, ["verify", ALIAS, "--set", "runs=2", "--json"]).stdout)
    assert (said["id"], said["alias_of"]) == (ALIAS, OWN)
    assert "kuehn2026spectral" in runner.invoke(app, ["cite", ALIAS]).stdout


def test_an_erratum_of_an_alias_is_no_alias():
    """Fields of a variant are its own."""
    alias = CLAIMS[ALIAS]
    try:
        printed = alias.printed_as("test/printed", "", "", where="nowhere", predict=alias.predict)
        assert (printed.alias_of, printed.corrected_by) == ("", ALIAS)
    finally:
        CLAIMS._entries.pop("test/printed", None)
