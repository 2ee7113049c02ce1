"""The page of `roost view` in Chromium: what is drawn, goes back in time, follows the record, and
works by keys.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.view_record import records
from lab.tests.e2e import seen_in_browser
from lab.tests.moments import BEGIN, HOUR
from lab.tests.recorded import bind_record, empty_store, phase_record, pod_record
from lab.tests.served_view import served_view
from roost_lab.recorder.store.records import NodeRecord, Phase
from roost_lab.report.statistics import Span
from roost_lab.units import MINUTE_US, US
from roost_lab.view.reading import RecordSource
from roost_lab.view.shareable import make_file
from tests.harness.axe import serious_findings
from tools.demo_replay import write_page

browser = pytest.importorskip("tests.harness.browser", reason="no Selenium: make setup installs it")
Keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
ActionChains = pytest.importorskip("selenium.webdriver.common.action_chains").ActionChains
WebDriverWait = pytest.importorskip("selenium.webdriver.support.wait").WebDriverWait

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver import Chrome

    from roost_lab.recorder.store.database import Store
    from roost_lab.recorder.store.records import Record


PHONE, DESK = 390, 1280
NODES, PODS = 12, 260
ATTACK = "<img src=x onerror=\"window.attacked = 'yes'\">"
PODS_OF_FIRST = "return document.querySelectorAll('#nodes > li:first-child .pod').length"


class Served:
    """A page that is served, and the database behind it."""

    def __init__(self, store: Store, end_us: int, address: str) -> None:
        self.store, self.end_us, self.address = store, end_us, address


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Served]:
    end_us = time.time_ns() // 1000
    store = empty_store(tmp_path)
    odd: list[Record] = [
        NodeRecord(
            uid=f"uid-{ATTACK}",
            name=ATTACK,
            created_us=end_us - 2 * MINUTE_US,
            is_ready=True,
            labels="{}",
        ),
        pod_record(
            "odd-pod",
            name=ATTACK * 9,
            namespace=ATTACK,
            image=ATTACK,
            created_us=end_us - MINUTE_US,
        ),
        bind_record("odd-pod", end_us - MINUTE_US + US, ATTACK),
    ]
    store.write([*records(end_us, NODES, PODS), *odd], {"pods": ("1", end_us)})
    with served_view([RecordSource(store, now_us=lambda: end_us)]) as address:
        yield Served(store, end_us, address)


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Served]:
    """Two records: the second has fewer nodes, and ends five minutes earlier; then the first gets
    another node.
    """
    end_us = time.time_ns() // 1000 - HOUR
    stores = []
    for name, nodes, ended_us in (("first", NODES, end_us), ("second", 5, end_us - 5 * MINUTE_US)):
        (tmp_path / name).mkdir()
        stores.append(empty_store(tmp_path / name))
        stores[-1].write(records(ended_us, nodes, 100), {"pods": ("1", ended_us)})
    late = NodeRecord(
        uid="late", name="late", created_us=end_us - 2 * MINUTE_US, is_ready=True, labels="{}"
    )
    stores[0].write([late], {"pods": ("1", end_us)})
    with served_view([*map(RecordSource, stores)], ["first", "second"]) as address:
        yield Served(stores[0], end_us, address)


def show(driver: Chrome, address: str, width: int = DESK) -> None:
    browser.set_size(driver, width, 900)
    driver.get("about:blank")
    browser.console(driver)
    driver.get(address)
    wait(driver, "document.documentElement.dataset.shown")


def wait(driver: Chrome, condition: str) -> Any:
    return WebDriverWait(driver, 60).until(lambda one: one.execute_script(f"return {condition}"))


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_everything_is_drawn_fits_and_is_only_text(
    driver: Chrome, page: Served, width: int
) -> None:
    show(driver, page.address, width)
    assert (
        driver.execute_script("return document.querySelectorAll('#nodes .node').length")
        == NODES + 1
    )
    assert (
        driver.execute_script("return document.querySelectorAll('#nodes .pod').length") == PODS + 1
    )
    assert driver.execute_script("return document.querySelectorAll('#pending li').length") == 10
    assert driver.execute_script("return document.documentElement.scrollWidth") == width
    driver.find_element("id", "changes-title").click()
    pod = driver.find_element("css selector", "#nodes li:last-child .pod")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", pod)
    pod.click()
    wait(driver, "document.getElementById('why-text').textContent.includes('Where it went')")
    assert driver.execute_script("return document.documentElement.scrollWidth") == width
    assert driver.execute_script("return [window.attacked, document.images.length]") == [None, 0]
    assert browser.console(driver) == []


def test_the_address_names_a_time_and_the_page_goes_on_from_there(
    driver: Chrome, page: Served
) -> None:
    then = time.strftime(
        "%Y-%m-%dT%H:%M:%SZ", time.gmtime((page.end_us - 5 * MINUTE_US - 30 * US) // US)
    )
    show(driver, f"{page.address}#at={then.replace('Z', '+00:00')}")
    assert driver.find_element("id", "when").text == then.replace("T", " ").replace("Z", " UTC")
    # The ten that wait weren't there, and neither was the last node.
    assert driver.execute_script("return document.querySelectorAll('#nodes .node').length") == NODES
    assert not driver.find_element("id", "pending-section").is_displayed()
    assert driver.find_element("id", "live").get_attribute("aria-pressed") == "false"
    for _ in range(5):
        shown = driver.execute_script("return document.documentElement.dataset.shown")
        driver.find_element("id", "forth").click()
        wait(driver, f"document.documentElement.dataset.shown !== '{shown}'")
    wait(driver, "document.querySelectorAll('#nodes .node').length === 13")
    driver.find_element("id", "slider").send_keys(Keys.HOME)
    wait(driver, "!document.querySelector('#nodes .pod')")
    wait(driver, "location.hash.startsWith('#at=')")
    driver.find_element("id", "live").click()
    wait(driver, "document.querySelectorAll('#pending li').length === 10")
    assert "#" not in driver.current_url
    assert browser.console(driver) == []


def test_what_is_recorded_appears_by_itself_and_focus_stays(driver: Chrome, page: Served) -> None:
    show(driver, page.address)
    before = driver.execute_script(PODS_OF_FIRST)
    first = driver.execute_script("return document.querySelector('#nodes .pod')")
    uid = first.get_attribute("data-uid")
    driver.execute_script("arguments[0].focus()", first)
    name = driver.execute_script("return document.querySelector('#nodes h3 span').title")
    new: list[Record] = [
        pod_record("new", created_us=page.end_us - US),
        replace(bind_record("new", page.end_us - US, name), node_uid="uid-0"),
    ]
    page.store.write(new, {"pods": ("2", page.end_us)})
    wait(
        driver, f"document.querySelectorAll('#nodes > li:first-child .pod').length === {before + 1}"
    )
    assert driver.execute_script(
        "return document.querySelector('#nodes [data-uid=new]').className"
    ).split() == [*("pod", "user", "pulling", "fresh")]
    assert driver.execute_script("return document.activeElement.dataset.uid") == uid


def test_keys_reach_every_pod_and_its_why(driver: Chrome, page: Served) -> None:
    show(driver, page.address)
    driver.find_element("id", "changes-title").click()

    def focused() -> str:
        return str(driver.execute_script("return document.activeElement.dataset.uid ?? ''"))

    uids = driver.execute_script(
        "return [...document.querySelectorAll('#nodes > li')].map((node) => "
        "[...node.querySelectorAll('.pod')].map((pod) => pod.dataset.uid))"
    )
    driver.execute_script("document.querySelector('#nodes .pod').focus()")
    for key, target in (
        (Keys.ARROW_RIGHT, uids[0][1]),
        (Keys.END, uids[0][-1]),
        (Keys.ARROW_RIGHT, uids[0][-1]),
        (Keys.HOME, uids[0][0]),
        (Keys.TAB, uids[1][0]),
    ):
        driver.switch_to.active_element.send_keys(key)
        assert focused() == target
    driver.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    tops = driver.execute_script(
        "return [...document.querySelectorAll('#nodes > li:nth-child(2) .pod')].map((pod) =>"
        " pod.offsetTop)"
    )
    assert tops[uids[1].index(focused())] > tops[0]
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    wait(driver, "document.getElementById('why-text').textContent.includes('Where it went')")
    driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    wait(driver, "!document.getElementById('why').open")
    assert focused() in uids[1]


def test_placements_and_pre_emptions_have_arrows_that_differ_without_colour_and_only_so_many(
    driver: Chrome, page: Served
) -> None:
    show(driver, page.address)
    # The made-up minute: the pod of the second node was placed there, and a placeholder of that
    # node went for it.
    wait(driver, "document.querySelectorAll('#arrows line.placed').length >= 2")
    ends = seen_in_browser.run_script(driver, "arrows")
    by_kind = {end["kind"]: end for end in ends}
    assert set(by_kind) == {"placed", "pre-empted"}
    assert all(end["fresh"] for end in ends if end["kind"] == "placed")
    victim = by_kind["pre-empted"]
    assert victim["by"]
    assert victim["to"] >= 0
    looks = {(end["kind"], end["dash"], end["head"]) for end in ends}
    assert (
        len(looks)
        == len({dash for _, dash, _ in looks})
        == len({head for _, _, head in looks})
        == 2
    )
    assert len({end["colour"] for end in ends}) == 1
    # No arrow's end hides a letter of an image or a node's age.
    covered = driver.execute_script(
        """const ends = [...document.querySelectorAll("#arrows line")].flatMap((line) => [1, 2].map(
          (end) => ["x", "y"].map((axis) => Number(line.getAttribute(`${axis}${end}`)))));
        const board = document.getElementById("board").getBoundingClientRect();
        const texts = [...document.querySelectorAll(".node h3 > *, .chips > *, .node p")];
        return texts.filter((text) => {
          const box = text.getBoundingClientRect();
          return ends.some(([x, y]) => x + board.left > box.left && x + board.left < box.right
            && y + board.top > box.top && y + board.top < box.bottom);
        }).map((text) => text.textContent)"""
    )
    assert covered == []
    # Many more: only the newest have arrows, and the others are counted.
    names = driver.execute_script(
        "return [...document.querySelectorAll('#nodes h3 span:first-child')].map((one) =>"
        " one.title)"
    )
    crowd: list[Record] = []
    for number in range(120):
        at_us = page.end_us - number * US // 4
        crowd.append(pod_record(f"crowd-{number}", created_us=at_us))
        crowd.append(replace(bind_record(f"crowd-{number}", at_us, names[2]), node_uid="uid-2"))
    page.store.write(crowd, {"pods": ("3", page.end_us)})
    wait(driver, "document.querySelectorAll('#nodes [data-uid=crowd-119]').length === 1")
    assert driver.execute_script("return document.querySelectorAll('#arrows line').length") == 40
    all_of_them = len(crowd) // 2 + len(ends)
    assert (
        driver.find_element("id", "arrows-note").text
        == f"Arrows show 40 of {all_of_them} changes: the newest, of pods that are still there."
    )
    driver.find_element("id", "changes-title").click()
    assert (
        driver.find_element("css selector", "#changes li:last-child").text
        == f"and {all_of_them - 100} before these"
    )
    assert browser.console(driver) == []


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_two_records_are_shown_at_the_same_time_beside_each_other_or_stacked(
    driver: Chrome, two: Served, width: int
) -> None:
    show(driver, two.address, width)
    names = driver.execute_script(
        "return [...document.querySelectorAll('.side > h2:first-child')].map((one) =>"
        " one.innerText)"
    )
    assert names == ["first", "second"]
    counts = "return [...document.querySelectorAll('.nodes')].map((one) => one.children.length)"
    assert driver.execute_script(counts) == [NODES, 5]
    first, second = driver.execute_script(
        "return [...document.querySelectorAll('.side')].map((one) =>"
        " one.getBoundingClientRect().toJSON())"
    )
    assert (
        (first["bottom"] <= second["top"]) if width == PHONE else (first["right"] <= second["left"])
    )
    assert driver.execute_script("return document.documentElement.scrollWidth") == width
    assert not driver.find_element("id", "live").is_displayed()
    # It begins with the minute in which their users' waits differ most: ten users of one wait at
    # its end.
    assert (
        utc(two.end_us - 7 * MINUTE_US)
        < driver.find_element("id", "when").text
        <= utc(two.end_us - 5 * MINUTE_US)
    )
    # At the slider's end, one of them has ended before.
    driver.find_element("id", "slider").send_keys(Keys.END)
    ends = f"The record ends {utc(two.end_us - 5 * MINUTE_US)}; this is its last state. 5 nodes: "
    wait(driver, f"document.getElementById('counts-2').innerText.startsWith('{ends}')")
    assert driver.execute_script(counts) == [NODES + 1, 5]
    assert driver.find_element("id", "counts").text.startswith(f"{NODES + 1} nodes: ")
    # An address without a time is again the last moment of both.
    driver.execute_script("location.hash = ''")
    wait(
        driver, f"document.getElementById('when').innerText === '{utc(two.end_us - 5 * MINUTE_US)}'"
    )
    assert driver.execute_script(counts) == [NODES, 5]
    assert driver.find_element("id", "counts-2").text.startswith("5 nodes: ")
    # A pod's why is of its own record.
    pod = driver.find_element("css selector", "#nodes-2 .pod")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", pod)
    pod.click()
    wait(driver, "document.getElementById('why-text').textContent.includes('Where it went')")
    assert "api/why?record=1&" in str(
        driver.execute_script(
            "return performance.getEntriesByType('resource').map((one) => one.name).join(' ')"
        )
    )
    assert driver.execute_script(
        "return document.querySelectorAll('[id]').length"
    ) == driver.execute_script(
        "return new Set([...document.querySelectorAll('[id]')].map((one) => one.id)).size"
    )
    assert browser.console(driver) == []


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Store]:
    """One launch that is slow in the first of two records, among ten quick ones; the pods have
    other uids there.
    """
    stores = []
    for number, wait_us in enumerate((4 * MINUTE_US, US)):
        stores.append(empty_store(tmp_path_factory.mktemp("replayed")))
        found: list[Record] = [
            NodeRecord(uid="n", name="n", created_us=BEGIN, is_ready=True, labels="{}")
        ]
        for launch in range(11):
            uid, created_us = f"{number}-{launch}", BEGIN + launch * 5 * MINUTE_US
            found += [pod_record(uid, name=f"user-{launch}", created_us=created_us, image="i")]
            found += [replace(bind_record(uid, created_us, "n"), node_uid="n")]
            found += [
                phase_record(uid, Phase.STARTED, created_us + (wait_us if launch == 5 else US))
            ]
        stores[-1].write(found, {"pods": ("1", BEGIN + HOUR)})
    return stores[0], stores[1]


def check_replay(driver: Chrome) -> None:
    """A heading and one sentence, three figures, a lane for each record, the worst minute, and the
    slow launch under its name in both.
    """
    sentence = (
        "With Roost, none of 11 starts takes longer than 30 s instead of 1, for as many node-hours."
    )
    lines = driver.execute_script("return document.body.innerText").strip().splitlines()
    assert lines[0].startswith("z2jh → roost 20")
    assert next(filter(None, lines[1:])).replace("\N{NO-BREAK SPACE}", " ") == sentence
    figures = driver.find_elements("css selector", "#figures dd")
    assert [figure.text.splitlines() for figure in figures] == [
        ["1 → 0", "of 11 starts"],
        ["4 min → 1 s", "until containers ran"],
        ["1.0 → 1.0", "of all nodes"],
    ]
    wait(driver, "document.querySelectorAll('#timeline .lane path.waits').length === 2")
    assert driver.execute_script("return location.hash") == ""
    assert driver.find_element("id", "when").text == utc(BEGIN + 26 * MINUTE_US + 30 * US)
    assert [driver.find_element("id", name).text for name in ("now", "now-2")] == [
        "1 of 6 users waits: 1 for their containers.",
        "None of 6 users waits.",
    ]
    assert [driver.find_element("id", name).text for name in ("score", "score-2")] == [
        f"So far: 6 starts, none with a download; people waited {waited} in all; 0.5 node-hours."
        for waited in ("2 min 5 s", "6 s")
    ]
    driver.find_element("id", "slow").click()
    wait(driver, f"document.getElementById('when').innerText === '{utc(BEGIN + 27 * MINUTE_US)}'")
    wait(driver, "document.querySelectorAll('.pod.picked').length === 2")
    assert (
        driver.find_element("id", "status").text
        == "hub/user-5 waits 4 min with z2jh, waits less than 30 s with roost."
    )
    assert driver.execute_script(
        "return [...document.querySelectorAll('.pod.picked')].map((one) => one.dataset.uid)"
    ) == ["0-5", "1-5"]
    # No letters in the boxes: forms and colours tell classes apart, and one legend says how.
    assert (
        driver.execute_script(
            "return [...document.querySelectorAll('.pod')].some((one) => one.innerText)"
        )
        is False
    )
    legend = driver.find_element("id", "legend").text
    assert legend.count("downloads its image") == 1
    assert "users kept off: still downloading" in legend
    assert "not reported" in legend
    driver.find_element("css selector", "#nodes .pod.picked").click()
    wait(driver, "document.getElementById('why-text').textContent.includes('Where it went')")
    driver.switch_to.active_element.send_keys(Keys.ESCAPE)


def test_a_replay_begins_with_its_sentence_at_the_worst_minute(
    driver: Chrome, replayed: tuple[Store, Store]
) -> None:
    with served_view([*map(RecordSource, replayed)], ["z2jh", "roost"]) as address:
        show(driver, address)
        check_replay(driver)
        # All controls are in one row.
        middles = driver.execute_script(
            "return [...document.querySelectorAll('#time button:not([hidden]), #time select')]"
            ".map((one) => one.getBoundingClientRect()).map((box) => (box.top + box.bottom) / 2)"
        )
        assert max(middles) - min(middles) < 2
        # The thumb stands where the lanes below show the same moment.
        slider, lane = (
            driver.find_element("css selector", one) for one in ("#slider", ".lane svg")
        )
        away = round(0.4 * lane.rect["width"])
        ActionChains(driver).move_to_element_with_offset(slider, away, 0).click().perform()
        shown = driver.execute_script(
            "const one = arguments[0]; return (one.value - one.min) / (one.max - one.min)", slider
        )
        middle = slider.rect["x"] + slider.rect["width"] / 2
        assert abs(shown - (middle + away - lane.rect["x"]) / lane.rect["width"]) < 0.003
    assert browser.console(driver) == []


def test_the_shared_file_works_alone_as_the_served_page_does(
    driver: Chrome, replayed: tuple[Store, Store], tmp_path: Path
) -> None:
    sources = [*map(RecordSource, replayed)]
    page = tmp_path / "shared.html"
    page.write_text(
        make_file(sources, ["z2jh", "roost"], Span(BEGIN, BEGIN + HOUR)), encoding="utf-8"
    )
    show(driver, page.as_uri())
    seen_in_browser.requests(driver)
    check_replay(driver)
    driver.find_element("id", "back").click()
    wait(driver, f"document.getElementById('when').innerText === '{utc(BEGIN + 26 * MINUTE_US)}'")
    driver.find_element("id", "play").click()
    wait(driver, f"Number(document.documentElement.dataset.shown) > {BEGIN + 27 * MINUTE_US}")
    assert [
        url for url in seen_in_browser.requests(driver) if not url.startswith(("file:", "data:"))
    ] == []
    assert browser.console(driver) == []


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of `make demo`."""
    folder = tmp_path_factory.mktemp("demo")
    write_page(folder / "replays", folder / "replay.html")
    return folder / "replay.html"


