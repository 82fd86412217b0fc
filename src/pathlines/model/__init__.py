"""How a layer moves tokens: one small file for each named system of a paper."""

from pathlines.model.base import MODELS as MODELS
from pathlines.model.base import Description as Description
from pathlines.model.base import Model as Model
from pathlines.model.base import PathModel as PathModel
from pathlines.model.base import Snapshot as Snapshot
from pathlines.model.circle import CircleAttention as CircleAttention
from pathlines.model.frozen_exponent import FrozenExponentAttention as FrozenExponentAttention
from pathlines.model.gram import GramAttention as GramAttention
from pathlines.model.hardmax_phase import HardmaxPhase as HardmaxPhase
from pathlines.model.normalised import NormalisedAttention as NormalisedAttention
from pathlines.model.perceptron import Perceptron as Perceptron
from pathlines.model.random_transformer import RandomTransformer as RandomTransformer
from pathlines.model.rescaled import RescaledAttention as RescaledAttention
from pathlines.model.schemes import SCHEMES as SCHEMES
from pathlines.model.schemes import Scheme as Scheme
from pathlines.model.self_attention import SelfAttention as SelfAttention
