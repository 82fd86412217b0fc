"""How attention is summed, fast."""

from pathlines.kernels.choice import Choice as Choice
from pathlines.kernels.dense import attend as attend
from pathlines.kernels.dense import attention_weights as attention_weights
from pathlines.kernels.heads import attend_heads as attend_heads
from pathlines.kernels.spectral import circle_modes as circle_modes
from pathlines.kernels.spectral import circle_potential as circle_potential
