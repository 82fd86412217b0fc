# Written by docs/stubs.py.
from pathlines.claim.causal import closed_form as closed_form
from pathlines.claim.causal import conditions as conditions
from pathlines.claim.causal import decoding as decoding
from pathlines.claim.causal import estimators as estimators
from pathlines.claim.causal import frozen as frozen
from pathlines.claim.causal import gathering as gathering
from pathlines.claim.causal import mean_field as mean_field
from pathlines.claim.causal import other_decoders as other_decoders
from pathlines.claim.causal import parking as parking
from pathlines.claim.causal import rivals as rivals
from pathlines.claim.causal import saturation as saturation
from pathlines.claim.causal import sequential as sequential
from pathlines.claim.causal import simulated_profile as simulated_profile
from pathlines.claim.causal import vocabulary as vocabulary
