"""Every claim of the family `metastability`, at quick size, has the verdict we stand behind."""

FAMILY = "metastability"


def test_quick_verdict(quick_outcome, expected_verdict):
    expected_verdict(quick_outcome)
