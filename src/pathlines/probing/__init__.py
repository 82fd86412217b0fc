"""Real transformers: the same observables on torch modules. Torch is imported in this room only."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
