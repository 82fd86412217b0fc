"""Papers of the causal family."""

from pathlines.foundation.papers.paper import Paper

KINETIC = Paper(
    "duerinckx2026kinetic",
    "Kinetic theory for Transformers and the lost-in-the-middle phenomenon",
    ("Mitia Duerinckx", "Borjan Geshkovski", "Stefano Rossi"),
    "2605.09213",
    2026,
)
CAUSAL_CLUSTERING = Paper(
    "karagodin2024clustering",
    "Clustering in causal attention masking",
    ("Nikita Karagodin", "Yury Polyanskiy", "Philippe Rigollet"),
    "2411.04990",
    2024,
)
