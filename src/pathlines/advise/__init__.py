"""What an architecture will do to its tokens, what moves that, and the smallest change that meets a target."""

from pathlines.advise.advice import Advice as Advice
from pathlines.advise.advice import Target as Target
from pathlines.advise.advice import advise as advise
from pathlines.advise.simulate import Simulated as Simulated
from pathlines.advise.simulate import simulate as simulate
