"""General numerics: quadrature, factorisations, special functions, draws."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
