"""The frame of every page: style, navigation, what a page's script needs to know."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files

from nicegui import ui

from pathlines.view.site.elements import box, link, words

PAGES = ("Play", "Theory", "Retrieval", "Flows", "Advise", "Studies")


def address_of(page: str) -> str:
    """Where a page is."""
    return "/" + page.lower()


@contextmanager
def shell(page: str, title: str, script: str, first: str = "") -> Iterator[None]:
    """The page around its own content; ``script`` is its module of ``static/``, ``first`` what it fetches at once.

    What the page shows first is asked for in the head, before the framework is there.
    """
    style = (files("pathlines.view") / "static" / "pages.css").read_text(encoding="utf-8")
    early = f"window.firstAddress = {json.dumps(first)}; window.first = fetch(window.firstAddress);" if first else ""
    ui.add_head_html(f"<style>{style}</style><script>{early.replace('<', '%3C')}</script>")
    ui.add_head_html(f'<script type="module" src="/static/{html.escape(script)}"></script>')
    ui.page_title(f"{title} · Pathlines")
    link("to the content", "#content", "skip")
    with box("header", "top"):
        link("Pathlines", "/play", "brand")
        with box("nav", aria_label="pages"):
            for name in PAGES:
                link(name, address_of(name), aria_current="page" if name == page else None)
    with box("main", id="content", tabindex="-1"):
        yield
    with box("div", "lost", id="lost", role="status"):
        words("The server is away; the page goes on when it is back.")
