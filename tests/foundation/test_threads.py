"""One thread inside, as many as before outside, whatever happens inside."""

from contextlib import suppress

import pytest

from pathlines.foundation.threads import _switches, one_thread


def test_one_thread_and_back():
    switches = _switches()
    if switches is None:
        pytest.skip("NumPy came with another library of linear algebra")
    read, put = switches
    before = read()
    put(2)
    with suppress(ValueError), one_thread():
        assert read() == 1
        raise ValueError
    assert read() == 2
    put(before)
