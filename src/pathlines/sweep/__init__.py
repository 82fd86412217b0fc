"""Many settings: claims, phase diagrams; what the store has is skipped."""

from pathlines.sweep.phase import phase_diagram as phase_diagram
from pathlines.sweep.planner import Architecture as Architecture
from pathlines.sweep.planner import plan_collapse as plan_collapse
from pathlines.sweep.verify import Job as Job
from pathlines.sweep.verify import verify as verify
