"""`roost records share`: print an anonymised launch trace of a record, or of traces."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from roost_lab.traces.counts import InputCounts, TraceError
from roost_lab.traces.launch_line import UnusableLine
from roost_lab.traces.line_formats import LineReader
from roost_lab.traces.reading import read_launches
from roost_lab.traces.share import Sharing, shared_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roost_lab.traces.launch_line import LaunchLine

_KEY_BYTES: Final = 32


def share(*, database: str | None, traces: Sequence[str], weeks: int, rare: int) -> int:
    """Print an anonymised trace of a record, or of traces; 1 if there is nothing to share."""
    counts = InputCounts()
    try:
        launches = list(
            _of_database(database, counts)
            if database is not None
            else read_launches([Path(trace) for trace in traces], counts)
        )
        # The key lives in this process alone: without it, hashes can't be compared with those of guessed names.
        for line in shared_lines(launches, Sharing(secrets.token_bytes(_KEY_BYTES), weeks, rare)):
            print(line)  # noqa: T201 - the product
    except TraceError as error:
        _say(str(error))
        return 1
    counts.attempts = len(launches)
    counts.used += sum(line.line > 0 for line in launches)
    for sentence in counts.sentences():
        _say(sentence)
    return 0 if launches else 1


def _of_database(database: str, counts: InputCounts) -> list[LaunchLine]:
    """The launches of users in a record. Raises TraceError if it can't be read."""
    from roost_lab.recorder.answers.exports import launch_lines  # noqa: PLC0415 - it needs the extra [record]
    from roost_lab.recorder.store.database import Store, StoreError  # noqa: PLC0415 - as above

    launches: list[LaunchLine] = []
    reader = LineReader(database, counts)
    try:
        for number, text in enumerate(launch_lines(Store.open_for_reading(database)), start=1):
            counts.lines += 1
            try:
                line = reader.read(text.encode(), number)
            except UnusableLine as reason:
                counts.skip(str(reason), database, number)
                continue
            if line is not None:
                launches.append(line)
    except StoreError as error:
        raise TraceError(database, 0, str(error), "a recorder's database") from error
    return launches


def _say(text: str) -> None:
    print(f"roost records: {text}", file=sys.stderr, flush=True)  # noqa: T201 - a command's talk


@click.command("share", short_help="Print an anonymised launch trace of a record.")
@click.option("--database", metavar="FILE|URL", help="The recorder's: an SQLite file, or postgresql://user@host/name.")
@click.option("--trace", "traces", metavar="FILE", multiple=True, help="Launches instead of a record; repeats.")
@click.option(
    "--shift-weeks",
    "weeks",
    metavar="WEEKS",
    type=click.IntRange(-520, 520),
    default=0,
    help="Move all times by so many weeks: weekdays and hours stay.",
)
@click.option(
    "--rare",
    metavar="LAUNCHES",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Images and repositories launched less often get a new name at each launch.",
)
def _share(*, database: str | None, traces: tuple[str, ...], weeks: int, rare: int) -> int:
    """Print a launch trace for `roost simulate --trace` that names nobody: lab/docs/shared-traces.md says what it
    still holds.

    Images and repositories become hashes whose key is thrown away, and so do hubs where there are several. Users,
    commits and results of launches are left out, sizes are rounded. Launch times, lengths of sessions and requests
    stay.

    \b
    roost records share --database roost.db | gzip > shared.jsonl.gz
    roost records share --trace launches.jsonl.gz --shift-weeks -26 --rare 3 > shared.jsonl
    """
    if (database is None) == (not traces):
        raise click.UsageError("give --database (a record) or --trace (launches), one of them")
    return share(database=database, traces=traces, weeks=weeks, rare=rare)


COMMAND: Final = _share
