"""How long PostgreSQL takes to find a pod for `roost why NAME` among a million, with the index by
name and without it.

.venv/bin/python -m benchmarks.why_by_name [--pods 1000000] [--rounds 7]

"Without" is the index as it was before revision 0011 of the schema: by namespace first, so that a
name alone reads every pod. Figures are the fastest of all rounds, for other programs' load only
adds to them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from benchmarks.figures import table
from roost_lab.recorder.answers.pod_story import find_pods, read_story
from roost_lab.recorder.store.database import Store
from tests.harness.postgres import Postgres

if TYPE_CHECKING:
    from collections.abc import Callable

# One pod a second; a user comes back every 50,000th.
FILL: Final = (
    """
    INSERT INTO pod SELECT md5(i::text) || i, 'hub',
        'jupyter-' || substr(md5((i % 50000)::text), 1, 12), 'user', 'hub', '', '',
        'quay.io/jupyter/scipy-notebook:' || i % 40, NULL, 'hub-user', 0, 1000, 268435456,
        i * 1000000::bigint, i * 1000000::bigint + 3600000000, 'deleted', 'watch'
    FROM generate_series(1, :pods) AS i
    """,
    """
    INSERT INTO decision SELECT md5(i::text) || i || '/bind', md5(i::text) || i, 'bind',
        'node-' || i % 200, 'uid-' || i % 200, i * 1000000::bigint, 1, i * 1000000::bigint, 1,
        'hub-user', 'event', 200, 5, '{}', '', 'agrees', 'node', ''
    FROM generate_series(1, :pods) AS i
    """,
)
AS_BEFORE: Final = "namespace, name, created_us"
AS_NOW: Final = "name, namespace, created_us"


def main() -> None:
    """Fill, measure with each index, and print both and the ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pods", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args()
    with Postgres() as server:
        store = Store.open(server.create("why"))
        store.migrate()
        with store.engine.begin() as connection:
            for statement in FILL:
                connection.execute(
                    sa.text(statement.replace("::", "\\:\\:")), {"pods": chosen.pods}
                )
        figures = {
            columns: _measure(store, columns, chosen.rounds) for columns in (AS_BEFORE, AS_NOW)
        }
        store.close()
    rows = [
        (
            what,
            *(f"{figures[columns][what] * 1000:.1f}" for columns in (AS_BEFORE, AS_NOW)),
            f"{figures[AS_BEFORE][what] / figures[AS_NOW][what]:.1f}x",
        )
        for what in figures[AS_NOW]
    ]
    print(table(("ms", f"({AS_BEFORE})", f"({AS_NOW})", "ratio"), rows))


def _measure(store: Store, columns: str, rounds: int) -> dict[str, float]:
    """Seconds of the fastest round, with the index on these columns."""
    with store.engine.begin() as connection:
        connection.execute(sa.text("DROP INDEX pod_by_name"))
        connection.execute(sa.text(f"CREATE INDEX pod_by_name ON pod ({columns})"))
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.text("VACUUM ANALYZE"))
        name = connection.execute(
            sa.text("SELECT name FROM pod ORDER BY created_us LIMIT 1 OFFSET 777")
        ).scalar_one()
    pod = find_pods(store, name, "hub")[0]
    url = store.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    command = [sys.executable, "-m", "roost", "why", name, "--database", url]
    asked: dict[str, Callable[[], object]] = {
        "the pod, by name": lambda: find_pods(store, name),
        "the pod, by namespace and name": lambda: find_pods(store, name, "hub"),
        "all that is read": lambda: (find_pods(store, name), read_story(store, pod)),
        "the command, Python's start included": lambda: subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL
        ),
    }
    return {what: _fastest(ask, rounds) for what, ask in asked.items()}


def _fastest(ask: Callable[[], object], rounds: int) -> float:
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        ask()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


if __name__ == "__main__":
    main()
