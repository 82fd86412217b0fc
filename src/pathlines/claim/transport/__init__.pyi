# Written by docs/stubs.py.
from pathlines.claim.transport import likelihood_gradients as likelihood_gradients
from pathlines.claim.transport import line_laws as line_laws
from pathlines.claim.transport import maps as maps
from pathlines.claim.transport import on_sphere as on_sphere
from pathlines.claim.transport import relu_pieces as relu_pieces
from pathlines.claim.transport import triangular_flows as triangular_flows
from pathlines.claim.transport import vocabulary as vocabulary
