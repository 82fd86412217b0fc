# Written by docs/stubs.py.
from pathlines.claim.followups import adamw as adamw
from pathlines.claim.followups import common_noise as common_noise
from pathlines.claim.followups import context_flow as context_flow
from pathlines.claim.followups import dual_filter as dual_filter
from pathlines.claim.followups import low_temperature as low_temperature
from pathlines.claim.followups import multi_head as multi_head
from pathlines.claim.followups import proximal as proximal
from pathlines.claim.followups import quantitative as quantitative
from pathlines.claim.followups import spectral as spectral
from pathlines.claim.followups import wide_shallow as wide_shallow
