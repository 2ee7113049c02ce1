from __future__ import annotations

import csv
import io
import json
from collections import Counter
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from importlib import resources
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go  # type: ignore[import-untyped]  # it has no types
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plotly.offline import get_plotlyjs_version  # type: ignore[import-untyped]  # it has no types
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from roost.__main__ import main
from roost.pages.drawing import NAME_LENGTH, short_names, time_ticks
from roost.pages.table import Unit
from roost.recorder.report.formats import to_csv, to_json, to_openmetrics
from roost.recorder.report.gather import OTHER_IMAGES, USUAL_US, Report, agreement, choose_window, gather
from roost.recorder.report.page import make_page
from roost.recorder.report.queries import Extent
from roost.recorder.report.sections import parts, tables
from roost.recorder.report.statistics import (
    BOUNDS_SECONDS,
    LONGEST_STEP_US,
    STEPS,
    Edges,
    Span,
    Spans,
    Steps,
    covered,
    cut,
    edge_of,
    means,
    unite,
)
from roost.recorder.report.tables import show
from roost.recorder.store import schema
from roost.recorder.store.database import POSTGRESQL, SQLITE, Store
from roost.recorder.store.records import (
    GapRecord,
    NodeRecord,
    Phase,
    PreemptionRecord,
    PullRecord,
    Record,
    Verdict,
)
from tests.harness.binaries import HarnessUnavailableError
from tests.harness.fixtures import give_up
from tests.harness.postgres import Postgres
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from roost.pages.drawing import Figure

XSS = '<script>alert("x")</script><a href="https://evil.example.org">'

spans_us = st.one_of(
    st.integers(0, 3 * SECOND), st.integers(0, 3 * HOUR), st.sampled_from([10, 100, 1000]).map(SECOND.__mul__)
)


# Statistics


@given(spans_us)
def test_an_edge_is_not_below_its_span_and_at_most_a_hundredth_above(span_us: int) -> None:
    edge_us = edge_of(span_us)
    assert span_us <= edge_us
    assert edge_us - span_us < max(10_000, span_us / 100 + 1)
    assert edge_of(edge_us) == edge_us


@given(st.integers(0, 1000))
def test_whole_seconds_count_exactly(seconds: int) -> None:
    assert edge_of(seconds * SECOND) == seconds * SECOND


def collect(spans: Iterable[int]) -> Spans:
    found = Spans()
    for one in spans:
        found.add(edge_of(one), 1, one)
    return found


@given(st.lists(spans_us, min_size=1), st.sampled_from([0.01, 0.5, 0.9, 0.95, 1.0]))
def test_a_percentile_is_the_edge_of_the_span_that_sorting_finds(spans: list[int], share: float) -> None:
    ordered = sorted(spans)
    # The least one that so many hundredths of all don't exceed, in whole numbers.
    wanted = next(
        one for one in ordered if 100 * sum(other <= one for other in ordered) >= round(share * 100) * len(ordered)
    )
    assert collect(spans).percentile_us(share) == edge_of(wanted)
    assert collect(spans).mean_us == sum(spans) / len(spans)


@given(st.lists(spans_us))
def test_counts_up_to_a_bound_are_exact(spans: list[int]) -> None:
    assert collect(spans).at_most() == [sum(one <= bound * SECOND for one in spans) for bound in BOUNDS_SECONDS]


def test_every_bound_is_an_edge() -> None:
    assert [edge_of(round(bound * SECOND)) for bound in BOUNDS_SECONDS] == [bound * SECOND for bound in BOUNDS_SECONDS]
    assert STEPS[-1][1] < LONGEST_STEP_US


def test_nothing_has_no_percentile() -> None:
    assert (Spans().percentile_us(0.5), Spans().mean_us, Spans().count) == (None, None, 0)


stays = st.lists(st.tuples(st.integers(0, 1000), st.one_of(st.none(), st.integers(0, 300))))


