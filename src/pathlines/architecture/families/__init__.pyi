# Written by docs/stubs.py.
from pathlines.architecture.families import decoders as decoders
from pathlines.architecture.families import encoders as encoders
