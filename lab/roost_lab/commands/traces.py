"""`roost traces`: download days of mybinder.org's public launch archive, and make traces that can be given away."""

from __future__ import annotations

import secrets
import sys
import time
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from roost_lab.traces.counts import InputCounts, TraceError
from roost_lab.traces.download import ARCHIVE, Archive, Day, DownloadError, Options, download, read_index
from roost_lab.traces.launch_line import UnusableLine
from roost_lab.traces.line_formats import LineReader
from roost_lab.traces.reading import read_launches
from roost_lab.traces.share import Sharing, shared_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roost_lab.traces.launch_line import LaunchLine

_KEY_BYTES: Final = 32


def run(
    *,
    first: date | None,
    last: date | None,
    only_list: bool,
    folder: str,
    archive: str | None,
    tries: int,
    no_check: bool,
    allow_http: bool,
) -> int:
    """Download the days from `first` to `last` (default: `first`) and print their files; 1 if some are missing."""
    options = Options(folder=Path(folder), pause=time.sleep, say=_say, tries=tries, check_records=not no_check)
    try:
        source = Archive(archive or ARCHIVE, allow_http=allow_http)
        index = read_index(source, options)
    except DownloadError as error:
        _say(str(error))
        return 1
    selected = [day for day in index if first is None or first <= day.day <= (last or first)]
    missing = 0
    if first is not None:
        missing = ((last or first) - first).days + 1 - len({day.day for day in selected})
        if missing:
            _say(f"{missing} of the days aren't in the archive, which has {index[0].day} to {index[-1].day}")
    if only_list:
        for day in selected:
            print(day.day, day.name, "unknown" if day.records is None else day.records, sep="\t")  # noqa: T201 - product
        return 1 if missing else 0
    failed = _download_all(source, selected, options)
    return 1 if missing or failed else 0


def _download_all(source: Archive, days: list[Day], options: Options) -> int:
    """How many days could not be downloaded."""
    failed = 0
    for number, day in enumerate(days, start=1):
        try:
            path = download(source, day, options)
        except DownloadError as error:
            _say(f"{error} ({number} of {len(days)})")
            failed += 1
        else:
            print(path, flush=True)  # noqa: T201 - the product
    return failed


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
    print(f"roost traces: {text}", file=sys.stderr, flush=True)  # noqa: T201 - a command's talk


@click.group("traces", invoke_without_command=True)
@click.option("--from", "first", metavar="DAY", help="The first day, such as 2019-05-22.")
@click.option("--to", "last", metavar="DAY", help="The last day, included. Default: the first.")
@click.option(
    "--list", "only_list", is_flag=True, help="Print the archive's days (or the selected ones) and their launches."
)
@click.option("--folder", metavar="FOLDER", default=".", show_default=True, help="Target folder; one file per day.")
@click.option("--archive", metavar="URL", help="Default: https://archive.analytics.mybinder.org/")
@click.option(
    "--allow-http", is_flag=True, help="Also download over plain http, where anyone in between can change files."
)
@click.option(
    "--tries", type=click.IntRange(1, 100), default=5, show_default=True, help="Consecutive failures before giving up."
)
@click.option("--no-check", is_flag=True, help="Accept files whose number of launches differs from the index.")
@click.pass_context
def _traces(context: click.Context, /, **arguments: Any) -> int:  # noqa: ANN401 - click's
    """Download days of mybinder.org's public launches, for `roost simulate --trace`; prints the files' names.

    An interrupted download continues where it stopped. A file appears only when it is complete: its size, its JSON and
    its number of launches are checked. Exit codes: 0 all days are downloaded, 1 some are missing, 2 wrong usage.

    \b
    roost traces --list
    roost traces --from 2019-05-22 --to 2019-05-31 --folder traces
    """
    if context.invoked_subcommand is not None:
        given = [name for name in arguments if context.get_parameter_source(name) is not ParameterSource.DEFAULT]
        if given:
            raise click.UsageError(
                f"the options before `{context.invoked_subcommand}` are for downloads: leave them out"
            )
        return 0
    for name in ("first", "last"):
        try:
            arguments[name] = date.fromisoformat(arguments[name]) if arguments[name] else None
        except ValueError:
            option = {"first": "--from", "last": "--to"}[name]
            message = f"{arguments[name]}: expected a day such as 2019-05-22"
            raise click.BadParameter(message, param_hint=option) from None
    if arguments["first"] is None and (arguments["last"] is not None or not arguments["only_list"]):
        raise click.UsageError("--from is missing: the first day to download, or --list for the days there are")
    if arguments["last"] is not None and arguments["last"] < arguments["first"]:
        raise click.BadParameter(f"{arguments['last']}: is before --from {arguments['first']}", param_hint="--to")
    return run(**arguments)


@_traces.command("share", short_help="Print an anonymised launch trace of a record.")
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
def _traces_share(*, database: str | None, traces: tuple[str, ...], weeks: int, rare: int) -> int:
    """Print a launch trace for `roost simulate --trace` that names nobody: lab/docs/shared-traces.md says what it
    still holds.

    Images and repositories become hashes whose key is thrown away, and so do hubs where there are several. Users,
    commits and results of launches are left out, sizes are rounded. Launch times, lengths of sessions and requests
    stay.

    \b
    roost traces share --database roost.db | gzip > shared.jsonl.gz
    roost traces share --trace launches.jsonl.gz --shift-weeks -26 --rare 3 > shared.jsonl
    """
    if (database is None) == (not traces):
        raise click.UsageError("give --database (a record) or --trace (launches), one of them")
    return share(database=database, traces=traces, weeks=weeks, rare=rare)


COMMAND: Final = _traces
