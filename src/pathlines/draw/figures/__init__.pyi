# Written by docs/stubs.py.
from pathlines.draw.figures import causal as causal
from pathlines.draw.figures import clustering as clustering
from pathlines.draw.figures import followups as followups
from pathlines.draw.figures import gaussian as gaussian
from pathlines.draw.figures import homogenized as homogenized
from pathlines.draw.figures import metastability as metastability
from pathlines.draw.figures import transport as transport
