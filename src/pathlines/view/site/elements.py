"""Plain elements of a page: native ones, with labels that screen readers read; all text is escaped by the framework."""

from __future__ import annotations

from typing import Any

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement

from pathlines.foundation.typeset import as_html


def box(tag: str = "div", classes: str = "", **props: Any) -> ui.element:
    """An element that holds others."""
    return _dressed(ui.element(tag), classes, props)


def words(text: str, tag: str = "p", classes: str = "", **props: Any) -> TextElement:
    """An element with a text."""
    return _dressed(TextElement(tag=tag, text=text), classes, props)


def markup(content: str, tag: str = "div", classes: str = "", **props: Any) -> ui.html:
    """Markup of our own making, in which all that comes from elsewhere is escaped already."""
    return _dressed(ui.html(content, sanitize=False, tag=tag), classes, props)


def mathematics(text: str, tag: str = "p", classes: str = "", **props: Any) -> ui.html:
    """Words with indices and powers, as ``foundation/typeset.py`` sets them: escaped, and nothing is fetched for it."""
    return markup(as_html(text), tag, classes, **props)


def link(text: str, target: str, classes: str = "", **props: Any) -> TextElement:
    """A link within the pages, or to a paper."""
    return words(text, "a", classes, href=target, **props)


def chip(text: str, kind: str = "") -> TextElement:
    """A word in a coloured frame: a verdict."""
    return words(text, "span", f"chip {kind or text}")


def button(text: str, handler: Any, classes: str = "", **props: Any) -> TextElement:
    """A button."""
    made = words(text, "button", classes, type="button", **props)
    made.on("click", handler, [])
    return made


def code_line(text: str, label: str, name: str = "") -> TextElement:
    """Text to be copied, with its button: a click puts it on the clipboard, in the browser alone."""
    with box(classes="copy"):
        with box(classes="copy-head"):
            words(label, "span", "small")
            copier = words("copy", "button", "quiet", type="button")
            copier.props["aria-label"] = f"copy {label}"
            copier.on("click", js_handler="(e) => window.pathlines.copy(e.currentTarget)")
        return words(text, "pre", id=name or None)


def _dressed(element: Any, classes: str, props: dict[str, Any]) -> Any:
    if classes:
        element.classes(classes)
    for name, value in props.items():
        if value is not None and value is not False:
            element.props[name.rstrip("_").replace("_", "-")] = value
    return element
