"""The papers whose mathematics this package implements; everything that comes from one cites it from here."""

from __future__ import annotations

import msgspec


class Paper(msgspec.Struct, frozen=True):
    """A source: ``key`` is the BibTeX key."""

    key: str
    title: str
    authors: tuple[str, ...]
    arxiv: str
    year: int

    @property
    def citation(self) -> str:
        """One line: authors, title, arXiv id."""
        names = [a.split()[-1] for a in self.authors]
        who = ", ".join(names) if len(names) <= 4 else f"{names[0]} et al."
        return f"{who}, {self.title}, arXiv:{self.arxiv}"

    @property
    def bibtex(self) -> str:
        """The BibTeX entry."""
        return (
            f"@misc{{{self.key},\n  title         = {{{self.title}}},\n"
            f"  author        = {{{' and '.join(self.authors)}}},\n  year          = {{{self.year}}},\n"
            f"  eprint        = {{{self.arxiv}}},\n  archivePrefix = {{arXiv}}\n}}"
        )


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
UNIFIED = Paper(
    "castin2025unified",
    "A Unified Perspective on the Dynamics of Deep Transformers",
    ("Valérie Castin", "Pierre Ablin", "José Antonio Carrillo", "Gabriel Peyré"),
    "2501.18322",
    2025,
)
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

PAPERS: dict[str, Paper] = {
    p.key: p
    for p in (
        EMERGENCE,
        PERSPECTIVE,
        NORMALIZATION,
        MEAN_FIELD_DYNAMICS,
        QUANTITATIVE,
        SPECTRAL_SELECTION,
        LONG_CONTEXT,
        METASTABLE_EMERGENCE,
        METASTABILITY,
        PERCEPTRON_LANDSCAPE,
        KDE_MODES,
        HOMOGENIZED,
        STOCHASTIC_CLUSTERING,
        SYNCHRONIZATION,
        UNIFIED,
        KINETIC,
        CAUSAL_CLUSTERING,
    )
}
