"""The views for analysts: the same figures from both databases, times as times, and every column explained."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from lab.tests.moments import BEGIN, HOUR, MINUTE, SECOND
from lab.tests.recorded import bind_record, fail_record, phase_record, pod_record, pull_record, story_records
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import SQLITE, Store
from roost_lab.recorder.store.records import NODES, PODS, NodeRecord, Phase, PhaseRecord, PodRecord, Record
from roost_lab.recorder.store.views import views
from tests.harness.postgres import Postgres

AT = datetime.fromtimestamp(BEGIN // SECOND, UTC)


def rows(store: Store, view: str, order: str) -> list[dict[str, Any]]:
    with store.reading() as connection:
        found = connection.execute(sa.text(f"SELECT * FROM {view} ORDER BY {order}")).mappings()  # noqa: S608 - ours
        return [dict(row) for row in found]


def moment(store: Store, at: datetime) -> object:
    """A time as the database gives it."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if store.engine.dialect.name == SQLITE else at


def test_a_start_has_its_times_and_spans(store: Store) -> None:
    hub = [phase_record("p", Phase.ASKED, BEGIN - SECOND), phase_record("p", Phase.ANSWERED, BEGIN + 10 * SECOND)]
    store.write([*story_records(), *hub], {})
    first, last = rows(store, "v_start", "created")
    assert (first["outcome"], last["outcome"]) == ("answered", None)
    assert first["created"] == moment(store, AT)
    assert first["ready"] == moment(store, AT + timedelta(seconds=3))
    assert first["gone"] == moment(store, AT + timedelta(hours=2))
    spans = {name: first[name] for name in first if name.endswith("_seconds")}
    assert spans == {
        **dict.fromkeys(("wait_seconds", "start_seconds", "pull_seconds", "node_age_seconds"), 1.0),
        "ready_seconds": 3.0,
        "answer_seconds": 11.0,
    }
    assert all(isinstance(span, float) for span in spans.values())
    assert (first["pod_name"], first["node"], bool(first["is_cold"])) == ("p", "n", True)
    assert (last["pod_class"], last["ready"], last["node"], last["is_cold"]) == ("build", None, None, None)


def test_microseconds_survive(store: Store) -> None:
    at_us = BEGIN + 123_457
    store.write([pod_record("p"), bind_record("p", at_us, "n")], {})
    (start,) = rows(store, "v_start", "created")
    assert start["bound"] == moment(store, AT + timedelta(microseconds=123_457))
    assert start["wait_seconds"] == 0.123457


@pytest.mark.parametrize(("told", "bound", "wait"), [(1, 1, 0.1), (SECOND, 1, 0.9), (1, SECOND, 0.9)])
def test_a_wait_for_a_node_counts_exact_times_from_exact_ones(told: int, bound: int, wait: float, store: Store) -> None:
    """told, bound: how exact creation and binding are, in µs."""
    created = replace(phase_record("p", Phase.CREATED, BEGIN + 800_000), resolution_us=told)
    store.write([pod_record("p"), created, replace(bind_record("p", BEGIN + 900_000, "n"), resolution_us=bound)], {})
    (start,) = rows(store, "v_start", "created")
    assert start["wait_seconds"] == wait


def test_a_pull_has_its_queue_apart(store: Store) -> None:
    cold = pull_record("p", BEGIN, "i", 2, pull_and_wait_us=5 * SECOND, image_bytes=7)
    warm = pull_record("other", BEGIN + SECOND, "i")
    store.write([pod_record("p"), cold, warm], {})
    pulled, had = rows(store, "v_pull", "finished")
    assert (pulled["pull_seconds"], pulled["queue_seconds"], pulled["bytes"]) == (2.0, 3.0, 7)
    assert (pulled["pod_name"], pulled["finished"], bool(pulled["is_warm"])) == ("p", moment(store, AT), False)
    # Of a pod that only Events tell of.
    assert (had["pod_name"], had["pull_seconds"], bool(had["is_warm"])) == (None, None, True)


