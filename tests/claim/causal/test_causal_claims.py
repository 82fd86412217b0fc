"""Every claim of the family `causal`, at quick size, has the verdict we stand behind."""

FAMILY = "causal"


def test_quick_verdict(quick_outcome, expected_verdict):
    expected_verdict(quick_outcome)
