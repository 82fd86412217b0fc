# Written by docs/stubs.py.
from pathlines.claim.advise import gradient_identities as gradient_identities
from pathlines.claim.advise import gradient_laws as gradient_laws
from pathlines.claim.advise import gradient_placements as gradient_placements
from pathlines.claim.advise import gradient_shapes as gradient_shapes
from pathlines.claim.advise import gradient_shared as gradient_shared
from pathlines.claim.advise import gradient_stack as gradient_stack
from pathlines.claim.advise import what_if as what_if
