"""What we look at."""

from pathlines.integrate.observe import OBSERVABLES as OBSERVABLES
from pathlines.integrate.observe import Observable as Observable
from pathlines.integrate.observe import observable as observable
