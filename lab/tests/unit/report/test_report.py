"""A report from outside: its formats, its page, what it is about; times, titles and the time
before.
"""

import json
import re
from dataclasses import replace
from html import escape, unescape
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from lab.tests.moments import BEGIN, HOUR, MINUTE, SECOND
from lab.tests.recorded import bind_record, empty_store, fail_record, pod_record, story_records
from lab.tests.told import cases
from lab.tests.unit.report.reported import report_of, tables_of, whole_start
from roost.__main__ import main
from roost_lab.pages.drawing import Figure
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import GapRecord, NodeRecord, PullRecord, Record
from roost_lab.report.formats import to_json, to_text
from roost_lab.report.gather import gather
from roost_lab.report.key_figures import tiles
from roost_lab.report.page import make_page, title
from roost_lab.report.query import Scope, ScopeError
from roost_lab.report.sections import parts, tables
from roost_lab.report.sentence import sentence
from roost_lab.report.slow_starts import StartTimes
from roost_lab.report.subject import Report


@pytest.mark.parametrize(("arguments", "said"), cases("report", "usage"))
def test_what_can_not_be_understood_is_wrong_usage(
    arguments: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--database", str(tmp_path / "roost.db"), *arguments.split(" ")]) == 2
    assert said in capsys.readouterr().err


def test_a_database_of_something_else_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other.db"
    path.touch()
    assert main(["report", "--database", str(path)]) == 2
    assert "no recorder has written to it" in capsys.readouterr().err


def test_the_command_writes_each_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store: Store = empty_store(tmp_path)
    store.write(story_records(), {})
    database = ["report", "--database", str(tmp_path / "roost.db")]
    page = tmp_path / "report.html"
    assert main([*database, "--since", "2027-01-15T08:00", "--output", str(page)]) == 0
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert (capsys.readouterr().out, main([*database, "--format", "json"])) == ("", 0)
    assert capsys.readouterr().out.startswith("{")
    assert main([*database, "--output", str(tmp_path / "none" / "report.html")]) == 2
    assert "No such file or directory" in capsys.readouterr().err


XSS = '<script>alert("x")</script><a href="https://evil.example.org">'


def split(page: str) -> tuple[str, list[str]]:
    """A page's markup, unescaped, and what is in its scripts and styles."""
    inside = re.compile(r"(<(?:script|style)[^>]*>)(.*?)(</(?:script|style)>)", re.DOTALL)
    return unescape(inside.sub(r"\1\3", page)), [found[2] for found in inside.finditer(page)]


def test_the_page_refers_to_nothing_outside_itself(report: Report) -> None:
    markup, inside = split(make_page(report, "about"))
    found = re.findall(
        r'\s(?:src|href|srcset|action|data|poster|xlink:href|on\w+)="([^"]*)"', markup
    )
    assert found
    assert all(value.startswith(("#", "data:,")) for value in found), found
    styles = [text for text in inside if "--paper" in text]
    assert styles
    assert all("url(" not in text and "@import" not in text for text in styles)
    policy = re.search(
        r'Content-Security-Policy" content="(default-src \'none\'; script-src \'sha256-[^"]*)"',
        markup,
    )
    assert policy
    assert "unsafe-inline" not in policy[1].partition("style-src")[0]


def test_the_page_has_a_table_behind_each_plot(report: Report) -> None:
    markup, _ = split(make_page(report, "about"))
    assert all(
        table.title in markup for table in tables(report) if table.rows and not table.only_data
    )
    folded = markup.count("How exact this is") + markup.count("more figures")
    assert markup.count("<details") - folded == markup.count("<table") >= 9


def test_the_page_begins_with_three_figures_and_folds_the_others(report: Report) -> None:
    markup, _ = split(make_page(report, "about"))
    head, _, rest = markup.partition('<details class="more">')
    assert re.findall(r"<dt>([^<]+)</dt>", head) == [
        "95 of 100 starts took at most",
        "Waited for an image",
        "Node-hours",
    ]
    assert len(re.findall(r"<dt>[^<]+</dt>", rest)) == 9


def test_axes_of_plots_say_what_they_count(report: Report) -> None:
    for key, figure in drawn(report).items():
        axes = [axis for name, axis in figure.layout.items() if "axis" in name]
        shown = [axis for axis in axes if axis.get("visible", True)]
        assert all(axis.get("title") for axis in shown), key


def test_a_section_with_rows_never_says_that_it_has_none(report: Report) -> None:
    for part in parts(report):
        if any(table.rows for table in part.tables) and not any(part.figures):
            assert not part.nothing, f"{part.key}: {part.nothing}"


def test_names_from_a_cluster_are_text_and_nothing_else(tmp_path: Path) -> None:
    renamed: list[Any] = story_records(XSS)
    renamed = [
        replace(
            record,
            **{name: XSS for name in ("node_name", "scheduler") if getattr(record, name, "")},
        )
        for record in renamed
    ]
    (tmp_path / "plain").mkdir()
    plain = make_page(report_of(tmp_path / "plain", [*story_records(), gap("why")]), "about")
    page = make_page(report_of(tmp_path, [*renamed, fail_record("q", 1, {XSS: 1}), gap(XSS)]), XSS)
    assert page.count("<script") == plain.count("<script") == 2
    assert page.count("<a ") == plain.count("<a ")
    markup, inside = split(page)
    assert XSS in markup
    data = next(text for text in inside if text.startswith("{"))
    assert "<" not in data
    # The script reads them as text.
    assert any(XSS in text for text in strings(json.loads(data)))


def gap(why: str) -> GapRecord:
    return GapRecord(kind="pods", from_us=BEGIN, to_us=BEGIN + 5, why=why)


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for one in value.values() for text in strings(one)]
    return [text for one in value for text in strings(one)] if isinstance(value, list) else []


