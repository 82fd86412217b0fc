"""Papers of the metastability family."""

from pathlines.foundation.papers.paper import Paper

METASTABLE_EMERGENCE = Paper(
    "bruno2025emergence",
    "Emergence of meta-stable clustering in mean-field transformer models",
    ("Giuseppe Bruno", "Federico Pasqualotto", "Andrea Agazzi"),
    "2410.23228",
    2025,
)
METASTABILITY = Paper(
    "geshkovski2024dynamic",
    "Dynamic metastability in the self-attention model",
    ("Borjan Geshkovski", "Hugo Koubbi", "Yury Polyanskiy", "Philippe Rigollet"),
    "2410.06833",
    2024,
)
PERCEPTRON_LANDSCAPE = Paper(
    "alvarezlopez2026perceptrons",
    "Perceptrons and localization of attention's mean-field landscape",
    ("Antonio Álvarez-López", "Borjan Geshkovski", "Domènec Ruiz-Balet"),
    "2601.21366",
    2026,
)
KDE_MODES = Paper(
    "geshkovski2024modes",
    "On the number of modes of Gaussian kernel density estimators",
    ("Borjan Geshkovski", "Philippe Rigollet", "Yihang Sun"),
    "2412.09080",
    2024,
)
