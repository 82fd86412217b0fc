# Written by docs/stubs.py.
from pathlines.claim.advise import what_if as what_if
