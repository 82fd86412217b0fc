# Written by docs/stubs.py.
from pathlines.architecture import config as config
from pathlines.architecture import families as families
from pathlines.architecture import read as read
from pathlines.architecture import record as record
from pathlines.architecture import rope as rope
from pathlines.architecture.record import Architecture as Architecture
from pathlines.architecture.config import Config as Config
from pathlines.architecture.record import Deviations as Deviations
from pathlines.architecture.family import FAMILIES as FAMILIES
from pathlines.architecture.family import Family as Family
from pathlines.architecture.read import Reading as Reading
from pathlines.architecture.record import divisors_near as divisors_near
from pathlines.architecture.family import family as family
from pathlines.architecture.read import from_config as from_config
from pathlines.architecture.read import from_numbers as from_numbers
from pathlines.architecture.read import read_architecture as read_architecture
from pathlines.architecture.rope import rope_of as rope_of
