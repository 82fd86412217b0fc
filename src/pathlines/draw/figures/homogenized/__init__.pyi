# Written by docs/stubs.py.
from pathlines.draw.figures.homogenized import architecture_curves as architecture_curves
from pathlines.draw.figures.homogenized import collapse_map as collapse_map
from pathlines.draw.figures.homogenized import corrected_drift as corrected_drift
from pathlines.draw.figures.homogenized import layer_map as layer_map
from pathlines.draw.figures.homogenized import logistic as logistic
from pathlines.draw.figures.homogenized import logistic_sde as logistic_sde
from pathlines.draw.figures.homogenized import overlap_curves as overlap_curves
from pathlines.draw.figures.homogenized import participation as participation
from pathlines.draw.figures.homogenized import regimes as regimes
from pathlines.draw.figures.homogenized import theorem_1 as theorem_1
