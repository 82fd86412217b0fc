# Written by docs/stubs.py.
from pathlines.draw.figures.clustering import attention_matrix as attention_matrix
from pathlines.draw.figures.clustering import bipolar_stability as bipolar_stability
from pathlines.draw.figures.clustering import columns as columns
from pathlines.draw.figures.clustering import coordinates as coordinates
from pathlines.draw.figures.clustering import general_weights as general_weights
from pathlines.draw.figures.clustering import histograms as histograms
from pathlines.draw.figures.clustering import hyperplanes as hyperplanes
from pathlines.draw.figures.clustering import layer_vs_flow as layer_vs_flow
from pathlines.draw.figures.clustering import leaders as leaders
from pathlines.draw.figures.clustering import long_context as long_context
from pathlines.draw.figures.clustering import phase_diagram as phase_diagram
from pathlines.draw.figures.clustering import polytopes as polytopes
from pathlines.draw.figures.clustering import precision as precision
from pathlines.draw.figures.clustering import readme as readme
from pathlines.draw.figures.clustering import schemes as schemes
from pathlines.draw.figures.clustering import spectra as spectra
from pathlines.draw.figures.clustering import sphere_snapshots as sphere_snapshots
