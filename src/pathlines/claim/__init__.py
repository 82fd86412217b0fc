"""Theorems and figures as executable claims: setting, simulate, predict, compare -> verdict."""

from pathlines.claim.base import CLAIMS as CLAIMS
from pathlines.claim.base import Claim as Claim
from pathlines.claim.base import Curve as Curve
from pathlines.claim.base import Evidence as Evidence
from pathlines.claim.base import claim as claim
from pathlines.claim.evaluate import Check as Check
from pathlines.claim.evaluate import Outcome as Outcome
from pathlines.claim.evaluate import evaluate as evaluate
from pathlines.claim.tolerance import Tolerance as Tolerance
from pathlines.claim.tolerance import absolute as absolute
from pathlines.claim.tolerance import at_least as at_least
from pathlines.claim.tolerance import at_most as at_most
from pathlines.claim.tolerance import exactly as exactly
from pathlines.claim.tolerance import relative as relative
from pathlines.claim.tolerance import standard_errors as standard_errors
