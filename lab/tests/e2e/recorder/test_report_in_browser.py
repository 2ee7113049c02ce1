"""The report as people see it: opened in headless Chromium, at a phone's and a desk's width, light and dark."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lab.tests.recorded import (
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
from roost_lab.recorder.store.records import Phase, PullRecord
from roost_lab.report.gather import gather
from roost_lab.report.page import make_page

browser = pytest.importorskip("tools.browser", reason="no Selenium: make setup installs it")
shots = pytest.importorskip("tools.take_screenshots")
seen = pytest.importorskip("lab.tests.e2e.seen_in_browser")
axe = pytest.importorskip("tests.harness.axe")
ActionChains = pytest.importorskip("selenium.webdriver.common.action_chains").ActionChains

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver import Chrome

    from roost_lab.recorder.store.records import Record

PHONE, DESK = 360, 1280
IMAGES = [
    f"europe-west1-docker.pkg.dev/university-of-somewhere/hubs/{end}"
    for end in ("scipy:2026.10", "r:2026.10", "r:2026.9")
]
# The names above the bars.
NAMES = """
return [...document.querySelectorAll("[data-figure=pulls_by_image] .note")]
  .filter((_, index) => index % 2 == 0).map((one) => one.textContent);
"""
# Figure -> axis -> its labels that can be seen, from left to right or from the bottom.
LABELS = """
const seen = (text) => {
  const box = text.getBoundingClientRect(), plot = text.closest("svg").getBoundingClientRect();
  const style = getComputedStyle(text);
  return style.visibility !== "hidden" && style.display !== "none" && box.width > 0
    && box.left >= plot.left && box.right <= plot.right;
};
const texts = (plot, axis) => [...plot.querySelectorAll(axis === "x" ? ".x text" : "text.y")].filter(seen)
  .map((text) => [text.textContent, text.getBoundingClientRect()])
  .sort((a, b) => axis === "x" ? a[1].left - b[1].left : b[1].top - a[1].top).map((one) => one[0]);
return Object.fromEntries([...document.querySelectorAll("[data-figure]")].map((plot) =>
  [plot.dataset.figure, { x: texts(plot, "x"), y: texts(plot, "y") }]));
