"""How long `roost report` takes, and how much memory, over a million decisions.

.venv/bin/python -m benchmarks.recorder_report [--decisions 1000000]

The record is a made-up hub's day (recorded_story.py), told again for as many days as it
takes, each with uids of its own. Without candidates' rows: the report doesn't read them.
"""

from __future__ import annotations

import argparse
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.figures import table
from benchmarks.recorded_story import Story, write_story
from roost_lab.recorder.store import schema, start_rows
from roost_lab.recorder.store.database import Store
from roost_lab.units import DAY_US, US

if TYPE_CHECKING:
    from collections.abc import Sequence

# Before the story begins.
ALL: Final = "2026-11-01"
# Pods of one transaction.
CHUNK: Final = 2_000
# Columns that hold a pod's uid, or begin with it; each day's are its own.
UID_COLUMNS: Final = {
    "pod": ("uid",),
    "phase": ("pod_uid",),
    "decision": ("id", "pod_uid", "node_uid"),
    "pull": ("pod_uid",),
    "preemption": ("victim_uid", "by_uid"),
    "node": ("uid",),
}
# No moments, though they are in microseconds.
SPANS: Final = ("pull_us", "pull_and_wait_us", "resolution_us")


def fill(path: Path, decisions: int, story: Story) -> int:
    """Write a record of at least so many decisions; returns how many."""
    store = Store.open(str(path))
    store.migrate()
    write_story(store, story)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous=OFF")
    once = count(connection)
    for name in UID_COLUMNS:
        connection.execute(f"CREATE TEMP TABLE first_{name} AS SELECT * FROM main.{name}")  # noqa: S608 - our own names
    days = -(-decisions // once)
    for day in range(1, days):
        for name, uid_columns in UID_COLUMNS.items():
            columns = [column.name for column in schema.metadata.tables[name].columns]
            chosen = [
                # Led by other digits of the same, so that uids are as spread out as real ones.
                f"substr({column}, 9, 9) || '{day:03d}' || {column}"
                if column in uid_columns
                else f"{column} + {day * DAY_US}"
                if column.endswith("_us") and column not in SPANS
                else column
                for column in columns
            ]
            connection.execute(
                # By key or time, as far as a day goes: of random ones each is another page of the
                # file.
                f"INSERT INTO {name} SELECT {', '.join(chosen)} FROM first_{name} ORDER BY 1"  # noqa: S608 - as above
            )
        connection.commit()
    found = count(connection)
    uids = [uid for (uid,) in connection.execute("SELECT uid FROM pod ORDER BY created_us, uid")]
    connection.close()
    with store.engine.begin() as writing:
        for at in range(0, len(uids), CHUNK):
            start_rows.refresh(writing, uids[at : at + CHUNK])
    store.close()
    return found


def count(connection: sqlite3.Connection) -> int:
    """Decisions in all."""
    return int(connection.execute("SELECT count(*) FROM decision").fetchone()[0])


def last_day(path: Path) -> str:
    """The moment a day before the last pod came, as `--since` takes it."""
    with sqlite3.connect(path) as connection:
        newest_us = connection.execute("SELECT max(created_us) FROM pod").fetchone()[0]
    return datetime.fromtimestamp((newest_us - DAY_US) // US, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def report(path: Path, since: str, output: Path) -> tuple[float, float, float]:
    """One `roost report`: seconds, seconds of a processor, and MiB of its own memory at the peak.

    Its own: the file's pages that are mapped are the kernel's cache, and given back when others
    need memory.
    """
    command = [sys.executable, "-m", "roost", "report", "--database", str(path), "--since", since]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    peak_kib = 0
    with subprocess.Popen([*command, "--output", str(output)]) as program:
        while program.poll() is None:
            peak_kib = max(peak_kib, own_kib(program.pid))
            time.sleep(0.05)
    assert program.returncode == 0
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, processor, peak_kib / 1024


def own_kib(process: int) -> int:
    """Memory of a process that is no file's; 0 when it has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    found = [line.split()[1] for line in status.splitlines() if line.startswith("RssAnon:")]
    return int(found[0]) if found else 0


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures as a Markdown table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--users-a-day", type=float, default=20_000)
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "roost.db"
        began = time.perf_counter()
        story = Story(days=1, users_a_day=arguments.users_a_day, placeholders=100, images=60)
        decisions = fill(path, arguments.decisions, story)
        print(f"made {path.name} in {time.perf_counter() - began:.0f} s", file=sys.stderr)
        rows = []
        for since, what in ((ALL, "everything"), (last_day(path), "the last day")):
            output = Path(folder) / "report.html"
            seconds, processor, mebibytes = report(path, since, output)
            size = output.stat().st_size / (1 << 20)
            rows.append(
                [
                    f"roost report, {what}",
                    f"{seconds:.1f}",
                    f"{processor:.1f}",
                    f"{mebibytes:.0f}",
                    f"{size:.1f}",
                ]
            )
        print(f"{decisions:,} decisions, a file of {path.stat().st_size / (1 << 20):,.0f} MiB\n")
        print(table(["", "seconds", "of a processor", "own memory, MiB", "output, MiB"], rows))


if __name__ == "__main__":
    main()
