"""What the layers hold: queries, keys, values, and how they vary with depth."""

from pathlines.weights.fixed import Fixed as Fixed
from pathlines.weights.heads import Heads as Heads
from pathlines.weights.heads import Weights as Weights
from pathlines.weights.identity import Identity as Identity
from pathlines.weights.piecewise import Piecewise as Piecewise
from pathlines.weights.random import gaussian_product as gaussian_product
from pathlines.weights.random import goe as goe
from pathlines.weights.random import wishart as wishart
