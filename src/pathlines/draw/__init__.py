"""Figures, the report, one style."""

from pathlines.draw.animation import ANIMATIONS as ANIMATIONS
from pathlines.draw.gallery import FIGURES as FIGURES
from pathlines.draw.gallery import Picture as Picture
from pathlines.draw.gallery import picture as picture
from pathlines.draw.plot import plot as plot
from pathlines.draw.style import save_figure as save_figure
