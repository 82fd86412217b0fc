# Written by docs/stubs.py.
from pathlines.draw.figures.followups import dual_filter as dual_filter
from pathlines.draw.figures.followups import low_temperature as low_temperature
from pathlines.draw.figures.followups import proximal as proximal
