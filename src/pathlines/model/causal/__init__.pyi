# Written by docs/stubs.py.
from pathlines.model.causal import decoder as decoder
from pathlines.model.causal.decoder import CausalDecoder as CausalDecoder
from pathlines.model.causal.decoder import named_decoder as named_decoder