def test_node_hours_are_those_within_the_record(store: Store) -> None:
    labels = '{"node.kubernetes.io/instance-type": "m5.large", "topology.kubernetes.io/zone": "a"}'
    run = sa.insert(schema.run).values(cluster="c", version="v", settings_hash="h", started_us=BEGIN)
    with store.engine.begin() as connection:
        connection.execute(run)
    told: list[Record] = [
        # Older than the record, and still there at its end.
        NodeRecord(uid="a", name="a", created_us=BEGIN - 50 * HOUR, labels=labels),
        NodeRecord(uid="b", name="b", created_us=BEGIN + 30 * MINUTE, gone_us=BEGIN + 75 * MINUTE),
        # Gone before, within one hour, and of an unknown age.
        NodeRecord(uid="c", name="c", created_us=BEGIN - 5 * HOUR, gone_us=BEGIN),
        NodeRecord(uid="d", name="d", created_us=BEGIN + MINUTE, gone_us=BEGIN + 4 * MINUTE),
        NodeRecord(uid="e", name="e"),
    ]
    store.write(told, {NODES: ("1", BEGIN + 2 * HOUR + 15 * MINUTE)})
    found = rows(store, "v_node_hours", "node, hour")
    assert [row["node"] for row in found] == list("aaabbd")
    assert [row["hours"] for row in found] == [1.0, 1.0, 0.25, 0.5, 0.25, 0.05]
    assert [row["hour"] for row in found[:3]] == [moment(store, AT + timedelta(hours=number)) for number in range(3)]
    assert (found[0]["instance_type"], found[0]["zone"]) == ("m5.large", "a")
    assert (found[3]["instance_type"], found[3]["zone"]) == (None, None)


def test_a_failure_has_a_row_for_each_reason(store: Store) -> None:
    reasons = {"Insufficient cpu": 2, "node(s) were unschedulable": 1}
    store.write(
        [pod_record("p"), fail_record("p", 1, reasons, tries=3), fail_record("p", 2, {}), bind_record("p", BEGIN, "n")],
        {},
    )
    found = rows(store, "v_failure", "tries, reason")
    assert [(row["tries"], row["reason"], row["nodes"]) for row in found] == [
        (1, None, None),
        (3, "Insufficient cpu", 2),
        (3, "node(s) were unschedulable", 1),
    ]
    assert {row["first"] for row in found} == {moment(store, AT + timedelta(seconds=1))}


def test_every_table_view_and_column_is_explained_in_the_database(server: Postgres) -> None:
    store = Store.open(server.create("views_comments"))
    store.migrate()
    with store.reading() as connection:
        query = """
            SELECT class.relname, attribute.attname, col_description(class.oid, attribute.attnum),
                obj_description(class.oid), format_type(attribute.atttypid, NULL)
            FROM pg_class AS class JOIN pg_attribute AS attribute ON attribute.attrelid = class.oid
            WHERE class.relnamespace = 'public'::regnamespace AND class.relkind IN ('r', 'v') AND attribute.attnum > 0
                AND class.relname <> 'alembic_version'
        """
        found = list(connection.execute(sa.text(query)))
    store.close()
    assert {name for name, *_ in found} == {*views(), *schema.metadata.tables}
    assert [name for name, _, _, comment, _ in found if not comment] == []
    assert [(name, column) for name, column, comment, _, _ in found if name in views() and not comment] == []
    times = {(name, column) for name, column, _, _, kind in found if kind == "timestamp with time zone"}
    expected = ["created", "bound", "started", "ready", "gone", "asked", "answered"]
    assert {column for name, column in times if name == "v_start"} == {*expected}
    # What a number is in is not to be guessed.
    unexplained = [
        (name, column)
        for name, column, comment, _, kind in found
        if name not in views() and kind == "bigint" and not comment and column != "priority"
    ]
    assert unexplained == []


def test_phases_have_words_and_moments(store: Store) -> None:
    step = PhaseRecord(
        pod_uid="p", phase=Phase.PULLED, detail="i", at_us=BEGIN + 5, resolution_us=SECOND // 2, source="event"
    )
    store.write([pod_record("p"), step, phase_record("other", Phase.GONE, BEGIN + SECOND)], {})
    pulled, gone = rows(store, "v_phase", "at")
    assert (pulled["pod_uid"], pulled["pod_name"], pulled["phase"], pulled["detail"]) == ("p", "p", "pulled", "i")
    assert pulled["at"] == moment(store, AT + timedelta(microseconds=5))
    assert (pulled["resolution_seconds"], pulled["source"]) == (0.5, "event")
    # Of a pod that only Events tell of.
    assert (gone["pod_uid"], gone["pod_name"], gone["phase"]) == ("other", None, "gone")


def test_phases_of_a_pod_that_never_became_ready_leave_its_spans_open(store: Store) -> None:
    store.write([pod_record("p"), phase_record("p", Phase.STARTED, BEGIN + SECOND)], {})
    (start,) = rows(store, "v_start", "created")
    assert (start["ready_seconds"], start["start_seconds"], start["wait_seconds"]) == (None, None, None)


