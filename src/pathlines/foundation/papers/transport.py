"""Papers of the transport family."""

from pathlines.foundation.papers.paper import Paper

MEASURE_TO_MEASURE = Paper(
    "geshkovski2024measure",
    "Measure-to-measure interpolation using Transformers",
    ("Borjan Geshkovski", "Philippe Rigollet", "Domènec Ruiz-Balet"),
    "2411.04551",
    2024,
)
NORMALIZING_FLOWS = Paper(
    "alvarezlopez2024constructive",
    "Constructive approximate transport maps with normalizing flows",
    ("Antonio Álvarez-López", "Borjan Geshkovski", "Domènec Ruiz-Balet"),
    "2412.19366",
    2024,
)
CONDITIONAL_FLOWS = Paper(
    "geshkovski2026conditional",
    "Constructive conditional normalizing flows",
    ("Borjan Geshkovski", "Domènec Ruiz-Balet"),
    "2602.08606",
    2026,
)
