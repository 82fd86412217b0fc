"""Who listens to whom: from scores to attention weights."""

from pathlines.attention.affine import AffineAttention as AffineAttention
from pathlines.attention.hardmax import HardmaxAttention as HardmaxAttention
from pathlines.attention.kind import ATTENTIONS as ATTENTIONS
from pathlines.attention.kind import Attention as Attention
from pathlines.attention.l2 import L2Attention as L2Attention
from pathlines.attention.linear import LinearAttention as LinearAttention
from pathlines.attention.sigmoid import SigmoidAttention as SigmoidAttention
from pathlines.attention.sinkhorn import SinkhornAttention as SinkhornAttention
from pathlines.attention.softmax import SoftmaxAttention as SoftmaxAttention
from pathlines.attention.unnormalised import UnnormalisedAttention as UnnormalisedAttention
