# Written by docs/stubs.py.
from pathlines.model.homogenized.samplers import choice as choice
from pathlines.model.homogenized.samplers import gram as gram
from pathlines.model.homogenized.samplers import layer as layer
from pathlines.model.homogenized.samplers import linear as linear
from pathlines.model.homogenized.samplers import low_rank as low_rank
from pathlines.model.homogenized.samplers import naive as naive
from pathlines.model.homogenized.samplers import uniform as uniform
from pathlines.model.homogenized.samplers.layer import GaussianLayer as GaussianLayer
from pathlines.model.homogenized.samplers.gram import GramSampler as GramSampler
from pathlines.model.homogenized.samplers.linear import LinearSampler as LinearSampler
from pathlines.model.homogenized.samplers.low_rank import LowRankSampler as LowRankSampler
from pathlines.model.homogenized.samplers.choice import SAMPLERS as SAMPLERS
from pathlines.model.homogenized.samplers.choice import Sampler as Sampler
from pathlines.model.homogenized.samplers.uniform import UniformSampler as UniformSampler
from pathlines.model.homogenized.samplers.choice import choose_sampler as choose_sampler
from pathlines.model.homogenized.samplers.layer import not_gaussian as not_gaussian
