# Written by docs/stubs.py.
from pathlines.limit import architecture as architecture
from pathlines.limit import causal as causal
from pathlines.limit import clustering as clustering
from pathlines.limit import followups as followups
from pathlines.limit import gaussian as gaussian
from pathlines.limit import homogenized as homogenized
from pathlines.limit import metastability as metastability
from pathlines.limit import reductions as reductions
from pathlines.limit import transport as transport
from pathlines.limit.reductions import GramReduction as GramReduction
from pathlines.limit.reductions import Simplex as Simplex
from pathlines.limit.reductions import gram as gram
from pathlines.limit.reductions import simplex as simplex
