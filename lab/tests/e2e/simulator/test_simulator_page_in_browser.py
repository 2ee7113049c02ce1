"""A sweep's page as people see it: opened in headless Chromium, at a phone's and a desk's width,
light and dark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.tests.simulated import SCALES, result
from roost_lab.simulator.reporting.context import ReportContext
from roost_lab.simulator.reporting.page import make_page
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.sweep.summary import WorldSetting, summarise
from roost_lab.simulator.sweep.survey import Survey

browser = pytest.importorskip("tests.harness.browser", reason="no Selenium: make setup installs it")
seen = pytest.importorskip("lab.tests.e2e.seen_in_browser")
axe = pytest.importorskip("tests.harness.axe")

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from selenium.webdriver import Chrome

PHONE, DESK = 360, 1280


WORLDS = [
    WorldSetting({}, Assumptions()),
    WorldSetting({"sessions": "short"}, Assumptions(sessions="short")),
    WorldSetting({"sessions": "long"}, Assumptions(sessions="long")),
    WorldSetting({"pushes_per_day": 0.1}, Assumptions(pushes_per_day=0.1)),
]


def make(folder: Path, scales: Mapping[str, float]) -> Path:
    results = [
        result(name, seed, scale=scale * (1 + place / 5), setting=world.setting, launches=300)
        for place, world in enumerate(WORLDS)
        for seed in (1, 2)
        for name, scale in scales.items()
    ]
    survey = Survey(attempts=700, images=30, repositories=20)
    survey.counts.lines, survey.counts.used = 720, 700
    survey.counts.skip("no launch: another schema", "launches.jsonl", 17, 20)
    about = dict.fromkeys(scales, "A policy that is made up.")
    page = folder / "page.html"
    page.write_text(
        make_page(
            summarise(results, WORLDS), ReportContext(about, "launches.jsonl.gz", survey, "0.1")
        )
    )
    return page


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("example"), SCALES)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As many policies as are shipped, with names that are long and look like HTML, and numbers
    huge and tiny.
    """
    attack = (
        "<img src=x onerror=\"window.attacked = 'yes'\"><script>window.attacked = 'yes'</script>"
    )
    names = [attack, *(f"{'very-' * 12}long-{number}" for number in range(8)), *map(str, range(5))]
    scales = {name: 0.01 + number**2 / 3 for number, name in enumerate(names)}
    return make(tmp_path_factory.mktemp("many"), scales)


@pytest.mark.parametrize(
    ("width", "scheme"), [(PHONE, "light"), (PHONE, "dark"), (DESK, "light"), (DESK, "dark")]
)
def test_nothing_overlaps_leaves_the_page_or_is_missing(
    driver: Chrome, example: Path, width: int, scheme: str
) -> None:
    seen.check(driver, example, width, scheme, plots=5)
    driver.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    for media in ("", "print"):
        browser.set_scheme(driver, scheme, media)
        assert axe.serious_findings(driver) == [], media


@pytest.mark.parametrize(("width", "scheme"), [(PHONE, "light"), (DESK, "dark")])
def test_long_and_odd_names_fit_and_are_only_text(
    driver: Chrome, many: Path, width: int, scheme: str
) -> None:
    seen.check(driver, many, width, scheme, plots=5)
    assert driver.execute_script("return [window.attacked, document.images.length]") == [None, 0]
