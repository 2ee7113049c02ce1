"""What is told of a sweep: figures over seeds with bounds, as text, tables, JSON and a page."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.tests.simulated import SCALES, result
from lab.tests.told import cases
from roost_lab.pages.phrases import show_seconds
from roost_lab.pages.table import Unit
from roost_lab.simulator.engine.results import RunResult
from roost_lab.simulator.reporting.amounts import show_amount
from roost_lab.simulator.reporting.context import ReportContext
from roost_lab.simulator.reporting.formats import to_json
from roost_lab.simulator.reporting.page import make_page, parts
from roost_lab.simulator.reporting.terminal import BOUND_MARK, bar, to_text
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.sweep.summary import Summary, WorldSetting, summarise
from roost_lab.simulator.sweep.survey import Survey

WORLDS = [
    WorldSetting({}, Assumptions()),
    WorldSetting({"sessions": "short"}, Assumptions(sessions="short")),
    WorldSetting({"sessions": "long"}, Assumptions(sessions="long")),
]
SESSIONS = {"short": 0.9, "mid": 1.0, "long": 1.3}


def summary(seeds: int = 3, worlds: int = 3) -> Summary:
    return summarise(
        [
            result(
                name,
                seed,
                scale=scale * SESSIONS[world.assumptions.sessions],
                setting=world.setting,
                launches=400,
            )
            for seed in range(1, seeds + 1)
            for world in WORLDS[:worlds]
            for name, scale in SCALES.items()
        ],
        WORLDS[:worlds],
    )


def told(found: Survey | None = None) -> ReportContext:
    return ReportContext(
        {name: f"what {name} is" for name in SCALES}, "launches.jsonl.gz", found or Survey(), "0.1"
    )


def test_a_figure_is_the_median_and_range_over_seeds_beside_its_bound() -> None:
    one = summary(worlds=1)
    value = one.value("cold", "z2jh")
    assert value is not None
    colds = [run.cold for run in one.runs[0, "z2jh"]]
    assert value.by_seed == tuple(colds)
    assert (value.least, value.median, value.greatest) == tuple(sorted(colds))
    assert value.bound == pytest.approx(400 * 0.03)


def test_disks_that_would_have_been_too_small_are_told() -> None:
    runs = [result("a"), result("b")]
    runs[1].greatest_disk_bytes = 2 * 10**12
    one = summarise(runs, WORLDS[:1])
    text = " ".join(to_text(one, told(), 120).split())
    assert (
        "Disks too small (as usual): the images of one node took 1863 GiB of 931 GiB under b."
        in text
    )
    assert "Disks too small" in make_page(one, told())
    assert any(
        notice.startswith("Disks too small")
        for notice in json.loads(to_json(one, told()))["notices"]
    )
    runs[1].greatest_disk_bytes = 10**12
    assert "Disks too small" not in to_text(summarise(runs, WORLDS[:1]), told(), 120)


def test_policies_are_compared_seed_by_seed() -> None:
    one = summary(worlds=1)
    change = one.change("cold", "roost")
    assert change is not None
    pairs = zip(one.runs[0, "z2jh"], one.runs[0, "roost"], strict=True)
    shares = sorted(other.cold / first.cold - 1 for first, other in pairs)
    assert (change.least, change.median, change.greatest) == tuple(shares)
    assert one.change("moves", "roost") is None


def test_worlds_are_told_by_what_was_varied_in_the_order_asked() -> None:
    assert summary().varied() == {"sessions": [0, 1, 2]}
    many = [
        WorldSetting({}, Assumptions()),
        *(WorldSetting({"pushes_per_day": x}, Assumptions(pushes_per_day=x)) for x in (0.1, 0.02)),
    ]
    runs = [result(setting=world.setting) for world in many]
    assert summarise(runs, many).varied() == {"pushes_per_day": [0, 1, 2]}


@pytest.mark.parametrize(("amount", "unit", "text"), cases("simulator", "amounts"))
def test_amounts_are_short(amount: float, unit: Unit, text: str) -> None:
    assert show_amount(amount, unit) == text


@given(st.floats(0, 1e6))
def test_spans_never_have_sixty_of_anything(seconds: float) -> None:
    assert not re.search(r"\b60(\.0)? (s|min)|1000 ms", show_seconds(seconds))


@given(st.floats(0, 1e6), st.floats(1e-3, 1e6), st.none() | st.floats(0, 1e6))
def test_bars_have_one_width_and_at_most_one_mark(
    value: float, highest: float, bound: float | None
) -> None:
    drawn = bar(min(value, highest), highest, bound)
    assert len(drawn) == 24
    assert drawn.count(BOUND_MARK) == (bound is not None and 0 < bound <= highest)


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_text_has_every_policy_and_figure_and_fits(width: int) -> None:
    text = to_text(summary(), told(), width)
    assert all(len(line) <= width for line in text.splitlines())
    for word in (
        *SCALES,
        "cold starts",
        "node-hours",
        "wait, p95",
        "bound",
        "sessions",
        "launches.jsonl.gz",
    ):
        assert word in text
    assert "\x1b" not in text


def test_names_are_no_markup() -> None:
    one = summarise([result("[red]x[/red]")], WORLDS[:1])
    text = to_text(one, ReportContext({}, "[bold]t", Survey(), ""), 120)
    blocks = sum(measure.is_headline for measure in one.occurring())
    assert text.count("[red]x[/red]") == blocks + 1
    assert text.startswith("[bold]t")


def test_json_has_each_figure_with_seeds_range_and_bound() -> None:
    document = json.loads(to_json(summary(), told(Survey(attempts=3))))
    assert (document["schema"], document["seeds"]) == (
        "roost.hub.jupyter.org/simulation",
        [1, 2, 3],
    )
    assert [world["setting"] for world in document["worlds"]] == [
        {},
        {"sessions": "short"},
        {"sessions": "long"},
    ]
    for world in document["worlds"]:
        for policy in SCALES:
            cold = world["policies"][policy]["cold"]
            assert len(cold["by_seed"]) == 3
            assert cold["least"] <= cold["median"] <= cold["greatest"]
            assert cold["bound"] > 0
    assert document["worlds"][0]["policies"]["z2jh"]["cold"]["change"]["median"] == 0
    assert len(document["tables"]["assumptions"]) == len(Assumptions.__slots__)
    assert all(row["about"] for row in document["tables"]["assumptions"])


def test_tables_have_a_cell_a_column() -> None:
    for table in (
        table for part in parts(summary(), told(Survey(attempts=3))) for table in part.tables
    ):
        assert table.rows, table.name
        assert {len(row) for row in table.rows} <= {len(table.columns)}, table.name


def test_the_page_asks_no_network_and_escapes_names() -> None:
    attack = "<script>alert(1)</script>"
    one = summarise([result(attack)], WORLDS[:1])
    page = make_page(one, ReportContext({attack: attack}, attack, Survey(), "0.1"))
    assert attack not in page
    assert "default-src &#39;none&#39;" in page
    assert not re.search(
        r'(?:src|href)="(?!#|data:)', page.partition('<script type="application/json"')[0]
    )


@pytest.mark.parametrize(("policies", "begins"), cases("simulator", "leads"))
def test_the_page_begins_with_what_users_get_and_for_what(policies: list[str], begins: str) -> None:
    scales = {"z2jh": 1.0, "roost": 0.5, "a": 0.7}
    page = make_page(
        summarise(
            [result(name, scale=scales[name], launches=400) for name in policies], WORLDS[:1]
        ),
        told(),
    )
    lead = page.partition('<p class="lead">')[2].partition("</p>")[0]
    assert lead.startswith(begins), lead


def test_figures_have_captions_for_people_or_else_their_measures_titles() -> None:
    side_by_side = parts(summary(), told())[0]
    assert [figure.caption for figure in side_by_side.figures if figure is not None] == [
        "Starts that download an image",
        "95 of 100 people wait at most",
        "99 of 100 people wait at most",
        "Node-hours",
        "Starts that found no room",
    ]


def test_a_replay_without_any_launch_is_a_page_too() -> None:
    one = summarise([RunResult(policy="a", seed=1)], WORLDS[:1])
    assert "No server started in this replay." in make_page(one, told())
    assert to_text(one, told(), 80)
    assert json.loads(to_json(one, told()))["worlds"][0]["policies"]["a"]["cold"]["median"] == 0
