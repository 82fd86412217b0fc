# Written by docs/stubs.py.
from pathlines.draw.figures.transport import clouds_to_diracs as clouds_to_diracs
from pathlines.draw.figures.transport import corridor as corridor
from pathlines.draw.figures.transport import errors_of_pieces as errors_of_pieces
from pathlines.draw.figures.transport import three_prompts as three_prompts
