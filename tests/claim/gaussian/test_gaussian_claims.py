"""Every claim of the family `gaussian`, at quick size, has the verdict we stand behind."""

FAMILY = "gaussian"


def test_quick_verdict(quick_outcome, expected_verdict):
    expected_verdict(quick_outcome)
