"""Take the screenshots of the documentation, from a made-up record that is the same every time.

.venv/bin/python -m tools.take_screenshots [FOLDER]    default: lab/docs/images; needs Debian's
chromium-driver
"""

from __future__ import annotations

import base64
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from selenium.webdriver.support.wait import WebDriverWait

from benchmarks.recorded_story import BEGIN, Story, write_story
from roost_lab.recorder.store.database import Store
from roost_lab.report.gather import gather
from roost_lab.report.page import make_page
from roost_lab.units import US
from tests.harness import browser
from tools.demo_replay import write_page
from tools.root import ROOT

if TYPE_CHECKING:
    from selenium import webdriver

IMAGES: Final = ROOT / "lab" / "docs" / "images"
MOST_BYTES: Final = 220_000
# Of the view's picture, in CSS px: down to the first node of each side.
VIEW_HEIGHT: Final = 1560


def example_store(folder: Path) -> Store:
    """A database with the story in it."""
    store = Store.open(str(folder / "hub.db"))
    write_story(store, Story())
    return store


def example_page(folder: Path) -> Path:
    """Its report, as a file."""
    store = example_store(folder)
    page = folder / "report.html"
    report = gather(store, round(BEGIN * US))
    page.write_text(make_page(report, "Database hub.db, a made-up example."), encoding="utf-8")
    store.close()
    return page


def show_view(driver: webdriver.Chrome, address: str, at: float, width: int, height: int) -> None:
    """Open `roost view` at a moment (seconds since 1970), and wait until it is drawn."""
    browser.set_size(driver, width, height)
    driver.get("about:blank")
    driver.get(f"{address}#at={datetime.fromtimestamp(at, UTC).isoformat()}")
    WebDriverWait(driver, 60).until(
        lambda opened: opened.execute_script("return document.documentElement.dataset.shown")
    )


def picture(driver: webdriver.Chrome, *, top: int, height: int, width: int) -> bytes:
    """A PNG of a part of the page, in CSS px from its top."""
    clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
    taken = driver.execute_cdp_cmd(
        "Page.captureScreenshot", {"format": "png", "clip": clip, "captureBeyondViewport": True}
    )
    return base64.b64decode(taken["data"])


def main(argv: list[str] | None = None) -> int:
    """Take them; 1 when one is too large for a repository."""
    arguments = sys.argv[1:] if argv is None else argv
    folder = Path(arguments[0]) if arguments else IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    too_large = 0
    with tempfile.TemporaryDirectory() as made, browser.open_browser() as driver:
        page = example_page(Path(made))
        browser.show_report(driver, page, 1000, browser.LIGHT)
        image = picture(driver, top=0, height=960, width=1000)
        (folder / "report-light.png").write_bytes(image)
        too_large += len(image) > MOST_BYTES
        print(f"{folder / 'report-light'}.png: {len(image):,} bytes")
        shared = Path(made) / "replay.html"
        write_page(Path(made) / "replays", shared)
        browser.set_scheme(driver, browser.LIGHT)
        browser.set_size(driver, 1200, 760)
        driver.get(shared.as_uri())
        # What happened over the day comes after the moment.
        WebDriverWait(driver, 60).until(
            lambda opened: opened.find_elements("css selector", "#timeline .lane")
        )
        image = picture(driver, top=0, height=VIEW_HEIGHT, width=1200)
        (folder / "view.png").write_bytes(image)
        too_large += len(image) > MOST_BYTES
        print(f"{folder / 'view'}.png: {len(image):,} bytes")
    return 1 if too_large else 0


if __name__ == "__main__":
    sys.exit(main())
