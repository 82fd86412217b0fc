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
BIRTH = Paper(
    "chowdhury2026birth",
    "Lost in the Middle at Birth: An Exact Theory of Transformer Position Bias",
    ("Borun D Chowdhury",),
    "2603.10123",
    2026,
)
STRUCTURAL = Paper(
    "herasimchyk2026structural",
    "A Structural Theory of Position Bias in Transformers",
    ("Hanna Herasimchyk", "Robin Labryga", "Tomislav Prusina", "Sören Laue"),
    "2602.16837",
    2026,
)