def drawn(report: Report) -> dict[str, Figure]:
    return {
        figure.key: figure
        for part in parts(report)
        for figure in part.figures
        if figure is not None
    }


def test_an_empty_database_gives_a_page_that_says_so(tmp_path: Path) -> None:
    report = gather(empty_store(tmp_path))
    assert report.is_empty
    assert tables_of(report)["starts_by_image"] == []
    page = make_page(report, "about")
    assert "Nothing has been recorded" in page
    assert "<script" not in page


def test_a_time_without_records_gives_a_page_that_names_the_time_with_them(tmp_path: Path) -> None:
    report = report_of(
        tmp_path, story_records(), since_us=BEGIN - 3 * HOUR, until_us=BEGIN - 2 * HOUR
    )
    assert "outside the record, which covers 2027-01-15 08:00" in make_page(report, "about")


def two_hubs(folder: Path) -> Store:
    store = empty_store(folder)
    told: list[Record] = [
        *whole_start("a", hub="maths", image="registry/scipy"),
        *whole_start("b", hub="maths", image="registry/r", created_us=BEGIN + MINUTE),
        *whole_start("c", hub="physics", image="registry/scipy", created_us=BEGIN + 2 * MINUTE),
        *whole_start(
            "d",
            hub="physics",
            image="registry/build",
            pod_class="build",
            created_us=BEGIN + 3 * MINUTE,
        ),
        *whole_start(
            "e",
            hub="physics",
            image="pause",
            pod_class="placeholder",
            created_us=BEGIN + 4 * MINUTE,
        ),
    ]
    store.write(told, {"pods": ("1", BEGIN + HOUR)})
    return store


