"""Papers of the homogenized family."""

from pathlines.foundation.papers.paper import Paper

HOMOGENIZED = Paper(
    "koubbi2026homogenized",
    "Homogenized Transformers",
    ("Hugo Koubbi", "Borjan Geshkovski", "Philippe Rigollet"),
    "2604.01978",
    2026,
)
STOCHASTIC_CLUSTERING = Paper(
    "fedorov2026clustering",
    "Clustering in Deep Stochastic Transformers",
    ("L. Fedorov", "Michaël E. Sander", "Romuald Elie", "Pierre Marion", "Mathieu Laurière"),
    "2601.21942",
    2026,
)
SYNCHRONIZATION = Paper(
    "agazzi2026stochastic",
    "Stochastic Scaling Limits and Synchronization by Noise in Deep Transformer Models",
    ("Andrea Agazzi", "Giuseppe Bruno", "E. Mosig García", "S. Saviozzi", "Marco Romito"),
    "2604.26898",
    2026,
)