@given(stays, st.integers(1, 90))
def test_means_are_those_of_looking_at_every_moment(stays: list[tuple[int, int | None]], step_us: int) -> None:
    steps = Steps(0, step_us, -(-1300 // step_us))
    edges = Edges()
    for from_us, length in stays:
        edges.add(from_us // step_us, 1, from_us % step_us)
        if length is not None:
            edges.add((from_us + length) // step_us, -1, -((from_us + length) % step_us))
    at = [sum(f <= moment and (n is None or moment < f + n) for f, n in stays) for moment in range(steps.to_us)]
    expected = [sum(at[start : start + step_us]) / step_us for start in steps.starts()]
    assert means(edges, steps) == pytest.approx(expected)


some_spans = st.lists(st.tuples(st.integers(0, 200), st.integers(1, 60)).map(lambda one: Span(one[0], sum(one))))


@given(some_spans)
def test_united_spans_hold_the_same_moments_and_do_not_touch(spans: list[Span]) -> None:
    united = unite(spans)

    def inside(some: list[Span]) -> set[int]:
        return {moment for span in some for moment in range(*span)}

    assert inside(united) == inside(spans)
    assert all(one.to_us < other.from_us for one, other in pairwise(united))


@given(some_spans, st.integers(1, 50))
def test_a_step_is_covered_when_half_of_its_moments_are(spans: list[Span], step_us: int) -> None:
    steps = Steps(20, step_us, 7)
    moments = {moment for span in spans for moment in range(*span)}
    expected = [
        2 * sum(moment in moments for moment in range(start, start + step_us)) >= step_us for start in steps.starts()
    ]
    assert covered(steps, spans) == expected


@given(st.integers(0, 10**15), st.integers(1, 400 * 24 * HOUR), st.integers(2, 300))
def test_a_cut_covers_the_time_with_no_more_steps_than_wanted(from_us: int, length: int, most: int) -> None:
    steps = cut(from_us, from_us + length, most)
    assert steps.from_us <= from_us
    assert from_us - steps.from_us < steps.step_us
    assert from_us + length <= steps.to_us < from_us + length + steps.step_us
    # Whole steps from a round moment may need one more.
    assert steps.number <= most + 1


# A report against what brute force finds


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
    return NodeRecord(uid=f"uid-node-{number}", name=f"node-{number}", created_us=BEGIN + NODE_BEGINS[number])


def age_name(age_us: int | None) -> str:
    if age_us is None:
        return "unknown"
    if age_us < 10 * MINUTE:
        return "newer than 10 min"
    return "10 min to 1 h" if age_us < HOUR else "older than 1 h"


@pytest.fixture(scope="module", params=[SQLITE, POSTGRESQL])
def fresh_store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Store]]:
    """Gives an empty store each time it's called: both databases must find the same."""
    if request.param == SQLITE:
        yield lambda: empty_store(tmp_path_factory.mktemp("store"))
        return
    server = Postgres()
    try:
        server.start()
    except HarnessUnavailableError as error:
        give_up(error)
    store = Store.open(server.create("report"))
    store.migrate()

    def emptied() -> Store:
        names = ", ".join(table.name for table in schema.metadata.sorted_tables)
        server.execute(f"TRUNCATE {names}", "report")
        return store

    yield emptied
    store.close()
    server.stop()


@given(st.lists(made_pods, min_size=1, max_size=12))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.slow
def test_a_report_has_the_numbers_that_brute_force_finds(fresh_store: Callable[[], Store], pods: list[Made]) -> None:
    store = fresh_store()
    nodes: list[Record] = [node_record(number) for number in range(len(NODE_BEGINS))]
    store.write([*nodes, *(one for index, pod in enumerate(pods) for one in pod_records(f"p{index}", pod))], {})
    until_us = BEGIN + 2 * HOUR
    report = gather(store, BEGIN, until_us)

    inside = [pod for pod in pods if 0 <= pod.created < 2 * HOUR]
    chosen = [pod for pod in inside if pod.pod_class in ("user", "build")]
    chosen = chosen or [pod for pod in inside if pod.pod_class != "placeholder"]
    expected: dict[tuple[str, str], Counter[int]] = {}
    for pod in inside:
        if pod.is_bound:
            whole = pod.waited + pod.ran + pod.settled
            for span, took in (("node", pod.waited), ("containers", pod.ran), ("ready", pod.settled), ("whole", whole)):
                expected.setdefault((pod.pod_class, span), Counter())[edge_of(took)] += 1
    found = {(key[0], span): one.counts for key, spans in report.starts_by_class.items() for span, one in spans.items()}
    assert found == expected

    begins = dict(enumerate(NODE_BEGINS))
    ages = Counter(
        age_name(pod.created + pod.waited - begins[pod.node] if pod.node in begins else None)
        for pod in chosen
        if pod.is_bound
    )
    assert {age: spans["whole"].count for age, spans in report.starts_by_age.items()} == ages
    images = Counter(pod.image for pod in chosen if pod.is_bound)
    named = {name: spans["whole"] for name, spans in report.starts_by_image.items() if name != OTHER_IMAGES}
    assert all(spans.count == images[name] for name, spans in named.items())
    assert report.whole_starts.count == images.total()
    assert report.whole_starts.sum_us == sum(pod.waited + pod.ran + pod.settled for pod in chosen if pod.is_bound)

    steps = report.steps
    for kind in ("user", "build", "placeholder"):
        there = [
            (
                BEGIN + pod.created + pod.waited,
                None if pod.stayed is None else BEGIN + pod.created + pod.waited + pod.ran + pod.settled + pod.stayed,
            )
            for pod in pods
            if pod.is_bound and pod.pod_class == kind
        ]
        means_ = [
            sum(overlap(start, start + steps.step_us, *one) for one in there) / steps.step_us
            for start in steps.starts()
        ]
        assert report.occupancy[kind] == pytest.approx(means_, abs=1e-6)
    total = [sum(found.get("user", [0] * steps.number)[0] for found in report.occupancy_by_node.values())]
    assert total == pytest.approx(report.occupancy["user"][:1], abs=1e-6)
    bound = [pod for pod in pods if pod.is_bound and 0 <= pod.created + pod.waited < 2 * HOUR]
    words = Counter("agrees" if pod.warm else "differs" for pod in bound)
    assert sum(report.verdicts.values(), Counter()) == words
    assert report.agreement == (words["agrees"] / len(bound) if bound else None)


def overlap(from_us: int, to_us: int, came_us: int, went_us: int | None) -> int:
    return max(0, min(to_us, to_us if went_us is None else went_us) - max(from_us, came_us))


def test_new_nodes_are_those_that_joined_in_the_time_and_were_seen_to_get_all_images(
    fresh_store: Callable[[], Store],
) -> None:
    store = fresh_store()

    def node(name: str, created_us: int, ready: int | None, images: int | None) -> NodeRecord:
        moments = [None if after is None else created_us + after * SECOND for after in (ready, images)]
        return NodeRecord(uid=name, name=name, created_us=created_us, ready_us=moments[0], images_ready_us=moments[1])

    store.write(
        [
            node("quick", BEGIN, 20, 50),
            node("slow", BEGIN + MINUTE, 40, 340),
            # Labelled before it was Ready, by whoever's clock.
            node("odd", BEGIN + MINUTE, 30, 29),
            node("early", BEGIN - 1, 10, 20),
            node("late", BEGIN + HOUR, 10, 20),
            node("without", BEGIN, 10, None),
            node("never", BEGIN, None, None),
            pod_record("p"),
        ],
        {},
    )
    report = gather(store, BEGIN, BEGIN + HOUR)
    (table,) = (one for one in tables(report) if one.name == "new_nodes")
    assert [column.key for column in table.columns] == ["phase", "nodes", "p50_seconds", "p95_seconds", "mean_seconds"]
    assert table.rows == [("ready", 3, 30.0, 40.0, 30.0), ("images", 3, 30.0, 300.0, 110.0)]
    assert [show(row[0], Unit.PHASE) for row in table.rows] == [
        "until it is ready",
        "until it has all images of the hub",
    ]


def test_amounts_that_an_event_makes_up_do_not_keep_others_from_a_report(fresh_store: Callable[[], Store]) -> None:
    store = fresh_store()
    most = 2**63 - 1
    told: list[Record] = [pod_record("p"), bind_record("p", BEGIN + SECOND, "n")]
    for number in range(50):
        uid = f"odd{number}"
        amounts = {"pull_us": most if number else 0, "pull_and_wait_us": most, "image_bytes": most}
        told.append(PullRecord(pod_uid=uid, image="i", node_name="n", at_us=BEGIN, warm=False, **amounts))
        told += [pod_record(uid, image="i"), bind_record(uid, 250_000_000_000 * SECOND, "n")]
    told.append(PullRecord(pod_uid="p", image="usual", node_name="n", at_us=BEGIN, warm=False, image_bytes=5))
    store.write(told, {"pods": ("1", BEGIN + HOUR)})
    report = gather(store)
    # Of the recorder's own clock, not of the Events'.
    assert report.window.to_us == BEGIN + HOUR + 1
    assert report.counts["pod"] == 51
    assert report.pulls_by_image["usual"].image_bytes == 5
    longest = report.starts_by_image["i"]["node"]
    assert longest.sum_us == 50 * (longest.percentile_us(1.0) or 0)
    assert to_json(report)


def test_pulls_failures_and_removals_are_counted_within_the_time_only(tmp_path: Path) -> None:
    store = empty_store(tmp_path)

    def pull(uid: str, at_us: int, *, warm: bool) -> PullRecord:
        cold = {} if warm else {"pull_us": 3 * SECOND, "pull_and_wait_us": 5 * SECOND, "image_bytes": 1000}
        return PullRecord(pod_uid=uid, image="i", node_name="n", at_us=at_us, warm=warm, **cold)

    store.write(
        [
            *(pull(f"p{number}", BEGIN + number * SECOND, warm=number % 4 > 0) for number in range(8)),
            pull("early", BEGIN - 1, warm=False),
            pull("late", BEGIN + HOUR, warm=False),
            pod_record("p0", pod_class="placeholder"),
            PreemptionRecord(victim_uid="p0", node_name="n", at_us=BEGIN, kind="preempted"),
            PreemptionRecord(victim_uid="p1", node_name="n", at_us=BEGIN + MINUTE, kind="evicted"),
            PreemptionRecord(victim_uid="p2", node_name="n", at_us=BEGIN - 1, kind="evicted"),
            fail_record("p3", 1, {"Insufficient cpu": 3, "Too many pods": 1}, tries=2),
            fail_record("p3", 2, {"Insufficient cpu": 4}),
            fail_record("p4", 1, {}),
        ],
        {},
    )
    report = gather(store, BEGIN, BEGIN + HOUR)
    one = report.pulls_by_node["n"]
    assert (one.warm, one.cold, one.image_bytes, one.pull_us, one.wait_us) == (6, 2, 2000, 6 * SECOND, 4 * SECOND)
    assert one.warm_share == 0.75
    assert report.pulls_by_image["i"] == one
    assert sum(step.warm + step.cold for step in report.pulls_by_step) == 8
    assert {reason: (one.tries, one.nodes) for reason, one in report.failures.items()} == {
        "Insufficient cpu": (3, 10),
        "Too many pods": (2, 2),
        "no reason given": (1, 0),
    }
    assert report.failed_tries == 4
    assert report.removals == {("preempted", "placeholder"): 1, ("evicted", ""): 1}
    assert {kind: sum(by_step) for kind, by_step in report.removals_by_step.items()} == {"preempted": 1, "evicted": 1}


def test_gaps_and_the_time_before_and_after_the_record_are_shown_as_gaps(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    store.write(
        [*story_records(), GapRecord(kind="pods", from_us=BEGIN + HOUR, to_us=BEGIN + 2 * HOUR, why="lost")], {}
    )
    report = gather(store, BEGIN - HOUR, BEGIN + 5 * HOUR)
    assert [(gap.kind, gap.why) for gap in report.gaps] == [
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
    figure = drawn(report)["occupancy_over_time"]
    assert [shape["x0"][11:] for shape in figure.layout["shapes"]] == ["07:00:00", "09:00:00", "10:01:00"]
    assert "gap in the record" in [mark.name for mark in figure.legend]


@pytest.fixture
def report(tmp_path: Path) -> Report:
    store = empty_store(tmp_path)
    store.write(story_records(), {})
    return gather(store)


@pytest.mark.parametrize(
    ("since_us", "until_us", "expected"),
    [
        (None, None, (90 * 24 * HOUR - USUAL_US, 90 * 24 * HOUR)),
        (5, None, (5, 90 * 24 * HOUR)),
        (5, 7, (5, 7)),
        (None, 8, (4, 8)),
        (100 * 24 * HOUR, None, (100 * 24 * HOUR, 100 * 24 * HOUR + 1)),
    ],
)
def test_a_report_tells_of_the_last_week_unless_told_otherwise(
    since_us: int | None, until_us: int | None, expected: tuple[int, int]
) -> None:
    assert choose_window(Extent(4, 90 * 24 * HOUR), since_us, until_us) == expected


# The page


class Page(HTMLParser):
    """What a page refers to, and what elements and texts it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.references: list[tuple[str, str, str]] = []
        self.tags: Counter[str] = Counter()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.policy = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "srcset", "action", "data", "poster", "xlink:href") or name.startswith("on"):
                self.references.append((tag, name, value or ""))
        if dict(attrs).get("http-equiv") == "Content-Security-Policy":
            self.policy = dict(attrs)["content"] or ""

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("script", "style"):
            self.scripts.append(data)
        else:
            self.texts.append(data)


def test_the_page_refers_to_nothing_outside_itself(report: Report) -> None:
    page = Page(make_page(report, "about"))
    assert page.references
    assert all(value.startswith(("#", "data:,")) for _, _, value in page.references), page.references
    styles = [text for text in page.scripts if "--paper" in text]
    assert styles
    assert all("url(" not in text and "@import" not in text for text in styles if "Plotly" not in text)
    assert page.policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline" not in page.policy.partition("style-src")[0]


def test_the_page_stays_small(report: Report) -> None:
    assert len(make_page(report, "about").encode()) < 6_000_000


def test_the_page_has_a_table_behind_each_plot(report: Report) -> None:
    page = Page(make_page(report, "about"))
    text = " ".join(page.texts)
    for table in tables(report):
        if table.rows and not table.only_data:
            assert table.title in text, table.title
    assert page.tags["details"] == page.tags["table"] >= 9


def test_names_from_a_cluster_are_text_and_nothing_else(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    renamed: list[Any] = story_records(XSS)
    renamed = [
        replace(record, **{name: XSS for name in ("node_name", "scheduler") if getattr(record, name, "")})
        for record in renamed
    ]
    store.write(
        [*renamed, fail_record("q", 1, {XSS: 1}), GapRecord(kind="pods", from_us=BEGIN, to_us=BEGIN + 5, why=XSS)], {}
    )
    report = gather(store)
    plain = story_page(tmp_path)
    page = Page(make_page(report, XSS))
    assert page.tags["script"] == plain.tags["script"] == 3
    assert page.tags["a"] == plain.tags["a"]
    assert any(XSS in text for text in page.texts)
    data = next(text for text in page.scripts if text.startswith("{"))
    assert "<" not in data
    # Plotly reads some HTML in its texts: there everything from the cluster is escaped once more.
    drawn = json.loads(data)
    assert "&lt;" in json.dumps(drawn)
    for text in strings(drawn):
        assert not set("<>") & set(text.replace("<br>", "").replace("<extra></extra>", "")), text


def story_page(folder: Path) -> Page:
    (folder / "plain").mkdir()
    store = empty_store(folder / "plain")
    store.write([*story_records(), GapRecord(kind="pods", from_us=BEGIN, to_us=BEGIN + 5, why="why")], {})
    return Page(make_page(gather(store), "about"))


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for one in value.values() for text in strings(one)]
    return [text for one in value for text in strings(one)] if isinstance(value, list) else []


def test_bindings_whose_verdict_is_unknown_do_not_count() -> None:
    words = {str(verdict): number for verdict, number in zip(Verdict, (9, 1, 90), strict=True)}
    assert agreement(words) == 0.9
    assert agreement({"unknown": 3}) is None


def test_the_script_that_draws_is_the_release_whose_words_are_checked() -> None:
    script = (resources.files("roost.pages") / "plotly-basic.min.js").read_text(encoding="utf-8")
    assert f"plotly.js (basic - minified) v{get_plotlyjs_version()}\n" in script[:200]


def test_plotly_knows_every_word_of_the_figures(report: Report) -> None:
    figures = drawn(report)
    assert set(figures) == {
        "starts_by_class",
        "starts_by_image",
        "starts_by_node_age",
        "pulls_over_time",
        "pulls_by_image",
        "occupancy_over_time",
        "occupancy_by_node",
        "failures",
        "pull_counts",
        "pull_bytes",
        "pull_waits",
        "removals_over_time",
        "model",
    }
    for figure in figures.values():
        # Raises ValueError on an attribute that Plotly doesn't have; colours come from the page.
        go.Figure(json.loads(coloured(figure.as_json())))


def drawn(report: Report) -> dict[str, Figure]:
    return {figure.key: figure for part in parts(report) for figure in part.figures if figure is not None}


def coloured(figure: dict[str, Any]) -> str:
    text = json.dumps(figure)
    for name in set(strings(figure)):
        if name.startswith("--"):
            text = text.replace(json.dumps(name), '"#123456"')
    return text


@given(st.integers(0, 2 * 10**15), st.integers(10 * MINUTE, 4000 * 24 * HOUR))
def test_ticks_of_time_are_few_round_and_within(from_us: int, length_us: int) -> None:
    ticks = time_ticks(from_us, from_us + length_us)
    assert 1 <= len(ticks["tickvals"]) <= 5
    assert len(set(ticks["tickvals"])) == len(ticks["ticktext"])
    assert all(text.endswith(":00") for text in ticks["tickvals"])


def test_ticks_within_a_day_say_the_day_once_and_the_next_day_again() -> None:
    assert time_ticks(BEGIN + 10 * HOUR, BEGIN + 20 * HOUR)["ticktext"] == [
        "18:00<br>15 Jan",
        "21:00",
        "00:00<br>16 Jan",
        "03:00",
    ]
    assert time_ticks(BEGIN, BEGIN + 5 * 24 * HOUR)["ticktext"] == ["16 Jan", "17 Jan", "18 Jan", "19 Jan", "20 Jan"]


def test_short_names_tell_images_apart_and_fit() -> None:
    names = ["r.example.org/a/base:1", "r.example.org/b/base:1", "r.example.org/c/other:1", "x" * 90]
    short = short_names(names)
    assert short["r.example.org/c/other:1"] == "other:1"
    assert len(set(short.values())) == len(names)
    assert all(len(one) <= NAME_LENGTH for one in short.values())


def test_an_empty_database_gives_a_page_that_says_so(tmp_path: Path) -> None:
    report = gather(empty_store(tmp_path))
    assert report.is_empty
    page = Page(make_page(report, "about"))
    assert any("Nothing has been recorded" in text for text in page.texts)
    assert page.tags["script"] == 0
    assert json.loads(to_json(report))["tables"]["starts_by_image"] == []
    assert to_csv(report) == "table,row,column,value\n"
    assert list(families(to_openmetrics(report)))


def test_a_time_without_records_gives_a_page_that_names_the_time_with_them(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    store.write(story_records(), {})
    page = Page(make_page(gather(store, BEGIN - 3 * HOUR, BEGIN - 2 * HOUR), "about"))
    assert any("Nothing was recorded in this time" in text and "2027-01-15 08:00" in text for text in page.texts)


@pytest.mark.parametrize(
    ("cell", "unit", "text"),
    [
        (None, Unit.COUNT, "-"),
        (1234, Unit.COUNT, "1,234"),
        (0.9999, Unit.SHARE, "99.9 %"),
        (1.0, Unit.SHARE, "100.0 %"),
        (62.0, Unit.SECONDS, "1 min 2 s"),
        (BEGIN, Unit.MOMENT, "2027-01-15 08:00"),
        ("pull", Unit.PHASE, "pull, when cold"),
        ("pull", Unit.TEXT, "pull"),
    ],
)
def test_cells_are_shown_by_their_unit(cell: str | float | None, unit: Unit, text: str) -> None:
    assert show(cell, unit) == text


# Programs


def families(text: str) -> dict[str, Any]:
    parsed = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]  # prometheus_client gives no types here
    return {one.name: one for one in parsed}


def test_csv_has_each_cell_of_the_json(report: Report) -> None:
    document = json.loads(to_json(report))
    found = {
        (line["table"], int(line["row"]), line["column"]): line["value"]
        for line in csv.DictReader(io.StringIO(to_csv(report)))
    }
    expected = {
        (name, number, column): str(cell)
        for name, rows in document["tables"].items()
        for number, row in enumerate(rows, start=1)
        for column, cell in row.items()
        if cell is not None
    }
    assert found == expected
    assert document["since"] == "2027-01-15T08:00:00Z"


def test_openmetrics_histograms_count_what_the_report_counts(report: Report) -> None:
    found = families(to_openmetrics(report))
    samples = found["roost_start_phase_seconds"].samples
    whole = {
        (sample.name.rpartition("_")[2], sample.labels.get("le")): sample.value
        for sample in samples
        if sample.labels["phase"] == "whole" and sample.labels["pod_class"] == "user"
    }
    assert (whole["count", None], whole["sum", None], whole["bucket", "+Inf"]) == (1, 3.0, 1)
    assert (whole["bucket", "2.5"], whole["bucket", "5.0"]) == (0, 1)
    assert "roost_image_start_phase_seconds" in found
    of_nodes = {
        (sample.labels["phase"], sample.name.rpartition("_")[2]): sample.value
        for sample in found["roost_node_phase_seconds"].samples
    }
    assert [of_nodes[phase, "sum"] for phase in ("ready", "images")] == [1.0, 59.0]
    assert of_nodes["images", "count"] == 1


# The command


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--since", "yesterday"], "yesterday: expected a time such as"),
        (["--until", "7d"], "7d: expected a time such as"),
        (["--since", "2026-11-02", "--until", "2026-11-01"], "expected a time after --since 2026-11-02"),
        (["--format", "pdf"], "pdf"),
    ],
)
def test_times_that_can_not_be_read_are_wrong_usage(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--database", str(tmp_path / "roost.db"), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_database_that_is_not_there_is_said_and_not_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "typo.db"
    assert main(["report", "--database", str(path)]) == 1
    assert "typo.db: there is no such file" in capsys.readouterr().err
    assert not path.exists()


def test_a_database_of_something_else_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.db"
    path.touch()
    assert main(["report", "--database", str(path)]) == 1
    assert "no recorder has written here" in capsys.readouterr().err


def test_the_command_writes_each_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store: Store = empty_store(tmp_path)
    store.write(story_records(), {})
    database = ["report", "--database", str(tmp_path / "roost.db")]
    page = tmp_path / "report.html"
    assert main([*database, "--since", "2027-01-15T08:00", "--output", str(page)]) == 0
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert capsys.readouterr().out == ""
    for form, start in (("json", "{"), ("csv", "table,"), ("openmetrics", "# HELP")):
        assert main([*database, "--format", form]) == 0
        assert capsys.readouterr().out.startswith(start)
    assert main([*database, "--output", str(tmp_path / "none" / "report.html")]) == 1
    assert "No such file or directory" in capsys.readouterr().err
