import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.tests.moments import BEGIN, HOUR, MINUTE, SECOND
from lab.tests.recorded import (
    bind_record,
    empty_store,
    fail_record,
    phase_record,
    pod_record,
    pull_record,
    record_of,
    story_records,
)
from lab.tests.told import Story, Thing, cases, stories
from lab.tests.unit.report.reported import (
    edge_of,
    report_of,
    spans_us,
    started,
    tables_of,
    whole_start,
)
from roost.__main__ import main
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import GapRecord, NodeRecord, Phase, PullRecord, Record
from roost_lab.recorder.store.schema import POSTGRESQL, SQLITE
from roost_lab.report.formats import to_json, to_text
from roost_lab.report.gaps import Gaps
from roost_lab.report.gather import choose_window, gather
from roost_lab.report.occupancy import Occupancy
from roost_lab.report.page import make_page
from roost_lab.report.pulls import OTHER_IMAGES, Pulls
from roost_lab.report.query import Scope
from roost_lab.report.sections import parts, tables
from roost_lab.report.slow_starts import MAX_SLOWEST, StartTimes
from roost_lab.report.start_phases import WindowStarts
from roost_lab.report.statistics import Span, Spans, Steps, covered, cut
from roost_lab.report.subject import Report
from tests.harness.postgres import Postgres


@dataclass(frozen=True)
class Made:
    """One pod of a generated record; moments in µs after BEGIN."""

    pod_class: str
    image: str
    node: int
    created: int
    waited: int
    ran: int
    settled: int
    stayed: int | None
    warm: bool
    is_bound: bool


ZONE = ZoneInfo("Asia/Kathmandu")
NODE_BEGINS = (-2 * HOUR, -30 * MINUTE, 5 * MINUTE)
made_pods = st.builds(
    Made,
    pod_class=st.sampled_from(["user", "user", "build", "placeholder", ""]),
    image=st.sampled_from([f"registry.example.org/image-{number}" for number in range(20)]),
    node=st.integers(0, len(NODE_BEGINS)),
    created=st.integers(-20, 7000).map(SECOND.__mul__),
    waited=spans_us,
    ran=spans_us,
    settled=spans_us,
    stayed=st.one_of(st.none(), st.integers(0, 2 * HOUR)),
    warm=st.booleans(),
    is_bound=st.booleans(),
)


def pod_records(uid: str, pod: Made) -> list[Record]:
    created_us = BEGIN + pod.created
    scheduled_us = created_us + pod.waited
    started_us = scheduled_us + pod.ran
    ready_us = started_us + pod.settled
    found: list[Record] = [
        pod_record(
            uid,
            pod_class=pod.pod_class,
            image=pod.image,
            created_us=created_us,
            deleted_us=None if pod.stayed is None else ready_us + pod.stayed,
        )
    ]
    if pod.is_bound:
        found += [
            bind_record(uid, scheduled_us, f"node-{pod.node}", "agrees" if pod.warm else "differs"),
            phase_record(uid, Phase.SCHEDULED, scheduled_us),
            phase_record(uid, Phase.STARTED, started_us - 1, "first"),
            phase_record(uid, Phase.STARTED, started_us, "last"),
            phase_record(uid, Phase.READY, ready_us),
        ]
    return found


def node_record(number: int) -> NodeRecord:
    return NodeRecord(
        uid=f"uid-node-{number}", name=f"node-{number}", created_us=BEGIN + NODE_BEGINS[number]
    )


@pytest.fixture(scope="module", params=[SQLITE, POSTGRESQL])
def fresh_store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Store]]:
    """Gives an empty store each time it's called: both databases must find the same."""
    if request.param == SQLITE:
        yield lambda: empty_store(tmp_path_factory.mktemp("store"))
        return
    server: Postgres = request.getfixturevalue("server")
    store = Store.open(server.create("report"))
    store.migrate()

    def emptied() -> Store:
        names = ", ".join(table.name for table in schema.metadata.sorted_tables)
        server.execute(f"TRUNCATE {names}", "report")
        return store

    yield emptied
    store.close()


