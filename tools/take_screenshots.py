"""Take the screenshots of the documentation, from a made-up record that is the same every time.

.venv/bin/python -m tools.take_screenshots [FOLDER]    default: docs/images; needs Debian's chromium, chromium-driver
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from roost.recorder.report.gather import gather
from roost.recorder.report.page import make_page
from roost.recorder.store.database import Store
from tools import browser
from tools.recorded_story import BEGIN, US, Story, write_story

if TYPE_CHECKING:
    from selenium import webdriver

IMAGES: Final = Path(__file__).resolve().parent.parent / "docs" / "images"
MOST_BYTES: Final = 150_000


def example_store(folder: Path, story: Story | None = None) -> Store:
    """A database with the story in it."""
    store = Store.open(str(folder / "hub.db"))
    write_story(store, story or Story())
    return store


def example_page(folder: Path, story: Story | None = None) -> Path:
    """Its report, as a file."""
    store = example_store(folder, story)
    page = folder / "report.html"
    report = gather(store, round(BEGIN * US))
    page.write_text(make_page(report, "Database hub.db, a made-up example."), encoding="utf-8")
    store.close()
    return page


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
        for name, scheme, width, height, section in (
            ("report-light", browser.LIGHT, 1000, 1150, ""),
            ("report-dark", browser.DARK, 1000, 1150, "occupancy"),
            ("report-phone", browser.LIGHT, 360, 1150, "starts-by-image"),
        ):
            browser.show_report(driver, page, width, 900, scheme)
            top = driver.execute_script(
                "const one = document.getElementById(arguments[0]);"
                "return one ? one.getBoundingClientRect().top + scrollY - 12 : 0",
                section,
            )
            image = picture(driver, top=int(top), height=height, width=width)
            (folder / f"{name}.png").write_bytes(image)
            too_large += len(image) > MOST_BYTES
            print(f"{folder / name}.png: {len(image):,} bytes")
    return 1 if too_large else 0


if __name__ == "__main__":
    sys.exit(main())
