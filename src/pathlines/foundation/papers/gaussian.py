"""Papers of the gaussian family."""

from pathlines.foundation.papers.paper import Paper

UNIFIED = Paper(
    "castin2025unified",
    "A Unified Perspective on the Dynamics of Deep Transformers",
    ("Valérie Castin", "Pierre Ablin", "José Antonio Carrillo", "Gabriel Peyré"),
    "2501.18322",
    2025,
)
