# Written by docs/stubs.py.
from pathlines.limit.transport import knots as knots
from pathlines.limit.transport import on_sphere as on_sphere
from pathlines.limit.transport import relu as relu
from pathlines.limit.transport.relu import HingeSlope as HingeSlope
from pathlines.limit.transport.knots import InterpolationLaw as InterpolationLaw
from pathlines.limit.transport.on_sphere import arc_edge as arc_edge
from pathlines.limit.transport.on_sphere import arc_mean as arc_mean
from pathlines.limit.transport.on_sphere import arc_rapidity as arc_rapidity
from pathlines.limit.transport.on_sphere import cap_clustering as cap_clustering
from pathlines.limit.transport.on_sphere import cap_deficit as cap_deficit
from pathlines.limit.transport.on_sphere import cap_distance as cap_distance
from pathlines.limit.transport.relu import hinge_slope as hinge_slope
from pathlines.limit.transport.knots import interpolation_law as interpolation_law
from pathlines.limit.transport.on_sphere import least_without_attention as least_without_attention
from pathlines.limit.transport.relu import relu_flow as relu_flow
