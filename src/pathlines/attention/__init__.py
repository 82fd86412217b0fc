"""Who listens to whom: from scores to attention weights."""

from pathlines.attention.hardmax import Hardmax as Hardmax
from pathlines.attention.kind import ATTENTIONS as ATTENTIONS
from pathlines.attention.kind import Attention as Attention
from pathlines.attention.softmax import Softmax as Softmax
from pathlines.attention.unnormalised import Unnormalised as Unnormalised
