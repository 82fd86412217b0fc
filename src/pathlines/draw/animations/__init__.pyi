# Written by docs/stubs.py.
from pathlines.draw.animations import causal_parking as causal_parking
from pathlines.draw.animations import gaussian_ellipses as gaussian_ellipses
from pathlines.draw.animations import life_of_clusters as life_of_clusters
from pathlines.draw.animations import shared_tokens as shared_tokens
