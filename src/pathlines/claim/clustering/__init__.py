"""Clustering in self-attention dynamics: claims CL-01 … CL-48, errata ER-…, open questions OP-…."""
