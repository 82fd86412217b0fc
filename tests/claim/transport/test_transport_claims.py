"""Every claim of the family `transport`, at quick size, has the verdict we stand behind."""

FAMILY = "transport"


def test_quick_verdict(quick_outcome, expected_verdict):
    expected_verdict(quick_outcome)
