"""A test with the fixture ``quick_outcome`` runs once for every claim of the module's FAMILY, at quick size.

Claims at other settings than their own (files ``*_settings.py``) take four minutes of a processor: they run on demand.
"""

from pathlib import Path

import pytest

from pathlines.claim import CLAIMS, evaluate
from pathlines.claim.evaluate import LastSimulation

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(FOLDER) and item.path.stem.endswith("_settings"):
            item.add_marker(pytest.mark.slow)


def pytest_generate_tests(metafunc):
    if "quick_outcome" in metafunc.fixturenames:
        family = metafunc.module.FAMILY
        names = [n for n in CLAIMS if n.split("/")[0] == family]
        names.sort(key=lambda n: CLAIMS[n].corrected_by or n)
        assert names, f"there are no claims of the family {family}"
        metafunc.parametrize("quick_outcome", names, indirect=True)


@pytest.fixture(scope="session")
def last():
    """A claim and its erratum, which follow one another, are compared with one simulation."""
    return LastSimulation()


@pytest.fixture
def quick_outcome(request, last):
    return evaluate(CLAIMS[request.param], last=last)


@pytest.fixture
def expected_verdict():
    """Compare a verdict with the one we stand behind, and say by which numbers it differs."""

    def check(outcome):
        odd = [(c.quantity, c.verdict, c.error, c.tolerance, c.reason) for c in outcome.checks]
        assert outcome.verdict == outcome.expected_verdict, odd

    return check