def test_a_value_that_no_pod_has_is_said_with_those_that_pods_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = two_hubs(tmp_path)
    with pytest.raises(
        ScopeError,
        match="--class: found 'users', expected one that pods of the record have: user, bu",
    ):
        gather(store, scope=Scope(pod_class="users"))
    database = ["report", "--database", str(tmp_path / "roost.db")]
    assert main([*database, "--hub", "chemistry"]) == 2
    assert (
        "--hub: found 'chemistry', expected one that pods of the record have: physics, maths"
        in (capsys.readouterr().err)
    )
    assert main([*database, "--class", "build", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["only"] == {"class": "build"}


@pytest.mark.parametrize(("hubs", "server", "expected"), cases("report", "titles"))
def test_the_title_names_hubs_and_cluster(
    tmp_path: Path, hubs: list[str], server: str, expected: str
) -> None:
    store = empty_store(tmp_path)
    with store.run(server, "0.1", ""):
        pass
    store.write([pod_record(hub, hub=hub) for hub in hubs] + story_records(), {})
    assert title(gather(store, BEGIN, BEGIN + 3 * HOUR)).startswith(expected)


def test_the_title_names_the_cluster_that_was_told(tmp_path: Path) -> None:
    two_hubs(tmp_path)
    page = tmp_path / "report.html"
    arguments = ["--hub", "maths", "--cluster", "prod <1>", "--output", str(page)]
    assert main(["report", "--database", str(tmp_path / "roost.db"), *arguments]) == 0
    text = page.read_text(encoding="utf-8")
    assert "<title>maths on prod &lt;1&gt;: how pods started, and where they went</title>" in text
    assert "<h1>maths on prod &lt;1&gt;: how" in text


def test_since_may_be_a_length_of_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = two_hubs(tmp_path)
    end = gather(store).window.to_us
    spans = {"90m": 90 * MINUTE, "2h": 2 * HOUR, "7d": 7 * 24 * HOUR, "2w": 14 * 24 * HOUR}
    for since, span in spans.items():
        assert (
            main(
                [
                    "report",
                    "--database",
                    str(tmp_path / "roost.db"),
                    "--format",
                    "json",
                    "--since",
                    since,
                ]
            )
            == 0
        )
        found = json.loads(capsys.readouterr().out)["since"]
        assert found == json.loads(to_json(gather(store, end - span)))["since"]


def test_times_are_of_the_zone_for_people_and_utc_for_programs(tmp_path: Path) -> None:
    two_hubs(tmp_path)
    database = ["report", "--database", str(tmp_path / "roost.db"), "--timezone", "Asia/Kathmandu"]
    page, data = tmp_path / "report.html", tmp_path / "report.json"
    # 5 h 45 min ahead of UTC; the record begins at 08:00 UTC.
    since = ["--since", "2027-01-15T13:45", "--until", "2027-01-15T14:30"]
    assert main([*database, *since, "--output", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "2027-01-15 13:45 to 2027-01-15 14:30 Asia/Kathmandu (45 min)" in text
    assert ">from (Asia/Kathmandu)</th>" in text
    assert "UTC<" not in text
    assert "Fri 15 Jan 13:45 Asia/Kathmandu" in text
    assert main([*database, *since, "--format", "json", "--output", str(data)]) == 0
    assert json.loads(data.read_text(encoding="utf-8"))["since"] == "2027-01-15T08:00:00Z"
    # Steps begin when the zone's clocks show a round time.
    starts = gather(
        two_hubs(tmp_path), last_us=14 * 24 * HOUR, zone=ZoneInfo("Asia/Kathmandu")
    ).steps
    assert (starts.step_us, (starts.from_us + 5 * HOUR + 45 * MINUTE) % (2 * HOUR)) == (2 * HOUR, 0)


# Of each start: how many seconds it took, and whether it waited for an image (None: no Event told).
@pytest.mark.parametrize(("starts", "said"), cases("report", "waits"))
def test_the_sentence_says_who_waited_for_an_image(
    tmp_path: Path, starts: list[tuple[int, bool | None]], said: str
) -> None:
    # Without placeholders it says nothing of them; of a start that doesn't end, only among few.
    records: list[Record] = [pod_record("never-ready")]
    for number, (seconds, cold) in enumerate(starts):
        each = whole_start(f"p{number}", seconds, created_us=BEGIN + number * SECOND)
        kept = [one for one in each if not isinstance(one, PullRecord)]
        pulls = [
            replace(one, warm=not cold)
            for one in each
            if isinstance(one, PullRecord) and cold is not None
        ]
        records += [*kept, *pulls]
    if 0 < len(starts) <= 20:
        said += " 1 more start didn't end in this period."
    report = report_of(tmp_path, records, since_us=BEGIN, until_us=BEGIN + HOUR)
    assert sentence(report) == said
    escaped = escape(said, quote=False).replace("'", "&#39;")
    assert f'<p class="lead">{escaped}</p>' in make_page(report, "about")
    assert to_text(report).splitlines()[0] == json.loads(to_json(report))["sentence"] == said


@pytest.mark.parametrize(("pods", "said"), cases("report", "placeholders"))
def test_the_sentence_says_where_only_placeholders_were(
    tmp_path: Path, pods: list[tuple[str, str, int, int]], said: str
) -> None:
    records: list[Record] = []
    for number, (node, pod_class, begin, end) in enumerate(pods):
        times = {"created_us": BEGIN + begin * HOUR, "deleted_us": BEGIN + end * HOUR}
        records.append(pod_record(str(number), pod_class=pod_class, **times))
        records.append(bind_record(str(number), BEGIN + begin * HOUR, node))
    report = report_of(tmp_path, records, since_us=BEGIN, until_us=BEGIN + 20 * HOUR)
    assert sentence(report).removeprefix("No start ended in this period.").strip() == said


@pytest.mark.parametrize(
    ("has_gap", "gone_hour", "hours", "placeholders"),
    [
        (False, 5, "15.0: of 2 nodes; 10.0 with placeholders alone", "10.0: node-hours; on 1 node"),
        # The recorder was back at the fifth hour, and the node was no longer there.
        (
            True,
            5,
            (
                "15.0: of 2 nodes; 1 gone in a gap of the record, counted to its end; 8.0 with"
                " placeholders alone, without gaps"
            ),
            "8.0: node-hours; on 1 node; without gaps of the record",
        ),
        # It was still there.
        (
            True,
            6,
            "16.0: of 2 nodes; 8.0 with placeholders alone, without gaps",
            "8.0: node-hours; on 1 node; without gaps of the record",
        ),
    ],
)
def test_figures_of_nodes_say_what_a_gap_does_to_them(
    tmp_path: Path, has_gap: bool, gone_hour: int, hours: str, placeholders: str
) -> None:
    end_us = BEGIN + 10 * HOUR
    records: list[Record] = [
        NodeRecord(uid="n", name="n", created_us=BEGIN),
        NodeRecord(uid="m", name="m", created_us=BEGIN, gone_us=BEGIN + gone_hour * HOUR),
        pod_record("p", pod_class="placeholder", created_us=BEGIN, deleted_us=end_us),
        bind_record("p", BEGIN, "n"),
    ]
    if has_gap:
        records += [
            GapRecord(kind=kind, from_us=BEGIN + 3 * HOUR, to_us=BEGIN + 5 * HOUR, why="down")
            for kind in ("pods", "nodes")
        ]
    report = report_of(tmp_path, records, end_us, since_us=BEGIN, until_us=end_us)
    found = {tile.name: f"{tile.value}: {tile.about}" for tile in tiles(report)}
    assert (found["Node-hours"], found["Only placeholders"]) == (hours, placeholders)


def test_few_starts_are_dots_and_many_have_percentiles(tmp_path: Path) -> None:
    # In one step of ten seconds 25, in another one, which was cold.
    many = [
        record
        for number in range(25)
        for record in whole_start(f"m{number}", created_us=BEGIN + number * 1000)
    ]
    late = whole_start("late", 50, created_us=BEGIN + 30 * SECOND)
    pulls = [replace(one, warm=False) if isinstance(one, PullRecord) else one for one in late]
    report = report_of(
        tmp_path, [*many, *pulls], BEGIN + HOUR, since_us=BEGIN, until_us=BEGIN + MINUTE
    )
    assert [(one.whole_us, one.cold) for one in report[StartTimes].single] == [(50 * SECOND, True)]
    figure = drawn(report)["starts_over_time"]
    assert [mark.name for mark in figure.legend][:3] == [
        "median (p50)",
        "up to p95",
        "waited for an image",
    ]
    assert figure.layout["yaxis"]["ticktext"][0] == "1 s"
    shown = next(part.tables[0] for part in parts(report) if part.key == "starts-over-time")
    assert {row[1:4] for row in shown.rows if row[1]} == {(25, 3.0, 3.0), (1, None, None)}
    # Programs get them.
    assert {row["p95_seconds"] for row in tables_of(report)["starts_over_time"] if row["pods"]} == {
        3.0,
        50.0,
    }


def test_whole_seconds_are_never_said_to_be_milliseconds(tmp_path: Path) -> None:
    report = report_of(tmp_path, whole_start("p", 0), since_us=BEGIN, until_us=BEGIN + MINUTE)
    assert drawn(report)["starts_by_class"].layout["xaxis"]["ticktext"][0] == "≤1 s"
    assert "10 ms" not in make_page(report, "about")
