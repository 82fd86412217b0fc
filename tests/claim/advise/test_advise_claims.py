"""Every claim of the family `advise`, at quick size, has the verdict we stand behind."""

FAMILY = "advise"


def test_quick_verdict(quick_outcome, expected_verdict):
    expected_verdict(quick_outcome)
