# Written by docs/stubs.py.
from pathlines.draw.figures.transport import errors_of_pieces as errors_of_pieces
