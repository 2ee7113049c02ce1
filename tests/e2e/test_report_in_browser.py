"""The report as people see it: opened in headless Chromium, at a phone's and a desk's width, light and dark."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from recorder.page import make_page
from recorder.records import Phase, PullRecord
from recorder.report import gather
from tests.recorded import (
    BEGIN,
    HOUR,
    MINUTE,
    SECOND,
    bind_record,
    empty_store,
    fail_record,
    phase_record,
    pod_record,
    story_records,
)

browser = pytest.importorskip("tools.browser", reason="no Selenium: make setup installs it")
shots = pytest.importorskip("tools.take_screenshots")

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver import Chrome

    from recorder.records import Record

PHONE, DESK = 360, 1280
SIZES = [(PHONE, "light"), (PHONE, "dark"), (DESK, "light"), (DESK, "dark")]

if browser.missing() and os.environ.get("CI"):
    pytest.fail(browser.missing(), pytrace=False)
pytestmark = pytest.mark.skipif(bool(browser.missing()), reason=browser.missing() or "all there")

# Every piece of text that can be seen, with its box: SVG texts whole, others line by line.
TEXTS = """
const found = [];
const put = (text, box, kind, plot) => {
  if (box.width > 0 && box.height > 0) {
    found.push({text: text.trim().slice(0, 60), left: box.left, right: box.right, top: box.top + scrollY,
                bottom: box.bottom + scrollY, kind, plot});
  }
};
for (const text of document.querySelectorAll(".plot svg text")) {
  const style = getComputedStyle(text);
  if (text.textContent.trim() && style.visibility !== "hidden" && style.display !== "none" && style.opacity !== "0") {
    put(text.textContent, text.getBoundingClientRect(), "plot", text.closest(".plot").dataset.figure);
  }
}
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode, parent = node.parentElement;
  const hidden = "script, style, svg, noscript, details:not([open]) > :not(summary)";
  if (!node.data.trim() || parent.closest(hidden)) continue;
  const scroller = parent.closest(".scroll"), limits = scroller && scroller.getBoundingClientRect();
  const range = document.createRange();
  range.selectNodeContents(node);
  for (const box of range.getClientRects()) {
    if (limits && (box.bottom > limits.bottom || box.right > limits.right)) continue;
    put(node.data, box, "page", "");
  }
}
return found;
"""
# Of each plot: its width, and how many marks (bars, points, lines) of some size are drawn in it.
PLOTS = """
return [...document.querySelectorAll("[data-figure]")].map((plot) => ({
  key: plot.dataset.figure,
  width: plot.querySelector("svg.main-svg")?.getBoundingClientRect().width ?? 0,
  marks: [...plot.querySelectorAll(".trace path, .points path, .point path")].filter((mark) => {
    const box = mark.getBoundingClientRect();
    return box.width > 0 || box.height > 0;
  }).length,
}));
"""
# Contrast of each plot's texts with the card below them, as WCAG counts it.
CONTRASTS = """
const rgb = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
const light = (text) => {
  const straight = (one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4;
  const [r, g, b] = rgb(text).map((one) => straight(one / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
return [...document.querySelectorAll(".plot svg text, h2, figcaption, td, summary, .legend li")].map((text) => {
  const below = light(getComputedStyle(text.closest("section")).backgroundColor);
  const style = getComputedStyle(text);
  const above = light(text.closest("svg") ? style.fill : style.color);
  return [text.textContent.trim(), (Math.max(above, below) + 0.05) / (Math.min(above, below) + 0.05)];
}).filter((one) => one[0]);
"""


@pytest.fixture(scope="module")
def driver() -> Iterator[Chrome]:
    with browser.open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    page: Path = shots.example_page(tmp_path_factory.mktemp("example"))
    return page


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Long names, names that look like HTML, huge and tiny numbers."""
    folder = tmp_path_factory.mktemp("odd")
    attack = "<img src=x onerror=\"window.attacked = 'yes'\"><script>window.attacked = 'yes'</script>"
    records: list[Record] = list(story_records(attack))
    for number in range(14):
        uid, long = f"p{number}", f"registry.example.org/{'very-' * 20}long-{number}/{'name-' * 12}{number}:{'9' * 40}"
        created_us = BEGIN + number * MINUTE
        took_us = 10 ** min(number, 11)
        records += [
            pod_record(uid, image=long, created_us=created_us, scheduler=f"{'scheduler-' * 6}{number}"),
            bind_record(uid, created_us + took_us, f"{'node-' * 30}{number}", "agrees"),
            phase_record(uid, Phase.STARTED, created_us + took_us + SECOND),
            phase_record(uid, Phase.READY, created_us + took_us + 2 * SECOND),
            fail_record(uid, 1, {f"{'a reason without an end ' * 9}{number}": number, "x" * 150: 10**9}, tries=10**7),
            PullRecord(
                pod_uid=uid,
                image=long,
                node_name=f"{'node-' * 30}{number}",
                at_us=created_us,
                warm=number % 3 == 0,
                pull_us=number * HOUR,
                pull_and_wait_us=number * 2 * HOUR,
                image_bytes=number << 40,
            ),
        ]
    store = empty_store(folder)
    store.write(records, {})
    page = folder / "report.html"
    page.write_text(make_page(gather(store, BEGIN, BEGIN + 3 * HOUR), attack), encoding="utf-8")
    return page


def overlapping(texts: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Pairs of texts whose boxes share more than a hair."""
    found = []
    ordered = sorted(texts, key=lambda one: float(one["top"]))
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
    entries = driver.get_log("performance")  # type: ignore[no-untyped-call]  # Selenium gives no types here
    messages = [json.loads(entry["message"])["message"] for entry in entries]
    return [
        message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"
    ]


def check(driver: Chrome, page: Path, width: int, scheme: str) -> None:
    browser.console(driver)
    requests(driver)
    browser.show_report(driver, page, width, 900, scheme)
    driver.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    texts = driver.execute_script(TEXTS)
    assert len(texts) > 100
    assert overlapping(texts) == []
    outside = [one["text"] for one in texts if one["left"] < 0 or one["right"] > width]
    assert outside == []
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    plots = driver.execute_script(PLOTS)
    assert len(plots) == 13
    assert [plot["key"] for plot in plots if not plot["marks"]] == []
    assert all(width / 5 < plot["width"] <= width for plot in plots), plots
    assert browser.console(driver) == []
    assert [url for url in requests(driver) if not url.startswith(("file:", "data:"))] == []


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_nothing_overlaps_leaves_the_page_or_is_missing(driver: Chrome, example: Path, width: int, scheme: str) -> None:
    check(driver, example, width, scheme)


@pytest.mark.parametrize(("width", "scheme"), [(PHONE, "light"), (DESK, "dark")])
def test_long_and_odd_names_fit_and_are_only_text(driver: Chrome, odd: Path, width: int, scheme: str) -> None:
    check(driver, odd, width, scheme)
    assert driver.execute_script("return [window.attacked, document.images.length]") == [None, 0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_what_is_below_them(driver: Chrome, example: Path, scheme: str) -> None:
    browser.show_report(driver, example, DESK, 900, scheme)
    contrasts = driver.execute_script(CONTRASTS)
    assert len(contrasts) > 100
    assert [one for one in contrasts if one[1] < 4.5] == []


def test_colours_follow_the_readers_scheme_while_the_page_is_open(driver: Chrome, example: Path) -> None:
    colour = "return getComputedStyle(document.querySelector('.plot svg .bars path')).fill"
    browser.show_report(driver, example, DESK, 900, "light")
    light = driver.execute_script(colour)
    browser.set_scheme(driver, "dark")
    browser.wait_drawn(driver, "dark")
    assert driver.execute_script(colour) != light
    assert browser.console(driver) == []


def test_a_page_of_an_empty_database_is_a_page(driver: Chrome, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(make_page(gather(empty_store(tmp_path)), "about"), encoding="utf-8")
    browser.console(driver)
    driver.get(page.as_uri())
    assert "Nothing has been recorded" in driver.find_element("css selector", ".notice").text
    assert browser.console(driver) == []
