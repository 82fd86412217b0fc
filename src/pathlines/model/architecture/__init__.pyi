# Written by docs/stubs.py.
from pathlines.model.architecture import random_architecture as random_architecture
from pathlines.model.architecture import random_encoder as random_encoder
from pathlines.model.architecture import residual_stream as residual_stream
from pathlines.model.architecture import rotary as rotary
from pathlines.model.architecture import token_embedding as token_embedding
from pathlines.model.architecture.random_architecture import RandomArchitecture as RandomArchitecture
from pathlines.model.architecture.random_encoder import RandomEncoder as RandomEncoder
from pathlines.model.architecture.residual_stream import ResidualStream as ResidualStream
from pathlines.model.architecture.random_architecture import Stream as Stream
from pathlines.model.architecture.token_embedding import TokenEmbedding as TokenEmbedding
from pathlines.model.architecture.residual_stream import attention_weights as attention_weights
from pathlines.model.architecture.rotary import distance_bias as distance_bias
from pathlines.model.architecture.residual_stream import rms_normalised as rms_normalised
from pathlines.model.architecture.rotary import rotated as rotated