@pytest.mark.parametrize(
    ("width", "scheme"), [(PHONE, browser.LIGHT), (PHONE, browser.DARK), (DESK, browser.LIGHT)]
)
def test_the_demo_shows_a_class_that_begins_without_roost_and_with_it(
    driver: Chrome, demo: Path, width: int, scheme: str
) -> None:
    browser.set_scheme(driver, scheme)
    show(driver, demo.as_uri(), width)
    wait(driver, "document.querySelectorAll('#timeline .lane').length === 2")
    told = [
        lane.text.splitlines() for lane in driver.find_elements("css selector", "#timeline .lane")
    ]
    assert [lines[0] for lines in told] == ["Without Roost", "With Roost"]
    without, with_roost = (next(line for line in lines if "10:00: 1" in line) for lines in told)
    assert re.search(r"people come; 1\d\d wait longer than 30 s: 1\d\d for a node", without)
    assert with_roost.endswith("people come; nobody waits longer than 30 s.")
    # The class stands in the middle of its hour, under its mark, and the axis says how many wait.
    badges = driver.find_elements("css selector", ".plot-area .badge")
    areas = driver.find_elements("css selector", ".plot-area svg")
    for badge, area in zip(badges, areas, strict=True):
        place = (badge.rect["x"] + badge.rect["width"] / 2 - area.rect["x"]) / area.rect["width"]
        assert 0.3 < place < 0.7
    ticks = driver.find_elements("css selector", ".plot-area .y:not(.unit)")
    assert max(int(tick.text) for tick in ticks) >= 50
    # No bar is higher than the highest number.
    for lane in driver.find_elements("css selector", ".plot-area"):
        bars = lane.find_element("css selector", "path.waits").rect
        numbers = [one.rect for one in lane.find_elements("css selector", ".y:not(.unit)")]
        assert bars["y"] >= min(one["y"] + one["height"] / 2 for one in numbers) - 1
    # Who has no node is drawn on the side where people wait.
    assert len(driver.find_elements("css selector", "#waiting .user")) > 50
    assert driver.find_elements("css selector", "#waiting-2 .user") == []
    assert driver.execute_script("return document.documentElement.scrollWidth") == width
    assert seen_in_browser.run_script(driver, "small_targets") == []
    assert serious_findings(driver) == []
    # The afternoon's class is one click away.
    driver.find_element("css selector", "#timeline .lane li:last-child button").click()
    wait(driver, "document.getElementById('when').innerText.includes(' 15:')")
    assert browser.console(driver) == []


