"""Ways to draw one random layer that have the same law and different costs."""

from pathlines.model.homogenized.samplers.choice import SAMPLERS as SAMPLERS
from pathlines.model.homogenized.samplers.choice import choose_sampler as choose_sampler
