"""The pages: one small file each."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import FastAPI


def open_pages(app: FastAPI) -> None:
    """Register every page at its address, with the answers that it asks for."""
    from pathlines.view.pages import advise, flows, play, prompts, retrieval, studies, theory

    play.register()
    for page in (theory, retrieval, flows, prompts, advise, studies):
        page.register(app)