"""
SIZES = [(PHONE, "light"), (PHONE, "dark"), (DESK, "light"), (DESK, "dark")]

if browser.missing() and os.environ.get("CI"):
    pytest.fail(browser.missing(), pytrace=False)
pytestmark = pytest.mark.skipif(bool(browser.missing()), reason=browser.missing() or "all there")


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


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_nothing_overlaps_leaves_the_page_or_is_missing(driver: Chrome, example: Path, width: int, scheme: str) -> None:
    seen.check(driver, example, width, scheme, plots=7)


@pytest.mark.parametrize(("width", "scheme"), [(PHONE, "light"), (DESK, "dark")])
def test_long_and_odd_names_fit_and_are_only_text(driver: Chrome, odd: Path, width: int, scheme: str) -> None:
    seen.check(driver, odd, width, scheme, plots=7)
    assert driver.execute_script("return [window.attacked, document.images.length]") == [None, 0]


@pytest.mark.parametrize("name", list(seen.fonts()))
def test_everything_fits_a_phone_in_whatever_font(driver: Chrome, example: Path, odd: Path, name: str) -> None:
    with seen.in_font(driver, seen.fonts()[name]):
        for page in (example, odd):
            seen.check(driver, page, PHONE, "light", plots=7)


@pytest.mark.parametrize(("width", "scheme"), [(PHONE, "dark"), (DESK, "light")])
def test_on_paper_plots_are_whole_and_light(driver: Chrome, example: Path, odd: Path, width: int, scheme: str) -> None:
    for page in (example, odd):
        seen.check_paper(driver, page, width, scheme)


def test_names_are_told_apart_and_whole_below_the_mouse(driver: Chrome, tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    pull = next(record for record in story_records() if isinstance(record, PullRecord))
    pulls = [replace(pull, pod_uid=name, image=name) for name in IMAGES]
    store.write([*story_records(IMAGES[0]), *pulls], {})
    page = tmp_path / "report.html"
    page.write_text(make_page(gather(store, BEGIN, BEGIN + HOUR), "about"), encoding="utf-8")
    browser.show_report(driver, page, DESK, 900, "light")
    assert len(set(driver.execute_script(NAMES))) == len(IMAGES)
    name = driver.find_element("css selector", "[data-figure=pulls_by_image] .note")
    ActionChains(driver).move_to_element(name).perform()
    shown = driver.find_element("css selector", "[data-figure=pulls_by_image] .tip").text
    assert shown in IMAGES


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_axes_have_their_0_and_100_percent(driver: Chrome, example: Path, width: int) -> None:
    browser.show_report(driver, example, width, 900, "light")
    labels = driver.execute_script(LABELS)
    assert {"0 %", "100 %"} <= set(labels["pulls_by_image"]["x"])
    assert labels["failures"]["x"][0] == "0"


def test_tables_are_sorted_by_click_and_by_key(driver: Chrome, example: Path) -> None:
    browser.show_report(driver, example, DESK, 900, "light")
    table = driver.find_element("css selector", "#starts-by-image details")
    driver.execute_script("arguments[0].open = true", table)

    def cells(place: int) -> list[str]:
        return [
            row.find_elements("tag name", "td")[place].text for row in table.find_elements("css selector", "tbody tr")
        ]

    def seconds(text: str) -> float:
        units = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
        words = text.split()
        return sum(float(number) * units[unit] for number, unit in zip(words[::2], words[1::2], strict=True))

    headings = table.find_elements("css selector", "th")
    place = [heading.text for heading in headings].index("mean")
    before = [seconds(text) for text in cells(place)]
    assert len(set(before)) > 2
    headings[place].find_element("tag name", "button").click()
    assert headings[place].get_attribute("aria-sort") == "descending"
    assert [seconds(text) for text in cells(place)] == sorted(before, reverse=True)
    # Enter, on what has the focus.
    driver.switch_to.active_element.send_keys("\n")
    assert headings[place].get_attribute("aria-sort") == "ascending"
    assert [seconds(text) for text in cells(place)] == sorted(before)
    names = cells(0)
    headings[0].find_element("tag name", "button").click()
    assert [heading.get_attribute("aria-sort") for heading in headings].count("ascending") == 1
    assert cells(0)[0] == min(names)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440, "A4"])
def test_axe_has_no_serious_finding(driver: Chrome, example: Path, width: int | str, scheme: str) -> None:
    browser.show_report(driver, example, 700 if width == "A4" else int(width), 900, scheme)
    if width == "A4":
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        driver.execute_script("dispatchEvent(new Event('beforeprint'))")
    driver.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    try:
        assert axe.serious_findings(driver) == []
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_rows_of_a_long_table_come_when_it_is_opened(driver: Chrome, example: Path) -> None:
    browser.show_report(driver, example, DESK, 900, "light")
    rows = "return document.querySelectorAll('#occupancy tbody tr').length"
    assert driver.execute_script(rows) == 12
    driver.find_element("css selector", "#occupancy summary").click()
    assert driver.execute_script(rows) == 12 + 145
    assert driver.execute_script("return document.querySelectorAll('*').length") < 2500


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_what_is_below_them(driver: Chrome, example: Path, scheme: str) -> None:
    browser.show_report(driver, example, DESK, 900, scheme)
    contrasts = driver.execute_script(seen.CONTRASTS)
    assert len(contrasts) > 100
    assert [one for one in contrasts if one[1] < 4.5] == []


def test_colours_follow_the_readers_scheme_while_the_page_is_open(driver: Chrome, example: Path) -> None:
    colour = "return getComputedStyle(document.querySelector('.plot svg .marks path')).fill"
    browser.show_report(driver, example, DESK, 900, "light")
    light = driver.execute_script(colour)
    browser.set_scheme(driver, "dark")
    browser.wait_drawn(driver, "dark")
    assert driver.execute_script(colour) != light
    assert browser.console(driver) == []