@pytest.mark.parametrize("scheme", [browser.LIGHT, browser.DARK])
@pytest.mark.parametrize("width", [PHONE, 1440])
def test_axe_finds_nothing_serious(
    driver: Chrome, page: Served, replayed: tuple[Store, Store], width: int, scheme: str
) -> None:
    browser.set_scheme(driver, scheme)
    show(driver, page.address, width)
    driver.find_element("id", "changes-title").click()
    driver.find_element("css selector", "#pending-section summary").click()
    assert serious_findings(driver) == []
    assert seen_in_browser.run_script(driver, "small_targets") == []
    assert seen_in_browser.run_script(driver, "empty_headings") == []
    with served_view([*map(RecordSource, replayed)], ["z2jh", "roost"]) as address:
        show(driver, address, width)
        wait(driver, "document.querySelector('#timeline .lane')")
        assert serious_findings(driver) == []
        assert seen_in_browser.run_script(driver, "small_targets") == []
        driver.find_element("css selector", "#nodes .pod").click()
        wait(driver, "document.getElementById('why-text').textContent.includes('Where it went')")
        assert serious_findings(driver) == []
        driver.switch_to.active_element.send_keys(Keys.ESCAPE)
        driver.execute_script("document.getElementById('speed').removeAttribute('aria-label')")
        assert [finding.partition(":")[0] for finding in serious_findings(driver)] == [
            "select-name"
        ]


