"""Real models need the probe extra; without it these tests are skipped, which `make test` never does."""

import importlib.util

import pytest

MISSING = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]


def pytest_collection_modifyitems(items):
    for item in items:
        if MISSING and "probing" in item.path.parts:
            item.add_marker(pytest.mark.skip(reason=f"needs {' and '.join(MISSING)}: pip install 'pathlines[probe]'"))


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Tests run side by side; threads of one would only wait for those of the other."""
    if not MISSING:
        import torch

        torch.set_num_threads(1)