@given(st.lists(made_pods, min_size=1, max_size=12))
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@pytest.mark.slow
def test_a_report_has_the_numbers_that_brute_force_finds(
    fresh_store: Callable[[], Store], pods: list[Made]
) -> None:
    store = fresh_store()
    nodes: list[Record] = [node_record(number) for number in range(len(NODE_BEGINS))]
    store.write(
        [*nodes, *(one for index, pod in enumerate(pods) for one in pod_records(f"p{index}", pod))],
        {},
    )
    report = gather(store, BEGIN, BEGIN + 2 * HOUR, zone=ZONE)

    inside = [pod for pod in pods if 0 <= pod.created < 2 * HOUR]
    chosen = [pod for pod in inside if pod.pod_class in ("user", "build")]
    chosen = chosen or [pod for pod in inside if pod.pod_class != "placeholder"]
    expected: dict[tuple[str, str], Counter[int]] = {}
    for pod in inside:
        if pod.is_bound:
            whole = pod.waited + pod.ran + pod.settled
            for span, took in (
                ("node", pod.waited),
                ("containers", pod.ran),
                ("ready", pod.settled),
                ("whole", whole),
            ):
                expected.setdefault((pod.pod_class, span), Counter())[edge_of(took)] += 1
    groups = report[WindowStarts].by_class.items()
    found = {(key[0], span): one.counts for key, spans in groups for span, one in spans.items()}
    assert found == expected

    images = Counter(pod.image for pod in chosen if pod.is_bound)
    named = {
        name: spans["whole"]
        for (name,), spans in report[WindowStarts].by_image.items()
        if name != OTHER_IMAGES
    }
    assert all(spans.count == images[name] for name, spans in named.items())
    classes = {pod.pod_class for pod in pods}
    leading = next((one for one in ("user", "build") if one in classes), "")
    led = [(f"p{index}", pod) for index, pod in enumerate(pods) if pod in inside and pod.is_bound]
    led = [(uid, pod) for uid, pod in led if pod.pod_class == leading]
    wholes = {uid: pod.waited + pod.ran + pod.settled for uid, pod in led}
    assert report[WindowStarts].whole.count == len(led)
    assert report[WindowStarts].whole.sum_us == sum(wholes.values())
    check_start_times(report, {uid: (BEGIN + pod.created, wholes[uid]) for uid, pod in led})

    steps = report.steps
    for kind in ("user", "build", "placeholder"):
        there = [
            (
                BEGIN + pod.created + pod.waited,
                None
                if pod.stayed is None
                else BEGIN + pod.created + pod.waited + pod.ran + pod.settled + pod.stayed,
            )
            for pod in pods
            if pod.is_bound and pod.pod_class == kind
        ]
        means_ = [
            sum(overlap(start, start + steps.step_us, *one) for one in there) / steps.step_us
            for start in steps.starts()
        ]
        assert report[Occupancy].by_kind[kind] == pytest.approx(means_, abs=1e-6)
    everywhere = sum(mean.get("user", 0.0) for mean in report[Occupancy].by_node.values())
    assert everywhere == pytest.approx(
        sum(report[Occupancy].by_kind["user"]) / steps.number, abs=1e-6
    )


