"""`roost traces`: download days of mybinder.org's public launch archive."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from roost.simulator.trace.download import ARCHIVE, Archive, Day, DownloadError, Options, download, read_index

if TYPE_CHECKING:
    from datetime import date


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


def _say(text: str) -> None:
    print(f"roost traces: {text}", file=sys.stderr, flush=True)  # noqa: T201 - a command's talk
