# Written by docs/stubs.py.
from pathlines.draw.figures.gaussian import anisotropy as anisotropy
from pathlines.draw.figures.gaussian import class_map as class_map
from pathlines.draw.figures.gaussian import cloud_drawing as cloud_drawing
from pathlines.draw.figures.gaussian import disc_of_starts as disc_of_starts
from pathlines.draw.figures.gaussian import fate_over_depth as fate_over_depth
from pathlines.draw.figures.gaussian import rank_histograms as rank_histograms
