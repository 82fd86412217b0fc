"""Transport and control in closed form."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
