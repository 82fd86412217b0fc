"""Results on disk: labelled, addressed by their setting, resumable."""

from pathlines.store.address import address as address
from pathlines.store.results import Store as Store
from pathlines.store.runs import open_run as open_run
from pathlines.store.runs import save_run as save_run
