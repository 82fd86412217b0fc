"""Every page in light and dark, wide and narrow, as pictures: `PATHLINES_PICTURES=docs/pictures pytest -m slow` keeps
those that the documentation shows.
"""

import io
import os
from pathlib import Path

import numpy as np
import pytest
from browser import looks, need_browser, opened_browser
from serving import TOKEN, served
from test_pages_in_browser import DRAWN, LOCAL, until

pytest.importorskip("nicegui")
pytestmark = pytest.mark.slow

SHOWN = {
    "play": "/play?model=sa&beta=9&n=120&until=30&t=3&colour=cluster",
    "theory": "/theory?claim=clustering/ER-01&verdict=refuted",
    "retrieval": "/retrieval?simulate=true&prompts=500",
    "flows": "/flows?d=2&pieces=[[0,1.4,1,0,0,1],[0,1.4,-1,0,0,1],[0,-1,0,1,-1,0.6]]",
    "prompts": "/flows/prompts?prompts=3",
    "advise": "/advise?layers=24&target=0.3&branches=-1",
    "studies": "/studies",
}
KEPT = {(name, "wide", "light") for name in SHOWN} | {("play", "wide", "dark"), ("play", "narrow", "light")}
SIZES = {"wide": (1300, 900), "narrow": (380, 800)}
MOST = 150_000


@pytest.fixture(scope="module")
def camera(tmp_path_factory):
    need_browser()
    folder = tmp_path_factory.mktemp("browser")
    with served(tmp_path_factory.mktemp("store")) as site, opened_browser(folder, LOCAL, network=True) as driver:
        driver.get(f"{site.root}/studies?token={TOKEN}")
        yield site, driver


@pytest.mark.parametrize("name", SHOWN)
def test_each_page_is_photographed(camera, name, tmp_path):
    from PIL import Image

    site, driver = camera
    folder = Path(os.environ.get("PATHLINES_PICTURES", tmp_path))
    looks(driver, calm=True)
    driver.get(site.root + SHOWN[name])
    until(driver, DRAWN, seconds=60)
    until(driver, "return !document.querySelector('[aria-busy=true]')", seconds=60)
    until(driver, "return [...document.querySelectorAll('.finding')].every((e) => e.textContent)", seconds=60)
    seen = {}
    for size, (width, height) in SIZES.items():
        for light in ("light", "dark"):
            looks(driver, width, height, dark=light == "dark", calm=True)
            driver.execute_async_script("setTimeout(arguments[0], 700)")
            image = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
            seen[size, light] = np.asarray(image, float)
            assert seen[size, light].std() > 10
            if (name, size, light) in KEPT:
                more = "" if (size, light) == ("wide", "light") else f"-{light if size == 'wide' else size}"
                file = folder / f"view-{name}{more}.png"
                # medians of colours made thin green lines blue; this keeps every colour within a few steps of 255
                kept = image.quantize(256, method=Image.Quantize.MAXCOVERAGE)
                image.quantize(palette=kept, dither=Image.Dither.FLOYDSTEINBERG).save(file, optimize=True)
                assert file.stat().st_size < MOST
    assert seen["wide", "light"].mean() > 150 > 80 > seen["wide", "dark"].mean()
