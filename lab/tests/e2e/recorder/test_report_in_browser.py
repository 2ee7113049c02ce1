"""The report as people see it: opened in headless Chromium, at a phone's and a desk's width, light
and dark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.tests.moments import BEGIN, HOUR, MINUTE, SECOND
from lab.tests.recorded import (
    bind_record,
    empty_store,
    fail_record,
    phase_record,
    pod_record,
    pull_record,
    story_records,
)
from roost_lab.recorder.store.records import Phase
from roost_lab.report.gather import gather
from roost_lab.report.page import make_page
from tests.harness.waiting import wait_until

browser = pytest.importorskip("tests.harness.browser", reason="no Selenium: make setup installs it")
shots = pytest.importorskip("tools.take_screenshots")
seen = pytest.importorskip("lab.tests.e2e.seen_in_browser")
axe = pytest.importorskip("tests.harness.axe")

if TYPE_CHECKING:
    from pathlib import Path

    from selenium.webdriver import Chrome

    from roost_lab.recorder.store.records import Record

PHONE, DESK = 360, 1280
SIZES = [(PHONE, "light"), (PHONE, "dark"), (DESK, "light"), (DESK, "dark")]


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    page: Path = shots.example_page(tmp_path_factory.mktemp("example"))
    return page


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Long names, names that look like HTML, huge and tiny numbers."""
    folder = tmp_path_factory.mktemp("odd")
    attack = (
        "<img src=x onerror=\"window.attacked = 'yes'\"><script>window.attacked = 'yes'</script>"
    )
    records: list[Record] = list(story_records(attack))
    for number in range(14):
        uid, long = (
            f"p{number}",
            f"registry.example.org/{'very-' * 20}long-{number}/{'name-' * 12}{number}:{'9' * 40}",
        )
        created_us = BEGIN + number * MINUTE
        took_us = 10 ** min(number, 11)
        records += [
            pod_record(
                uid, image=long, created_us=created_us, scheduler=f"{'scheduler-' * 6}{number}"
            ),
            bind_record(uid, created_us + took_us, f"{'node-' * 30}{number}", "agrees"),
            phase_record(uid, Phase.STARTED, created_us + took_us + SECOND),
            phase_record(uid, Phase.READY, created_us + took_us + 2 * SECOND),
            fail_record(
                uid,
                1,
                {f"{'a reason without an end ' * 9}{number}": number, "x" * 150: 10**9},
                tries=10**7,
            ),
            pull_record(
                *(uid, created_us, long, number * 3600 if number % 3 else None),
                node_name=f"{'node-' * 30}{number}",
                image_bytes=number << 40,
            ),
        ]
    store = empty_store(folder)
    store.write(records, {})
    page = folder / "report.html"
    page.write_text(make_page(gather(store, BEGIN, BEGIN + 3 * HOUR), attack), encoding="utf-8")
    return page


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_nothing_overlaps_leaves_the_page_or_is_missing(
    driver: Chrome, example: Path, width: int, scheme: str
) -> None:
    seen.check(driver, example, width, scheme, plots=6)


@pytest.mark.parametrize(("width", "scheme"), [(PHONE, "light"), (DESK, "dark")])
def test_long_and_odd_names_fit_and_are_only_text(
    driver: Chrome, odd: Path, width: int, scheme: str
) -> None:
    seen.check(driver, odd, width, scheme, plots=6)
    assert driver.execute_script("return [window.attacked, document.images.length]") == [None, 0]


@pytest.mark.parametrize("css", seen.FONTS.values(), ids=seen.FONTS)
def test_everything_fits_a_phone_in_whatever_font(
    driver: Chrome, example: Path, odd: Path, css: str
) -> None:
    with seen.in_font(driver, css):
        for page in (example, odd):
            seen.check(driver, page, PHONE, "light", plots=6)


@pytest.mark.parametrize(("width", "scheme"), [(PHONE, "dark"), (DESK, "light")])
def test_on_paper_plots_are_whole_and_light(
    driver: Chrome, example: Path, odd: Path, width: int, scheme: str
) -> None:
    for page in (example, odd):
        seen.check_paper(driver, page, width, scheme)


def test_tables_are_sorted_by_click_and_by_key(driver: Chrome, example: Path) -> None:
    browser.show_report(driver, example, DESK, "light")
    table = driver.find_element("css selector", "#starts-by-image details")
    driver.execute_script("arguments[0].open = true", table)

    def cells(place: int) -> list[str]:
        return [
            row.find_elements("tag name", "td")[place].text
            for row in table.find_elements("css selector", "tbody tr")
        ]

    def seconds(text: str) -> float:
        units = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
        words = text.split()
        return sum(
            float(number) * units[unit]
            for number, unit in zip(words[::2], words[1::2], strict=True)
        )

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
def test_axe_has_no_serious_finding(
    driver: Chrome, example: Path, width: int | str, scheme: str
) -> None:
    browser.show_report(driver, example, 700 if width == "A4" else int(width), scheme)
    if width == "A4":
        browser.set_scheme(driver, scheme, media="print")
        driver.execute_script("dispatchEvent(new Event('beforeprint'))")
    driver.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    try:
        assert axe.serious_findings(driver) == []
        # Paper isn't touched.
        if width != "A4":
            assert seen.run_script(driver, "small_targets") == []
    finally:
        browser.set_scheme(driver, scheme)


def test_rows_of_a_long_table_come_when_it_is_opened(driver: Chrome, example: Path) -> None:
    browser.show_report(driver, example, DESK, "light")

    def rows() -> int:
        return int(
            driver.execute_script("return document.querySelectorAll('#occupancy tbody tr').length")
        )

    assert rows() == 12
    driver.find_element("css selector", "#occupancy summary").click()
    # The browser tells of the opened table once it is idle.
    wait_until(lambda: rows() > 12, 10, "the table's rows")
    assert rows() == 12 + 145
    assert driver.execute_script("return document.querySelectorAll('*').length") < 2500
