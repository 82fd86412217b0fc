# Written by docs/stubs.py.
from pathlines.draw.figures.followups import dual_filter as dual_filter
