# Written by docs/stubs.py.
from pathlines.store import code as code
from pathlines.store import results as results
from pathlines.store import runs as runs
from pathlines.store.results import Store as Store
from pathlines.store.address import address as address
from pathlines.store.results import altered as altered
from pathlines.store.results import bytes_dataset as bytes_dataset
from pathlines.store.results import content_digest as content_digest
from pathlines.store.results import dataset_bytes as dataset_bytes
from pathlines.store.runs import dataset_to_run as dataset_to_run
from pathlines.store.results import file_bytes as file_bytes
from pathlines.store.code import fingerprint as fingerprint
from pathlines.store.runs import open_run as open_run
from pathlines.store.results import read_dataset as read_dataset
from pathlines.store.runs import run_to_dataset as run_to_dataset
from pathlines.store.runs import save_run as save_run
from pathlines.store.code import versions as versions
