# Written by docs/stubs.py.
from pathlines.draw.figures.causal import attention_paths as attention_paths
from pathlines.draw.figures.causal import causal_parking as causal_parking
from pathlines.draw.figures.causal import retrieval_profiles as retrieval_profiles
from pathlines.draw.figures.causal import rival_theories as rival_theories
from pathlines.draw.figures.causal import shape_diagram as shape_diagram
from pathlines.draw.figures.causal import value_atlas as value_atlas