Object = dict[str, Any]
DASHBOARD: Object = json.loads((Path(__file__).parents[4] / "chart" / "grafana-record.json").read_text())
PANELS: list[Object] = DASHBOARD["panels"]
FROM, UNTIL = (datetime.fromtimestamp(BEGIN // SECOND + offset, UTC) for offset in (-3600, 6 * 3600))


def expanded(query: str, hubs: str = "'hub'") -> str:
    """A query as Grafana sends it: its macros of PostgreSQL, and the variable of hubs."""
    query = query.replace("$__interval", "1h").replace("${hub:sqlstring}", hubs)
    between = f"BETWEEN '{FROM:%Y-%m-%dT%H:%M:%SZ}' AND '{UNTIL:%Y-%m-%dT%H:%M:%SZ}'"
    query = re.sub(r"\$__timeFilter\((\w+)\)", rf"\1 {between}", query)

    def group(found: re.Match[str]) -> str:
        seconds = {"h": 3600, "d": 86_400}[found[3]] * int(found[2])
        return f"floor(extract(epoch from {found[1]})/{seconds})*{seconds}"

    query = re.sub(r"\$__timeGroup\((\w+),\s*'?(\d+)([hd])'?\)", group, query)
    assert "$" not in query, query
    return query


@pytest.fixture(scope="module")
def shown(server: Postgres) -> Iterator[Store]:
    shown = Store.open(server.create("dashboard"))
    shown.migrate()
    given_up = pod_record("gone", created_us=BEGIN + HOUR, deleted_us=BEGIN + HOUR + 300 * SECOND)
    records = [*story_records(), given_up]
    records = [replace(one, hub="hub") if isinstance(one, PodRecord) else one for one in records]
    shown.write(records, dict.fromkeys((NODES, PODS), ("1", BEGIN + 3 * HOUR)))
    yield shown
    shown.close()


def rows_of(shown: Store, query: str) -> list[Object]:
    with shown.reading() as connection:
        found = connection.execute(sa.text(expanded(query).replace(":", "\\:"))).mappings()
        return [dict(row) for row in found]


def query_of(title: str) -> str:
    (panel,) = [one for one in PANELS if one["title"] == title]
    (target,) = panel["targets"]
    return str(target["rawSql"])


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_each_panel_shows_something_in_the_shape_that_its_kind_needs(shown: Store, panel: Object) -> None:
    (target,) = panel["targets"]
    found = rows_of(shown, target["rawSql"])
    assert found
    if panel["type"] == "stat":
        ((value,),) = [tuple(row.values()) for row in found]
        assert value is not None
    elif panel["type"] == "timeseries":
        assert target["format"] == "time_series"
        for row in found:
            time, *values = row.items()
            assert time[0] == "time"
            assert all(value is None or float(value) >= 0 for _, value in values)
    else:
        columns = set(found[0])
        named = {one["matcher"]["options"] for one in panel["fieldConfig"]["overrides"]}
        assert named <= columns, "a column is styled that isn't there"


def test_figures_are_those_of_the_record(shown: Store) -> None:
    values = {
        panel["title"]: rows_of(shown, panel["targets"][0]["rawSql"])[0] for panel in PANELS if panel["type"] == "stat"
    }
    assert {title: float(next(iter(row.values()))) for title, row in values.items()} == {
        "Users": 2,
        "Starts": 2,
        "Nine of ten start within": 3,
        "Warm starts": 0,
        "Never ready": 1,
        "Node-hours": 3,
    }
    (slowest,) = rows_of(shown, query_of("The slowest starts"))
    assert (slowest["Pod"], slowest["Node"], slowest["Ready after"]) == ("hub/p", "n", 3.0)
    (failure,) = rows_of(shown, query_of("Why pods found no node"))
    assert (failure["Reason"], failure["Pods"]) == ("Insufficient cpu", 1)


def test_the_choice_of_hubs_lists_those_of_the_time_that_is_shown(shown: Store) -> None:
    (variable,) = [one for one in DASHBOARD["templating"]["list"] if one["type"] == "query"]
    assert [row["hub"] for row in rows_of(shown, variable["query"])] == ["hub"]


def test_an_account_that_may_read_the_views_alone_needs_no_more(shown: Store) -> None:
    page = (Path(__file__).parents[4] / "docs" / "monitoring.md").read_text()
    (statements,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    with shown.engine.connect() as connection:
        # As the page says; nothing of it is kept.
        connection.exec_driver_sql(statements.replace("…", "made-up"))
        connection.exec_driver_sql("SET LOCAL ROLE grafana")
        for panel in PANELS:
            connection.exec_driver_sql(expanded(panel["targets"][0]["rawSql"]))
        with pytest.raises(sa.exc.ProgrammingError, match="permission denied for table pod"):
            connection.exec_driver_sql("SELECT * FROM pod")
