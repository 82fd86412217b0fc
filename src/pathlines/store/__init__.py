"""Results on disk: labelled, addressed by their setting, resumable."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
