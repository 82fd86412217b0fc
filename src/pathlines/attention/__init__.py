"""Who listens to whom: from scores to attention weights."""

from pathlines.attention.affine import Affine as Affine
from pathlines.attention.hardmax import Hardmax as Hardmax
from pathlines.attention.kind import ATTENTIONS as ATTENTIONS
from pathlines.attention.kind import Attention as Attention
from pathlines.attention.l2 import L2 as L2
from pathlines.attention.linear import Linear as Linear
from pathlines.attention.sigmoid import Sigmoid as Sigmoid
from pathlines.attention.sinkhorn import Sinkhorn as Sinkhorn
from pathlines.attention.softmax import Softmax as Softmax
from pathlines.attention.unnormalised import Unnormalised as Unnormalised
