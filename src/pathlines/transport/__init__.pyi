# Written by docs/stubs.py.
from pathlines.transport import estimator as estimator
from pathlines.transport import euclid as euclid
from pathlines.transport import schedule as schedule
from pathlines.transport import sphere as sphere
from pathlines.transport import targets as targets
from pathlines.transport.estimator import FlowEstimator as FlowEstimator
from pathlines.transport.estimator import FlowReport as FlowReport
from pathlines.transport.targets import GaussianMixture as GaussianMixture
from pathlines.transport.schedule import PieceSchedule as PieceSchedule
from pathlines.transport.schedule import check_count as check_count
from pathlines.transport.estimator import checked_goal as checked_goal
from pathlines.transport.estimator import checked_samples as checked_samples
from pathlines.transport.schedule import piece_field as piece_field
from pathlines.transport.schedule import read_schedule as read_schedule
from pathlines.transport.estimator import reported as reported
from pathlines.transport.schedule import schedule_from_json as schedule_from_json
