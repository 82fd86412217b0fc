# Written by docs/stubs.py.
from pathlines.draw.figures.metastability import circle_patterns as circle_patterns
from pathlines.draw.figures.metastability import growth_rates as growth_rates
from pathlines.draw.figures.metastability import kde_modes as kde_modes
from pathlines.draw.figures.metastability import mode_selection as mode_selection
from pathlines.draw.figures.metastability import perceptron_cases as perceptron_cases
from pathlines.draw.figures.metastability import perceptron_clusters as perceptron_clusters
from pathlines.draw.figures.metastability import perceptron_minimiser as perceptron_minimiser
from pathlines.draw.figures.metastability import staircase as staircase
