# Written by docs/stubs.py.
from pathlines.limit.transport import knots as knots
from pathlines.limit.transport import relu as relu
from pathlines.limit.transport.knots import InterpolationLaw as InterpolationLaw
from pathlines.limit.transport.knots import interpolation_law as interpolation_law
from pathlines.limit.transport.relu import relu_flow as relu_flow
