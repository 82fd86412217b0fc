"""Systems of the papers that follow the unified perspective, one file each."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
