"""Pages as NiceGUI's user sees them, without a browser: fields, presets, what is said of what is refused."""

import asyncio

import pytest

import typecheck

pytest.importorskip("nicegui")

from fastapi import FastAPI
from nicegui.testing import user_simulation

from pathlines.view.pages import open_pages

PAGES = {
    "/play": "What you will see", "/theory": "The claims are being read.", "/retrieval": "Lost in the middle",
    "/flows": "A density made of ReLU pieces", "/flows/prompts": "Prompts that share tokens",
    "/advise": "What depth will do", "/studies": "three orthogonal tokens",
}  # fmt: skip


@pytest.fixture(autouse=True)
def annotations_rest(annotations_hold):
    """Every simulation loads the pages anew, and classes of one name would be taken for each other."""
    typecheck.ACTIVE.clear()


def seen(visit):
    """Run a visit in a simulation of its own."""

    async def simulated():
        async with user_simulation() as user:
            open_pages(FastAPI())
            await visit(user)

    asyncio.run(simulated())


def test_every_page_says_what_it_is_and_names_the_others():
    async def visit(user):
        for address, words in PAGES.items():
            await user.open(address)
            await user.should_see(words)
            await user.should_see("Studies")

    seen(visit)


@pytest.mark.parametrize("address", ["/retrieval?n=NaN", "/flows?d=9", "/advise?layers=-1", "/studies?study=nobody"])
def test_a_wrong_address_is_said_and_the_page_is_the_usual_one(address):
    async def visit(user):
        await user.open(address)
        await user.should_see(
            address.partition("?")[2].partition("=")[0] if "study" not in address else "open its file"
        )

    seen(visit)
