"""What the layers hold: queries, keys, values, and how they vary with depth."""

from pathlines.weights.fixed import FixedWeights as FixedWeights
from pathlines.weights.gaussian import GaussianHeads as GaussianHeads
from pathlines.weights.gaussian import random_values as random_values
from pathlines.weights.heads import Heads as Heads
from pathlines.weights.heads import Weights as Weights
from pathlines.weights.identity import IdentityWeights as IdentityWeights
from pathlines.weights.law import LAWS as LAWS
from pathlines.weights.law import HeadLaw as HeadLaw
from pathlines.weights.mixture import MixtureHeads as MixtureHeads
from pathlines.weights.mixture import fixed_heads as fixed_heads
from pathlines.weights.piecewise import PiecewiseWeights as PiecewiseWeights
from pathlines.weights.random import gaussian_product as gaussian_product
from pathlines.weights.random import goe as goe
from pathlines.weights.random import wishart as wishart
from pathlines.weights.varying import VaryingWeights as VaryingWeights
