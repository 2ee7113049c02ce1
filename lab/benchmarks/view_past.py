"""How long `roost view` takes to read a past moment from a record with a million decisions, in
SQLite and PostgreSQL.

.venv/bin/python -m benchmarks.view_past [--pods 1000000] [--rounds 3]

A pod a second on 200 nodes, each for an hour; nodes change a label every minute and get an image
every two minutes. Figures are the fastest of all rounds, for other programs' load only adds to
them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from benchmarks.figures import table
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.schema import SQLITE
from roost_lab.units import US
from roost_lab.view.reading import read_moment
from tests.harness.postgres import Postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

NODES: Final = 200
# Shares of the record's length; the last one is its end.
PLACES: Final = (0.01, 0.25, 0.5, 0.75, 1.0)
_SERIES: Final = {
    SQLITE: (
        "(WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < :number) SELECT"
        " i FROM s) AS s"
    ),
    "postgresql": "generate_series(CAST(1 AS BIGINT), CAST(:number AS BIGINT)) AS s(i)",
}
# Each with the rows per pod.
FILL: Final = (
    (
        0.0,
        """INSERT INTO node SELECT 'uid-' || i, 'node-' || i, i, 1, 1, NULL,
        '{"cpu": 64000, "memory": 274877906944}',
        '{"attract-placeholders.hub.hub.hub.jupyter.org/default": "true"}',
        '', true, false FROM """,
    ),
    (
        1.0,
        """INSERT INTO pod (uid, namespace, name, pod_class, hub, repo, ref, image, image_digest,
        scheduler, priority, cpu_millicores, memory_bytes, created_us, deleted_us, end_reason,
        source)
        SELECT 'pod-' || i, 'hub', 'jupyter-' || i, 'user', 'hub', '', '', 'image-' || i % 40,
        NULL, 'hub-user', 0, 1000, 268435456, i * 1000000,
        CASE WHEN i <= :number - 3600 THEN i * 1000000 + 3600000000 END,
        CASE WHEN i <= :number - 3600 THEN 'deleted' END, 'watch' FROM """,
    ),
    (
        1.0,
        """INSERT INTO decision SELECT 'pod-' || i || '/bind', 'pod-' || i, 'bind',
        'node-' || (i % 200 + 1), 'uid-' || (i % 200 + 1), i * 1000000, 1, i * 1000000, 1,
        'hub-user', 'event', 200, 5, '{}', '', 'agrees', 'node', '' FROM """,
    ),
    (0.0, "INSERT INTO start_kind SELECT i, 'user', 'hub-user', 'image' || i FROM "),
    (0.0, "INSERT INTO start_place SELECT i, 'user', 'node-' || i, 'uid-' || i FROM "),
    (
        1.0,
        """INSERT INTO start SELECT i * 1000000, 'pod-' || i, 1, i % 200 + 1, 1,
        i * 1000000, i * 1000000 + 5000000, i * 1000000 + 5000000,
        CASE WHEN i <= :number - 3600 THEN i * 1000000 + 3600000000 END FROM """,
    ),
    (
        1.0,
        """INSERT INTO pull SELECT 'pod-' || i, 'image-' || i % 40, 'node-' || (i % 200 + 1),
        i * 1000000 + 2000000, true, NULL, NULL, NULL FROM """,
    ),
    (
        1 / 60,
        """INSERT INTO node_change SELECT 'uid-' || (i % 200 + 1), CAST(i AS TEXT),
        'label:attract-placeholders.hub.hub.hub.jupyter.org/default', i * 60000000, 1,
        CASE WHEN i / 200 % 2 = 0 THEN '' ELSE 'true' END,
        CASE WHEN i / 200 % 2 = 0 THEN 'true' ELSE '' END FROM """,
    ),
    (
        1 / 120,
        """INSERT INTO image_on_node SELECT 'uid-' || (i % 200 + 1), 'image-' || i / 200 % 400,
        i * 120000000, 1000000000, i * 120000000 + 2880000000000 FROM """,
    ),
    (
        1 / 30,
        """INSERT INTO preemption SELECT 'pod-' || (i * 30), 'pod-' || (i * 30 + 1),
        'node-' || (i % 200 + 1), i * 30000000, 'preempted' FROM """,
    ),
)


def main() -> None:
    """Fill, measure, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pods", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    with ExitStack() as stack:
        urls = {
            "SQLite": str(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "roost.db")
        }
        urls["PostgreSQL"] = stack.enter_context(Postgres()).create("view")
        figures = {}
        for name, url in urls.items():
            store = Store.open(url)
            store.migrate()
            _fill(store, chosen.pods)
            figures[name] = dict(_measure(store, chosen.pods, chosen.rounds))
            store.close()
            print(
                name,
                {place: round(seconds, 3) for place, seconds in figures[name].items()},
                flush=True,
            )
    rows = [
        (f"{place:.0%}", *(f"{of[place] * 1000:.0f}" for of in figures.values()))
        for place in PLACES
    ]
    print(table(("ms, at", *figures), rows))


def _fill(store: Store, pods: int) -> None:
    series = _SERIES[store.engine.dialect.name]
    with store.engine.begin() as connection:
        for share, statement in FILL:
            number = int(pods * share) or NODES
            # A colon before a letter is a parameter's.
            connection.execute(sa.text(f"{statement} {series}"), {"number": number})
        connection.execute(
            sa.text("INSERT INTO checkpoint VALUES ('pods', '1', :at)"), {"at": pods * US}
        )
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if store.engine.dialect.name != SQLITE:
            connection.execute(sa.text("VACUUM ANALYZE"))


def _measure(store: Store, pods: int, rounds: int) -> Iterator[tuple[float, float]]:
    for place in PLACES:
        at_us = int(pods * US * place)
        spans = []
        for _ in range(rounds):
            begin = time.perf_counter()
            moment = read_moment(store, at_us, pods * US)
            spans.append(time.perf_counter() - begin)
        assert moment is not None
        shown = sum(len(node.pods) for node in moment.nodes)
        print(
            f"{place:.0%}: {len(moment.nodes)} nodes, {shown} pods, {len(moment.changes)} changes"
        )
        yield place, min(spans)


if __name__ == "__main__":
    main()
