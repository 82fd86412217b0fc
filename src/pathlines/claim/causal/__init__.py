"""Claims about causal attention: retrieval, lost in the middle, parking."""