def check_start_times(report: Report, starts: dict[str, tuple[int, int]]) -> None:
    """starts: when each pod was created, and how long its start took, in µs."""
    times = report[StartTimes]
    by_step: list[Counter[int]] = [Counter() for _ in range(report.steps.number)]
    for created_us, whole_us in starts.values():
        by_step[(created_us - report.steps.from_us) // report.steps.step_us][edge_of(whole_us)] += 1
    assert [spans.counts for spans in times.by_step] == by_step
    slowest = sorted(starts, key=lambda uid: (-starts[uid][1], starts[uid][0], uid))[:MAX_SLOWEST]
    assert [(one.name, one.created_us, one.whole_us) for one in times.slowest] == [
        (uid, *starts[uid]) for uid in slowest
    ]
    for one in times.slowest:
        assert one.node_us + one.containers_us + one.ready_us == one.whole_us


def test_a_record_of_thousands_of_years_has_a_report(fresh_store: Callable[[], Store]) -> None:
    store = fresh_store()
    last_us = 253_402_300_800 * SECOND - HOUR
    store.write([*started("p", 1), *started("q", 1, created_us=last_us)], {})
    report = gather(store, 0, zone=ZoneInfo("Europe/Berlin"))
    assert sum(spans.count for spans in report[StartTimes].by_step) == 2


def test_the_slowest_starts_say_what_explains_them(tmp_path: Path) -> None:
    image = "registry.example.org/hub/r:1"

    def start(uid: str, bound: int, ran: int) -> list[Record]:
        """A pod that was bound and ran so many seconds after its creation."""
        return [
            pod_record(uid),
            bind_record(uid, BEGIN + bound * SECOND, "n"),
            phase_record(uid, Phase.STARTED, BEGIN + ran * SECOND),
            phase_record(uid, Phase.READY, BEGIN + ran * SECOND),
        ]

    records: list[Record] = [
        *start("pulls", 1, 100),
        pull_record("pulls", BEGIN + 95 * SECOND, image, 80.0),
        *start("queues", 1, 90),
        pull_record("queues", BEGIN + 85 * SECOND, image, 80.0, pull_us=SECOND),
        *start("no-node", 70, 80),
        fail_record("no-node", 1, {"Insufficient memory": 3, "node(s) had taints": 1}),
        *start("unknown", 1, 60),
    ]
    rows = tables_of(report_of(tmp_path, records, BEGIN + 3 * HOUR))["slowest_starts"]
    assert [row["cause"] for row in rows] == [
        "downloaded r:1 for 1 min 20 s",
        "downloaded r:1 for 1 min 20 s, most of it behind another download",
        "no node for 1 min 10 s: Insufficient memory (3 nodes), node(s) had taints (1 node)",
        "its containers took 59 s to run; nothing recorded says why",
    ]


def test_the_slowest_starts_come_with_the_command_that_explains_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Two of the same name, the second of which was slow; times that a recorder made up between two
    # seconds.
    records = [
        *started("first", 1, name="jupyter-ada", deleted_us=BEGIN + MINUTE),
        *started("second", 90, name="jupyter-ada", created_us=BEGIN + HOUR + SECOND // 2),
        *started("odd", 30, name="it's", created_us=BEGIN + 2 * HOUR),
    ]
    rows = tables_of(report_of(tmp_path, records, BEGIN + 3 * HOUR))["slowest_starts"]
    assert [row["whole_seconds"] for row in rows] == [90, 30, 1]
    assert rows[0]["why"] == "roost why hub/jupyter-ada --at 2027-01-15T09:00:01Z"
    for row, said in zip(
        rows, ["ran 1 min 30 s later", "ran 30 s later", "ran 1 s later"], strict=True
    ):
        assert main([*shlex.split(row["why"])[1:], "--database", str(tmp_path / "roost.db")]) == 0
        assert said in capsys.readouterr().out


def overlap(from_us: int, to_us: int, came_us: int, went_us: int | None) -> int:
    return max(0, min(to_us, to_us if went_us is None else went_us) - max(from_us, came_us))


def told(report: Report) -> Iterator[str]:
    """The report's head, its figures, the rows of its tables, its plots, and its page."""
    yield from (" ".join(line.split()) for line in to_text(report).splitlines())
    for name, rows in tables_of(report).items():
        for row in rows:
            if name == "key_figures":
                before = "" if row["previous"] is None else f", before {row['previous']}"
                yield f"figure {row['figure']} {row['value']}{before}"
                continue
            cells = {
                key: json.dumps(value) if " " in str(value) else value for key, value in row.items()
            }
            yield " ".join(
                [
                    name,
                    *(f"{key}={value}" for key, value in cells.items() if value not in (None, "")),
                ]
            )
    yield from (
        f"plot {figure.key}"
        for part in parts(report)
        for figure in part.figures
        if figure is not None
    )
    yield make_page(report, "about")


def test_no_query_of_a_report_goes_through_other_rows_for_each_row(
    fresh_store: Callable[[], Store],
) -> None:
    """PostgreSQL does that for NOT IN with a query, once its rows outgrow the memory for it."""
    store = fresh_store()
    store.write([*started("p", 1), phase_record("p", Phase.SEATED, BEGIN)], {})
    said: list[str] = []

    def listen(_connection: object, _cursor: object, statement: str, *_about: object) -> None:
        said.append(" ".join(statement.split()))

    sa.event.listen(store.engine, "before_cursor_execute", listen)
    tables_of(gather(store))
    assert any("seated" in query for query in said)
    assert [query for query in said if "NOT IN (SELECT" in query] == []


@stories("reports")
def test_a_report_says_what_was_recorded(fresh_store: Callable[[], Store], story: Story) -> None:
    store, records, about, heard = fresh_store(), list[Record](), dict[str, Any](), {}
    for kind, plain, named in story.things:
        if kind == "window":
            about["since_us"], about["until_us"] = plain
        elif kind == "last":
            about["last_us"] = plain[0]
        elif kind == "only":
            about["scope"] = Scope(**named)
        elif kind == "heard":
            heard = {"pods": ("1", plain[0])}
        elif kind in ("start", "ready"):
            records += (whole_start if kind == "start" else started)(*plain, **named)
        elif kind != "numbers":
            records.append(record_of(Thing(kind, plain, named)))
    store.write(records, heard)
    report = gather(store, **about)
    story.check_drawn(told(report))
    for pods in (thing.plain[0] for thing in story.things if thing.kind == "numbers"):
        found = tables_of(report)
        counted = [("failures", "tries"), ("pulls_by_node", "warm"), ("removals_by_class", "pods")]
        assert [sum(row[column] for row in found[table]) for table, column in counted] == [pods] * 3
        assert (
            sum(row["pods"] for row in found["starts_by_class"] if row["phase"] == "whole") == pods
        )
        there = [
            row
            for row in found["occupancy_by_node"]
            if any(value for key, value in row.items() if key != "node")
        ]
        assert (len(there), report.is_empty) == ((1, False) if pods else (0, True))


def test_amounts_that_an_event_makes_up_do_not_keep_others_from_a_report(
    fresh_store: Callable[[], Store],
) -> None:
    store = fresh_store()
    most = 2**63 - 1
    told: list[Record] = [pod_record("p"), bind_record("p", BEGIN + SECOND, "n")]
    for number in range(50):
        uid = f"odd{number}"
        amounts = {"pull_us": most if number else 0, "pull_and_wait_us": most, "image_bytes": most}
        told.append(
            PullRecord(pod_uid=uid, image="i", node_name="n", at_us=BEGIN, warm=False, **amounts)
        )
        told += [pod_record(uid, image="i"), bind_record(uid, 250_000_000_000 * SECOND, "n")]
    told.append(
        PullRecord(
            pod_uid="p", image="usual", node_name="n", at_us=BEGIN, warm=False, image_bytes=5
        )
    )
    store.write(told, {"pods": ("1", BEGIN + HOUR)})
    report = gather(store)
    # Of the recorder's own clock, not of the Events'.
    assert (report.window.to_us, report[WindowStarts].whole.count) == (BEGIN + HOUR + 1, 0)
    assert sum(spans["node"].count for spans in report[WindowStarts].by_class.values()) == 51
    assert report[Pulls].by_image["usual"].image_bytes == 5
    longest = report[WindowStarts].by_image["i",]["node"]
    assert longest.sum_us == 50 * (longest.percentile_us(1.0) or 0)
    assert to_json(report)


def test_gaps_and_the_time_before_and_after_the_record_are_shown_as_gaps(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    store.write(
        [
            *story_records(),
            GapRecord(kind="pods", from_us=BEGIN + HOUR, to_us=BEGIN + 2 * HOUR, why="lost"),
        ],
        {},
    )
    report = gather(store, BEGIN - HOUR, BEGIN + 5 * HOUR)
    assert [(gap.kind, gap.why) for gap in report[Gaps].gaps] == [
        ("everything", "recording had not begun"),
        ("everything", "nothing was recorded since"),
        ("pods", "lost"),
    ]
    by_name = {table.name: table for table in tables(report)}
    over_time = {row[0]: row for row in by_name["occupancy_over_time"].rows}
    assert over_time[BEGIN + 90 * MINUTE][1:] == (None, None, None, None, "gap")
    assert over_time[BEGIN + 30 * MINUTE][1] == 1.0
    # Pods may be missing there; events aren't.
    assert {row[0]: row[-1] for row in by_name["pulls_over_time"].rows}[BEGIN + 90 * MINUTE] == ""
    figure = {
        figure.key: figure
        for part in parts(report)
        for figure in part.figures
        if figure is not None
    }["occupancy_over_time"]
    assert [shape["x0"][11:] for shape in figure.layout["shapes"]] == [
        "07:00:00",
        "09:00:00",
        "10:01:00",
    ]
    assert "gap in the record" in [mark.name for mark in figure.legend]


@pytest.mark.parametrize(("since_us", "until_us", "expected"), cases("report", "windows"))
def test_a_report_tells_of_the_last_week_unless_told_otherwise(
    since_us: int | None, until_us: int | None, expected: list[int]
) -> None:
    assert choose_window(Span(4, 90 * 24 * HOUR), since_us, until_us) == tuple(expected)


@given(st.integers(0, 1000))
def test_whole_seconds_count_exactly(seconds: int) -> None:
    assert edge_of(seconds * SECOND) == seconds * SECOND


def collect(spans: Iterable[int]) -> Spans:
    found = Spans()
    for span in spans:
        found.add(edge_of(span), 1, span)
    return found


@given(st.lists(spans_us, min_size=1), st.sampled_from([0.01, 0.5, 0.9, 0.95, 1.0]))
def test_a_percentile_is_the_edge_of_the_span_that_sorting_finds(
    spans: list[int], share: float
) -> None:
    ordered = sorted(spans)
    # The least one that so many hundredths of all don't exceed, in whole numbers.
    wanted = next(
        one
        for one in ordered
        if 100 * sum(other <= one for other in ordered) >= round(share * 100) * len(ordered)
    )
    assert collect(spans).percentile_us(share) == edge_of(wanted)
    assert collect(spans).mean_us == sum(spans) / len(spans)


def test_nothing_has_no_percentile() -> None:
    assert (Spans().percentile_us(0.5), Spans().mean_us, Spans().count) == (None, None, 0)


some_spans = st.lists(
    st.tuples(st.integers(0, 200), st.integers(1, 60)).map(lambda one: Span(one[0], sum(one)))
)


@given(some_spans, st.integers(1, 50))
def test_a_step_is_covered_when_half_of_its_moments_are(spans: list[Span], step_us: int) -> None:
    steps = Steps(20, step_us, 7)
    moments = {moment for span in spans for moment in range(*span)}
    there = [
        sum(moment in moments for moment in range(start, start + step_us))
        for start in steps.starts()
    ]
    assert covered(steps, spans) == [2 * number >= step_us for number in there]


@given(st.integers(0, 10**15), st.integers(1, 400 * 24 * HOUR), st.integers(2, 300))
def test_a_cut_covers_the_time_with_no_more_steps_than_wanted(
    from_us: int, length: int, most: int
) -> None:
    steps = cut(from_us, from_us + length, most)
    assert steps.from_us <= from_us
    assert from_us - steps.from_us < steps.step_us
    assert from_us + length <= steps.to_us < from_us + length + steps.step_us
    # Whole steps from a round moment may need one more.
    assert steps.number <= most + 1
