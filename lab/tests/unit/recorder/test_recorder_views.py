"""The views for analysts: the same figures from both databases, times as times, and every column
explained.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from lab.tests.moments import BEGIN, HOUR, SECOND
from lab.tests.recorded import phase_record, pod_record, record_of, story_records
from lab.tests.told import Story, stories
from roost_core.objects.fields import JSONObject
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import NODES, PODS, Phase, PodRecord
from roost_lab.recorder.store.views import SQL, VIEWS
from tests.harness.postgres import Postgres
from tools.root import ROOT

AT = datetime.fromtimestamp(BEGIN // SECOND, UTC)


def cell(value: object) -> object:
    """Times as in stories, whichever database they are from."""
    if isinstance(value, str) and value.endswith("Z"):
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return f"T{(value - AT) / timedelta(seconds=1):+g}s"
    if isinstance(value, bool):
        return int(value)
    return repr(value) if isinstance(value, str) and " " in value else value


def rows_of_views(store: Store) -> Iterator[str]:
    """The rows of each view, in the order of their texts."""
    for view in VIEWS:
        with store.reading() as connection:
            found = connection.execute(sa.text(f"SELECT * FROM {view}")).mappings()  # noqa: S608 - ours
            told = [
                {key: cell(value) for key, value in row.items() if value not in (None, "")}
                for row in found
            ]
        yield from sorted(
            " ".join([view, *(f"{key}={value}" for key, value in row.items())]) for row in told
        )


@stories("views")
def test_a_view_has_these_rows(store: Store, story: Story) -> None:
    heard = [(NODES, ("1", thing.plain[0])) for thing in story.things if thing.kind == "heard"]
    for began_us in (thing.plain[0] for thing in story.things if thing.kind == "began"):
        with store.engine.begin() as connection:
            run = sa.insert(schema.run).values(
                cluster="c", version="v", settings_hash="h", started_us=began_us
            )
            connection.execute(run)
    store.write(
        [record_of(thing) for thing in story.things if thing.kind not in ("began", "heard")],
        dict(heard),
    )
    story.check_drawn(rows_of_views(store))


def test_both_databases_have_the_columns_that_the_page_promises(store: Store) -> None:
    page = (Path(__file__).parents[3] / "docs" / "record.md").read_text()
    promised = {
        view: re.findall(r"`(\w+)`", columns)
        for view, columns in re.findall(r"^\| `(v_\w+)` \|[^|]*\|([^|]*)\|$", page, re.MULTILINE)
    }
    with store.reading() as connection:
        found = {
            view: list(connection.execute(sa.text(f"SELECT * FROM {view} WHERE false")).keys())  # noqa: S608 - ours
            for view in VIEWS
        }
    assert found == promised


def test_every_table_view_and_column_is_explained_in_the_database(server: Postgres) -> None:
    store = Store.open(server.create("views_comments"))
    store.migrate()
    with store.reading() as connection:
        query = """
            SELECT class.relname, attribute.attname, col_description(class.oid, attribute.attnum),
                obj_description(class.oid), format_type(attribute.atttypid, NULL)
            FROM pg_class AS class JOIN pg_attribute AS attribute ON attribute.attrelid = class.oid
            WHERE class.relnamespace = 'public'::regnamespace AND class.relkind IN ('r', 'v')
                AND attribute.attnum > 0 AND class.relname <> 'alembic_version'
        """
        found = list(connection.execute(sa.text(query)))
    store.close()
    assert {name for name, *_ in found} == {*VIEWS, *schema.metadata.tables}
    assert [name for name, _, _, comment, _ in found if not comment] == []
    assert [
        (name, column) for name, column, comment, _, _ in found if name in VIEWS and not comment
    ] == []
    times = {
        (name, column) for name, column, _, _, kind in found if kind == "timestamp with time zone"
    }
    expected = "created bound started ready gone asked answered seated opened unused"
    assert {column for name, column in times if name == "v_start"} == {*expected.split()}
    # What a number is in is not to be guessed.
    unexplained = [
        (name, column)
        for name, column, comment, _, kind in found
        if name not in VIEWS and kind == "bigint" and not comment and column != "priority"
    ]
    assert unexplained == []


@pytest.mark.parametrize("column", ["phase", "detail"])
def test_a_step_and_its_detail_are_explained_alike_in_view_and_table(column: str) -> None:
    text = (SQL / "v_phase.postgresql.sql").read_text()
    [told] = re.findall(rf"COMMENT ON COLUMN v_phase\.{column} IS '(.+)';", text)
    comment = schema.phase.c[column].comment
    assert comment is not None
    # The view's begin as sentences do.
    assert told.casefold() == comment.casefold()


DASHBOARD: JSONObject = json.loads((ROOT / "chart" / "grafana-record.json").read_text())
PANELS: list[JSONObject] = DASHBOARD["panels"]
FROM, UNTIL = (
    datetime.fromtimestamp(BEGIN // SECOND + offset, UTC) for offset in (-3600, 6 * 3600)
)


def expanded(query: str) -> str:
    """A query as Grafana sends it: its macros of PostgreSQL, and the variable of hubs."""
    query = query.replace("$__interval", "1h").replace("${hub:sqlstring}", "'hub'")
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
    told = [
        ("p", Phase.ASKED, -1),
        ("p", Phase.ANSWERED, 9),
        ("q", Phase.READY, 1),
        ("q", Phase.FAILED, 99),
    ]
    records = [*story_records(), given_up, pod_record("q", created_us=BEGIN)]
    records += [phase_record(uid, phase, BEGIN + seconds * SECOND) for uid, phase, seconds in told]
    records = [
        replace(record, hub="hub") if isinstance(record, PodRecord) else record
        for record in records
    ]
    shown.write(records, dict.fromkeys((NODES, PODS), ("1", BEGIN + 3 * HOUR)))
    yield shown
    shown.close()


def rows_of(shown: Store, query: str) -> list[JSONObject]:
    with shown.reading() as connection:
        found = connection.execute(sa.text(expanded(query).replace(":", "\\:"))).mappings()
        return [dict(row) for row in found]


def query_of(title: str) -> str:
    (panel,) = [one for one in PANELS if one["title"] == title]
    (target,) = panel["targets"]
    return str(target["rawSql"])


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_each_panel_shows_something_in_the_shape_that_its_kind_needs(
    shown: Store, panel: JSONObject
) -> None:
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
        named = {override["matcher"]["options"] for override in panel["fieldConfig"]["overrides"]}
        assert named <= columns, "a column is styled that isn't there"


def test_figures_are_those_of_the_record(shown: Store) -> None:
    values = {
        panel["title"]: rows_of(shown, panel["targets"][0]["rawSql"])[0]
        for panel in PANELS
        if panel["type"] == "stat"
    }
    assert {title: float(next(iter(row.values()))) for title, row in values.items()} == {
        "Users": 3,
        "Starts": 3,
        "Nine of ten start within": 10,
        "Warm starts": 0,
        "Failed starts": 2,
        "Node-hours": 3,
    }
    (slowest,) = rows_of(shown, query_of("The slowest starts"))
    assert (slowest["Pod"], slowest["Node"], slowest["Took"]) == ("hub/p", "n", 10.0)
    (failure,) = rows_of(shown, query_of("Why pods found no node"))
    assert (failure["Reason"], failure["Pods"]) == ("Insufficient cpu", 1)


def test_the_choice_of_hubs_lists_those_of_the_time_that_is_shown(shown: Store) -> None:
    (variable,) = [one for one in DASHBOARD["templating"]["list"] if one["type"] == "query"]
    assert [row["hub"] for row in rows_of(shown, variable["query"])] == ["hub"]


def test_an_account_that_may_read_the_views_alone_needs_no_more(shown: Store) -> None:
    page = (ROOT / "docs" / "monitoring.md").read_text()
    (statements,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    with shown.engine.connect() as connection:
        # As the page says; nothing of it is kept.
        connection.exec_driver_sql(statements.replace("…", "made-up"))
        connection.exec_driver_sql("SET LOCAL ROLE grafana")
        for panel in PANELS:
            connection.exec_driver_sql(expanded(panel["targets"][0]["rawSql"]))
        with pytest.raises(sa.exc.ProgrammingError, match="permission denied for table pod"):
            connection.exec_driver_sql("SELECT * FROM pod")
