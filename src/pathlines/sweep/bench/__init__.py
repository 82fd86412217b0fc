"""How fast: our methods and their peers, interleaved in one process."""

from pathlines.sweep.bench.case import CASES as CASES
from pathlines.sweep.bench.case import EXTRA as EXTRA
from pathlines.sweep.bench.case import missing_peers as missing_peers
from pathlines.sweep.bench.page import page as page
from pathlines.sweep.bench.report import Report as Report
from pathlines.sweep.bench.report import bench as bench
from pathlines.sweep.bench.report import chosen_cases as chosen_cases
