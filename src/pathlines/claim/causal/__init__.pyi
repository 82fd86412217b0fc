# Written by docs/stubs.py.
from pathlines.claim.causal import closed_form as closed_form
from pathlines.claim.causal import mean_field as mean_field
from pathlines.claim.causal import parking as parking
from pathlines.claim.causal import prompts as prompts
from pathlines.claim.causal import vocabulary as vocabulary
