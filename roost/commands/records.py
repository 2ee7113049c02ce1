"""`roost records`: export recorded starts for other programs, and import theirs."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import click

from roost.recorder.answers.exports import launch_lines, sniffer_lines
from roost.recorder.answers.sniffer_log import SnifferReport, read_lines
from roost.recorder.store.database import Store, StoreError

# Rows of one transaction.
BATCH = 5000


def export(database: str, form: str, since_us: int) -> int:
    """Print what was recorded since, in that format."""
    try:
        store = Store.open_for_reading(database)
        for line in sniffer_lines(store, since_us) if form == "sniffer" else launch_lines(store, since_us):
            click.echo(line)
    except StoreError as error:
        print(f"roost records: {error}", file=sys.stderr)  # noqa: T201 - a command's talk
        return 1
    return 0


def take_in(database: str, path: str) -> int:
    """Store a log of scheduler-sniffer; prints what it contained and what was skipped."""
    report = SnifferReport()
    try:
        store = Store.open(database)
        store.migrate()
        with Path(path).open(encoding="utf-8", errors="replace") as lines:
            records = read_lines(lines, report)
            while batch := list(itertools.islice(records, BATCH)):
                store.write(batch, {})
    except OSError as error:
        print(f"roost records: {path}: {error.strerror}", file=sys.stderr)  # noqa: T201 - a command's talk
        return 1
    except StoreError as error:
        print(f"roost records: {error}", file=sys.stderr)  # noqa: T201 - a command's talk
        return 1
    click.echo(f"{report.lines} lines: {report.pods} pods, {report.nodes} nodes")
    for reason, count in report.skipped.most_common():
        click.echo(f"{path}:{report.first_skipped[reason]}: {count} lines skipped: {reason}", err=True)
    return 0
