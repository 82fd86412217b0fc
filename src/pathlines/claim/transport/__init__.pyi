# Written by docs/stubs.py.
from pathlines.claim.transport import caps as caps
from pathlines.claim.transport import clustering_prompts as clustering_prompts
from pathlines.claim.transport import integrated as integrated
from pathlines.claim.transport import isolation as isolation
from pathlines.claim.transport import likelihood_gradients as likelihood_gradients
from pathlines.claim.transport import line_laws as line_laws
from pathlines.claim.transport import maps as maps
from pathlines.claim.transport import prompts_to_targets as prompts_to_targets
from pathlines.claim.transport import relu_pieces as relu_pieces
from pathlines.claim.transport import sphere_pieces as sphere_pieces
from pathlines.claim.transport import steering as steering
from pathlines.claim.transport import triangular_flows as triangular_flows
from pathlines.claim.transport import vocabulary as vocabulary
from pathlines.claim.transport import wrong_pieces as wrong_pieces
