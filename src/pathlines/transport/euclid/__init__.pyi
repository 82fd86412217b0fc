# Written by docs/stubs.py.
from pathlines.transport.euclid import fuse as fuse
from pathlines.transport.euclid import piece as piece
from pathlines.transport.euclid import schedule as schedule
from pathlines.transport.euclid.schedule import EuclideanSchedule as EuclideanSchedule
from pathlines.transport.euclid.fuse import RidgeMap as RidgeMap
from pathlines.transport.euclid.fuse import evaluate as evaluate
from pathlines.transport.euclid.fuse import fused_runs as fused_runs
from pathlines.transport.euclid.piece import phi1 as phi1
from pathlines.transport.euclid.piece import relu_piece as relu_piece
