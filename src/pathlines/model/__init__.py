"""How a layer moves tokens: one small file for each named system of a paper."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
