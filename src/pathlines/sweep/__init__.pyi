# Written by docs/stubs.py.
from pathlines.sweep import bench as bench
from pathlines.sweep import general_weights as general_weights
from pathlines.sweep import phase as phase
from pathlines.sweep import planner as planner
from pathlines.sweep import workers as workers
from pathlines.sweep.verify import Finished as Finished
from pathlines.sweep.verify import Job as Job
from pathlines.sweep.workers import Lost as Lost
from pathlines.sweep.planner import Plan as Plan
from pathlines.sweep.planner import PlannedArchitecture as PlannedArchitecture
from pathlines.sweep.general_weights import draw_weights as draw_weights
from pathlines.sweep.general_weights import general_weights_diagram as general_weights_diagram
from pathlines.sweep.phase import phase_diagram as phase_diagram
from pathlines.sweep.planner import plan_collapse as plan_collapse
from pathlines.sweep.verify import recalled as recalled
from pathlines.sweep.workers import spread as spread
from pathlines.sweep.verify import verify as verify
