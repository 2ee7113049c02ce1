"""Open pages in a headless Chromium by its WebDriver, as Debian's packages chromium and
chromium-driver bring them.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from typing import TYPE_CHECKING, Any, Final

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
DRIVER: Final = "chromedriver"
LOAD_SECONDS: Final = 120
LIGHT, DARK = "light", "dark"


def missing() -> str:
    """What must be installed first; "" when nothing."""
    if _browser() is None or shutil.which(DRIVER) is None:
        return "no headless browser: apt-get install chromium chromium-driver"
    return ""


def _browser() -> str | None:
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@contextlib.contextmanager
def open_browser() -> Iterator[webdriver.Chrome]:
    """A browser without a network but this machine's own 127.0.0.1, closed at the end."""
    with tempfile.TemporaryDirectory() as profile:
        options = Options()
        options.binary_location = _browser() or ""
        for argument in (
            "--headless=new",
            # In containers tests run as root, and /dev/shm is small.
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--hide-scrollbars",
            # Pages that this machine serves can be opened.
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            "--force-device-scale-factor=1",
            f"--user-data-dir={profile}",
        ):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(shutil.which(DRIVER)))
        try:
            driver.set_page_load_timeout(LOAD_SECONDS)
            yield driver
        finally:
            driver.quit()


def show_report(driver: webdriver.Chrome, page: Path, width: int, scheme: str) -> None:
    """Open a report at that width (CSS px) and colour scheme, and wait until its figures are
    drawn.
    """
    set_size(driver, width, 900)
    set_scheme(driver, scheme)
    driver.get(page.absolute().as_uri())
    wait_drawn(driver, scheme)


def set_size(driver: webdriver.Chrome, width: int, height: int) -> None:
    """Make the window so large (CSS px)."""
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
    )


def set_scheme(driver: webdriver.Chrome, scheme: str, media: str = "") -> None:
    """Say that the reader prefers light or dark. media: print, as on paper."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def wait_drawn(driver: webdriver.Chrome, scheme: str) -> None:
    """Wait until the figures are drawn in the scheme's colours."""
    script = "return document.documentElement.dataset.drawn === arguments[0]"
    WebDriverWait(driver, LOAD_SECONDS).until(lambda one: one.execute_script(script, scheme))


def console(driver: webdriver.Chrome) -> list[dict[str, Any]]:
    """What the browser's console got since it was asked last."""
    return list(driver.get_log("browser"))  # type: ignore[no-untyped-call]  # Selenium gives no types here
