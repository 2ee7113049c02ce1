"""`roost records`: export recorded starts for other programs, and import a cluster's own
history.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from roost_lab.commands.options import database_option, format_option, read_moment, refuse
from roost_lab.recorder.exporting.exports import launch_lines, sniffer_lines
from roost_lab.recorder.exporting.sniffer_log import is_log, read_lines
from roost_lab.recorder.importing.files import Counts, UnreadableError
from roost_lab.recorder.importing.history import ImportedHistory
from roost_lab.recorder.store.database import Store, StoreError
from roost_lab.report.gather import describe_waits
from roost_lab.units import US

# Rows of one transaction.
BATCH = 5000
NOTHING_FOUND: Final = (
    "found no pod's Event, pod or audit log entry, expected JSON or YAML of `kubectl get events -A`"
    " or `kubectl get pods -A`, a log of Events, or after these a hub's log in JupyterHub's own"
    " format: see lab/docs/your-history.md"
)


def export(database: str, form: str, since_us: int) -> int:
    """Print what was recorded since, in that format."""
    try:
        store = Store.open_for_reading(database)
        for line in (sniffer_lines if form == "sniffer" else launch_lines)(store, since_us):
            click.echo(line)
    except StoreError as error:
        return refuse("records", error)
    return 0


def take_in(database: str, paths: Sequence[str]) -> int:
    """Store exported Events, pods and audit logs, or logs of scheduler-sniffer; prints what was
    read and skipped.
    """
    try:
        store = Store.open(database)
        store.migrate()
        logs = [path for path in paths if is_log(path)]
        code = max((_take_in_log(store, path) for path in logs), default=0)
        others = [path for path in paths if path not in logs]
        return max(code, _take_in_history(store, others) if others else 0)
    except StoreError as error:
        return refuse("records", error)


def _take_in_history(store: Store, paths: Sequence[str]) -> int:
    history = ImportedHistory(store)
    code = 0
    try:
        history.read(paths)
    except UnreadableError as error:
        code = refuse("records", error)
    counts = history.counts
    used = ", ".join(f"{number} {kind}" for kind, number in sorted(counts.used.items()))
    classes = Counter(pod_class or "no class" for pod_class in history.pods.values())
    pods = ", ".join(f"{number} {pod_class}" for pod_class, number in classes.most_common())
    click.echo(f"{used or 'Nothing'} read: {len(history.pods)} pods{f' ({pods})' if pods else ''}")
    for reason, number in counts.skipped.most_common():
        click.echo(f"{counts.first[reason]}: {number} skipped: {reason}", err=True)
    for node, behind in sorted(counts.clocks.items()):
        how = f"{abs(behind) / US:.0f} s {'behind' if behind > 0 else 'ahead'}"
        click.echo(
            f"{node}: its clock was {how}; what it dated has the API server's time here", err=True
        )
    for line in describe_waits(store):
        click.echo(line)
    if not counts.used and not code:
        return refuse("records", f"{', '.join(paths)}: {NOTHING_FOUND}")
    return code


def _take_in_log(store: Store, path: str) -> int:
    counts = Counts()
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as lines:
            records = read_lines(lines, counts, path)
            while batch := list(itertools.islice(records, BATCH)):
                store.write(batch, {})
    except OSError as error:
        return refuse("records", f"{path}: {error.strerror}")
    click.echo(
        f"{counts.used['lines']} lines: {counts.used['pods']} pods, {counts.used['nodes']} nodes"
    )
    for reason, count in counts.skipped.most_common():
        click.echo(f"{counts.first[reason]}: {count} lines skipped: {reason}", err=True)
    return 0


@click.group("records")
def command() -> None:
    """Export recorded starts for other programs, or import a cluster's own history."""


@command.command("export")
@database_option()
@format_option(
    "launches",
    "sniffer",
    text=(
        "launches: one JSON line a user pod, for `roost simulate`. sniffer: scheduler-sniffer's"
        " JSON lines."
    ),
)
@click.option("--since", metavar="TIME", help="Only pods created since (ISO 8601, UTC).")
def _records_export(*, database: str, form: str, since: str | None) -> int:
    """Print the record as JSON lines.

    \b
    roost records export --database roost.db --since 2026-11-01 > launches.jsonl
    roost records export --database roost.db --format sniffer > sniffer.log
    """
    return export(database, form, read_moment("--since", since) if since else 0)


@command.command("import")
@database_option()
@click.argument("paths", metavar="FILE...", nargs=-1, required=True)
def _records_import(*, database: str, paths: tuple[str, ...]) -> int:
    """Store a cluster's own history, for `why`, `report` and `records export`, and say what users
    waited for.

    FILE is JSON, JSON lines or YAML of kubectl, or a log of Events; plain or gzip; - is standard
    input. What a file is, is recognised; a log of scheduler-sniffer too. The same file twice
    changes nothing.

    \b
    kubectl get events -A -o json > events.json
    kubectl get pods -A -o json > pods.json
    roost records import events.json pods.json --database history.db
    """
    return take_in(database, paths)
