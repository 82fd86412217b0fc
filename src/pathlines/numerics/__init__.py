"""General numerics: quadrature, factorisations, special functions, draws."""
