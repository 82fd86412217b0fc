"""Every claim of the family `followups`, at quick size, has the verdict we stand behind."""

FAMILY = "followups"


def test_quick_verdict(quick_outcome, expected_verdict):
    expected_verdict(quick_outcome)
