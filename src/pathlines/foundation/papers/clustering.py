"""Papers of the clustering family."""

from pathlines.foundation.papers.paper import Paper

EMERGENCE = Paper(
    "geshkovski2023emergence",
    "The emergence of clusters in self-attention dynamics",
    ("Borjan Geshkovski", "Cyril Letrouit", "Yury Polyanskiy", "Philippe Rigollet"),
    "2305.05465",
    2023,
)
PERSPECTIVE = Paper(
    "geshkovski2023mathematical",
    "A mathematical perspective on Transformers",
    ("Borjan Geshkovski", "Cyril Letrouit", "Yury Polyanskiy", "Philippe Rigollet"),
    "2312.10794",
    2023,
)
NORMALIZATION = Paper(
    "karagodin2025normalization",
    "Normalization in Attention Dynamics",
    ("Nikita Karagodin", "Shu Ge", "Yury Polyanskiy", "Philippe Rigollet"),
    "2510.22026",
    2025,
)
MEAN_FIELD_DYNAMICS = Paper(
    "rigollet2025meanfield",
    "The Mean-Field Dynamics of Transformers",
    ("Philippe Rigollet",),
    "2512.01868",
    2025,
)
QUANTITATIVE = Paper(
    "chen2025quantitative",
    "Quantitative Clustering in Mean-Field Transformer Models",
    ("Shi Chen", "Zhengjiang Lin", "Yury Polyanskiy", "Philippe Rigollet"),
    "2504.14697",
    2025,
)
SPECTRAL_SELECTION = Paper(
    "kuehn2026spectral",
    "Spectral Selection in Symmetric Self-Attention Dynamics",
    ("Christian Kuehn", "Jaeyoung Yoon"),
    "2604.26085",
    2026,
)
LONG_CONTEXT = Paper(
    "chen2025critical",
    "Critical attention scaling in long-context transformers",
    ("Shi Chen", "Zhengjiang Lin", "Yury Polyanskiy", "Philippe Rigollet"),
    "2510.05554",
    2025,
)
