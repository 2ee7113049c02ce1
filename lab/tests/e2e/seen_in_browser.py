"""Look at a page of plots and tables in a browser: what overlaps, leaves it, is missing, or asks a
network.
"""

import base64
import contextlib
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from selenium.webdriver import Chrome

from tests.harness import browser

# What a font does to a page: letters a fifth wider than DejaVu's, which is wide itself; lines as
# high as Noto Sans'.
FONTS: Final = {
    "wide": "* { letter-spacing: 0.12em !important; }",
    "tall": (
        '@font-face { font-family: tall; src: local("DejaVu Sans"), local("Noto Sans Regular"), '
        'local("Liberation Sans"), local("Roboto"), local("Arial"); '
        "ascent-override: 107%; descent-override: 30%; } * { font-family: tall !important; }"
    ),
}
A4_POINTS: Final = (595, 842)


def run_script(driver: Chrome, name: str) -> Any:
    """What a script of `scripts/` returns in the open page."""
    return driver.execute_script((Path(__file__).parent / "scripts" / f"{name}.js").read_text())


def print_a4(driver: Chrome) -> bytes:
    """The open page as a PDF on A4, without "background graphics", as browsers print unless they
    are told.
    """
    paper = {"paperWidth": A4_POINTS[0] / 72, "paperHeight": A4_POINTS[1] / 72}
    return base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", paper)["data"])


def printed_colours(pdf: bytes) -> list[set[tuple[int, int, int]]]:
    """The colours that each page of Chromium's PDF is filled with; what is outside a page is in
    none.
    """
    objects = {
        int(number): body
        for number, body in re.findall(rb"(\d+) 0 obj\n(.*?)\nendobj", pdf, re.DOTALL)
    }
    pages = [body for body in objects.values() if re.search(rb"/Type\s*/Page\b(?!s)", body)]
    return [_colours(objects, page, set()) for page in pages]


def _colours(
    objects: Mapping[int, bytes], body: bytes, seen: set[int]
) -> set[tuple[int, int, int]]:
    # Content streams, and the forms that they draw.
    found: set[tuple[int, int, int]] = set()
    head, _, stream = body.partition(b"stream\n")
    if stream:
        text = zlib.decompressobj().decompress(stream) if b"/FlateDecode" in head else stream
        numbers = re.findall(rb"([\d.]+) ([\d.]+) ([\d.]+) rg\b", text)
        found |= {
            (round(float(r) * 255), round(float(g) * 255), round(float(b) * 255))
            for r, g, b in numbers
        }
    for reference in re.findall(rb"(\d+) 0 R", head):
        number = int(reference)
        is_part = b"stream\n" in objects.get(number, b"") and b"/Image" not in objects[number]
        if is_part and number not in seen:
            seen.add(number)
            found |= _colours(objects, objects[number], seen)
    return found


def check_paper(driver: Chrome, page: Path, width: int, scheme: str) -> None:
    """What is printed: each plot whole on one page with its legend, light colours; afterwards the
    page is as it was.
    """
    browser.show_report(driver, page, width, scheme)
    before = run_script(driver, "plots")
    figures = run_script(driver, "mark")
    pages = printed_colours(print_a4(driver))
    assert len(pages) > 2
    for index, (key, has_legend) in enumerate(figures):
        marks = [
            {number for number, colours in enumerate(pages) if (index, mark, 201) in colours}
            for mark in range(3)
        ]
        assert len(marks[0]) == 1, (key, marks)
        assert marks[0] == marks[1], (key, marks)
        assert not has_legend or marks[2] == marks[0], (key, marks)
    inks = {"light": (29, 35, 41), "dark": (230, 233, 236)}
    assert all(inks["light"] in colours and inks["dark"] not in colours for colours in pages)
    browser.wait_drawn(driver, scheme)
    assert run_script(driver, "plots") == before
    assert browser.console(driver) == []


@contextlib.contextmanager
def in_font(driver: Chrome, css: str) -> Iterator[None]:
    """Every page that is opened meanwhile has this CSS, before anything of it is drawn."""
    source = f"""new MutationObserver((_, observer) => {{
      if (!document.head) return;
      observer.disconnect();
      const style = document.createElement("style");
      style.textContent = {json.dumps(css)};
      document.head.append(style);
    }}).observe(document, {{childList: true, subtree: true}})"""
    added = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})
    try:
        yield
        if driver.execute_script(
            "return [...document.fonts].some((font) => font.status !== 'loaded')"
        ):
            pytest.skip("none of the fonts is installed that a font is simulated with")
    finally:
        driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def overlapping(texts: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Pairs of texts whose boxes share more than a hair."""
    found = []
    ordered = sorted(texts, key=lambda text: float(text["top"]))
    for index, one in enumerate(ordered):
        for other in ordered[index + 1 :]:
            if other["top"] >= one["bottom"] - 1.5:
                break
            wide = min(one["right"], other["right"]) - max(one["left"], other["left"])
            high = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
            if wide > 1.5 and high > 1.5:
                found.append((f"{one['plot']}: {one['text']}", f"{other['plot']}: {other['text']}"))
    return found


def requests(driver: Chrome) -> list[str]:
    """URLs that pages asked for since the last call; not those of the browser's own first tab,
    which may come late.
    """
    entries = driver.get_log("performance")  # type: ignore[no-untyped-call]  # Selenium gives no types here
    messages = [json.loads(entry["message"])["message"] for entry in entries]
    sent = [
        message["params"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    return [one["request"]["url"] for one in sent if not one["documentURL"].startswith("chrome")]


def check(driver: Chrome, page: Path, width: int, scheme: str, *, plots: int) -> None:
    """Everything that holds for every page; plots: how many there are."""
    browser.console(driver)
    requests(driver)
    browser.show_report(driver, page, width, scheme)
    driver.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    texts = run_script(driver, "texts")
    assert len(texts) > 100
    overlaps = overlapping(texts)
    assert not overlaps, overlaps
    outside = [text["text"] for text in texts if text["left"] < 0 or text["right"] > width]
    assert not outside, outside
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    drawn = run_script(driver, "plots")
    assert len(drawn) == plots, [plot["key"] for plot in drawn]
    assert [plot["key"] for plot in drawn if not plot["marks"]] == []
    assert all(width / 5 < plot["width"] <= width for plot in drawn), drawn
    assert browser.console(driver) == []
    elsewhere = [url for url in requests(driver) if not url.startswith(("file:", "data:"))]
    assert not elsewhere, elsewhere
