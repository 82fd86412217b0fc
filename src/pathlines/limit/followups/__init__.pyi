# Written by docs/stubs.py.
from pathlines.limit.followups import filtering as filtering
from pathlines.limit.followups.filtering import DualControl as DualControl
from pathlines.limit.followups.filtering import Kalman as Kalman
from pathlines.limit.followups.filtering import bayes as bayes
from pathlines.limit.followups.filtering import dual_control as dual_control
from pathlines.limit.followups.filtering import error_covariances as error_covariances
from pathlines.limit.followups.filtering import kalman as kalman
