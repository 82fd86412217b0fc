# Written by docs/stubs.py.
from pathlines.draw.figures.transport import clouds_to_diracs as clouds_to_diracs
from pathlines.draw.figures.transport import corridor as corridor
from pathlines.draw.figures.transport import errors_of_pieces as errors_of_pieces
from pathlines.draw.figures.transport import likelihood_gradients as likelihood_gradients
from pathlines.draw.figures.transport import one_piece as one_piece
from pathlines.draw.figures.transport import orders_of_neurons as orders_of_neurons
from pathlines.draw.figures.transport import permuted_cells as permuted_cells
from pathlines.draw.figures.transport import polar_factors as polar_factors
from pathlines.draw.figures.transport import square as square
from pathlines.draw.figures.transport import stacked_bins as stacked_bins
from pathlines.draw.figures.transport import three_prompts as three_prompts
