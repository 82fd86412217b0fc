# Written by docs/stubs.py.
from pathlines.draw.figures.followups import adamw as adamw
from pathlines.draw.figures.followups import context as context
from pathlines.draw.figures.followups import dual_filter as dual_filter
from pathlines.draw.figures.followups import low_temperature as low_temperature
from pathlines.draw.figures.followups import mode_atlas as mode_atlas
from pathlines.draw.figures.followups import multi_head as multi_head
from pathlines.draw.figures.followups import proximal as proximal
from pathlines.draw.figures.followups import sharp_rates as sharp_rates
from pathlines.draw.figures.followups import synchronisation as synchronisation
from pathlines.draw.figures.followups import wide_shallow as wide_shallow
