"""Every claim of the family `homogenized`, at quick size, has the verdict we stand behind."""

FAMILY = "homogenized"


def test_quick_verdict(quick_outcome, expected_verdict):
    expected_verdict(quick_outcome)