def test_a_record_that_begins_after_the_moment_says_so(driver: Chrome, two: Served) -> None:
    # Each begins a second before the first pod's binding.
    begins = [two.end_us - 101 * MINUTE_US - US - later for later in (0, 5 * MINUTE_US)]
    show(
        driver,
        f"{two.address}#at={utc(begins[1] + 2 * MINUTE_US).replace(' UTC', 'Z').replace(' ', 'T')}",
    )
    said = [driver.find_element("id", name).text for name in ("counts", "counts-2")]
    assert said[0].startswith(
        f"The record begins {utc(begins[0])}; of the time before, only this is known. 2 nodes: "
    )
    assert not said[1].startswith("The record")
    driver.execute_script("location.hash = '#at=2020-01-01T00:00:00Z'")
    wait(driver, "document.getElementById('when').innerText.startsWith('2020')")
    assert [driver.find_element("id", name).text for name in ("counts", "counts-2")] == [
        f"The record begins {utc(begin_us)}." for begin_us in begins
    ]
    assert browser.console(driver) == []


def test_keys_play_both_records_at_the_chosen_speed_until_their_end(
    driver: Chrome, two: Served
) -> None:
    begin_us = two.end_us - 10 * MINUTE_US
    show(driver, f"{two.address}#at={utc(begin_us).replace(' UTC', 'Z').replace(' ', 'T')}")
    shown = "Number(document.documentElement.dataset.shown)"
    began_us = driver.execute_script(f"return {shown}")
    driver.execute_script("document.getElementById('play').focus()")
    driver.switch_to.active_element.send_keys(Keys.SPACE)
    assert driver.find_element("id", "play").text == "Pause"
    wait(driver, f"{shown} > {began_us + 10 * US}")
    driver.switch_to.active_element.send_keys(Keys.SPACE)
    paused_us = driver.execute_script(f"return {shown}")
    # A minute a second: the answers of a few seconds.
    assert paused_us < began_us + 5 * MINUTE_US
    wait(driver, "location.hash.startsWith('#at=')")
    time.sleep(0.5)
    assert driver.execute_script(f"return {shown}") - paused_us < 2 * MINUTE_US
    driver.find_element("id", "speed").send_keys("1 h")
    driver.find_element("id", "play").click()
    wait(driver, "document.getElementById('play').textContent === 'Play'")
    assert driver.find_element("id", "when").text == utc(two.end_us)
    # Once more: from the slider's left end.
    driver.find_element("id", "speed").send_keys("10 s")
    driver.find_element("id", "play").click()
    wait(driver, f"{shown} < {two.end_us - 30 * MINUTE_US}")
    driver.find_element("id", "back").click()
    assert driver.find_element("id", "play").get_attribute("aria-pressed") == "false"
    assert browser.console(driver) == []


def utc(at_us: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at_us // US))
