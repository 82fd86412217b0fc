"""A real Chromium without a window, off the network, driven by Selenium."""

import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless", "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-quic",
    "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--no-default-browser-check", "--disable-gpu-watchdog", "--disable-dev-shm-usage",
    "--disable-background-timer-throttling", "--disable-renderer-backgrounding",
)  # fmt: skip


def need_browser():
    """Skip, with the reason, where there is none."""
    pytest.importorskip("selenium", reason="selenium is not installed: pip install pathlines[dev]")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no Chromium here: apt-get install chromium chromium-driver")


@contextmanager
def opened_browser(folder: Path, *more: str, network: bool = False):
    """A browser whose profile lies in ``folder``; without ``network`` every host is unknown to it."""
    need_browser()
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    offline = () if network else ("--host-resolver-rules=MAP * ~NOTFOUND",)
    for flag in (*FLAGS, *offline, *more, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_script_timeout(60)
    driver.set_page_load_timeout(60)
    try:
        yield driver
    finally:
        driver.quit()


def looks(driver, width=1300, height=900, dark=False, calm=False):
    """Size of the window, theme and wish for less motion of the reader."""
    wishes = {"prefers-color-scheme": "dark" if dark else "light", "prefers-reduced-motion": "reduce" if calm else ""}
    features = [{"name": name, "value": value} for name, value in wishes.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
