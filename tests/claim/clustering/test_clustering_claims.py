"""Every claim of the family `clustering`, at quick size, has the verdict we stand behind."""

FAMILY = "clustering"


def test_quick_verdict(quick_outcome, expected_verdict):
    expected_verdict(quick_outcome)
