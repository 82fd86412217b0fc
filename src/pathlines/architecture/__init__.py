"""Transformers as data: one frozen record, and readers of configuration files."""

from pathlines.architecture.read import Reading as Reading
from pathlines.architecture.read import from_numbers as from_numbers
from pathlines.architecture.read import read_architecture as read_architecture
from pathlines.architecture.record import Architecture as Architecture
from pathlines.architecture.record import Deviations as Deviations
