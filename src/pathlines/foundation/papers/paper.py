"""What is cited."""

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
