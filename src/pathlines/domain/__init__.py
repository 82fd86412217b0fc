"""Where tokens live, and the laws they start from."""

from pathlines.domain.euclidean import Euclidean as Euclidean
from pathlines.domain.space import Domain as Domain
from pathlines.domain.sphere import Sphere as Sphere
