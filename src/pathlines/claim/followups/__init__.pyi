# Written by docs/stubs.py.
from pathlines.claim.followups import dual_filter as dual_filter
from pathlines.claim.followups import low_temperature as low_temperature
from pathlines.claim.followups import proximal as proximal
