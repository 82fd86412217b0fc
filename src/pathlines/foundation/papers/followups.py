"""Papers of the follow-ups family: they cite the unified perspective and bring a system of their own."""

from pathlines.foundation.papers.paper import Paper

DUAL_FILTER = Paper(
    "kudre2026inference",
    "Transformer-like Inference from Optimal Control",
    ("Kudre", "Chang", "Mehta"),
    "2605.15608",
    2026,
)
ADAMW = Paper(
    "gibson2026uniform",
    "Uniform Scaling Limits in AdamW-Trained Transformers",
    ("Gibson", "Reisinger"),
    "2605.11059",
    2026,
)
PROXIMAL = Paper(
    "tan2025preconditioned",
    "Preconditioned Regularized Wasserstein Proximal Sampling",
    ("Tan", "Osher", "Li"),
    "2509.01685",
    2025,
)
CONTEXTUAL = Paper(
    "chen2026propagation",
    "Propagation of Chaos in Contextual Flow Maps",
    ("Chen", "Lin", "Liu", "Rigollet"),
    "2605.16747",
    2026,
)
TIME_DEPENDENT = Paper(
    "massucco2026multiheaded",
    "Multi-Headed Transformer Architectures as Time-dependent Wasserstein Gradient Flows",
    ("Massucco", "Del Grande", "Carioni", "Brune", "Schönlieb"),
    "2605.18870",
    2026,
)
LOW_TEMPERATURE = Paper(
    "alcalde2026quantifying",
    "Quantifying Concentration Phenomena of Mean-Field Transformers in the Low-Temperature Regime",
    ("Alcalde", "Bungert", "Riedl", "Roith"),
    "2605.10931",
    2026,
)
WIDE_SHALLOW = Paper(
    "petit2026global",
    "On the global convergence of gradient descent for wide shallow models with bounded nonlinearities",
    ("Petit", "Poon", "Peyré"),
    "2605.10775",
    2026,
)
