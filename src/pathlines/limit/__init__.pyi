# Written by docs/stubs.py.
from pathlines.limit import architecture as architecture
from pathlines.limit import causal as causal
from pathlines.limit import clustering as clustering
from pathlines.limit import gaussian as gaussian
from pathlines.limit import homogenized as homogenized
from pathlines.limit import metastability as metastability
