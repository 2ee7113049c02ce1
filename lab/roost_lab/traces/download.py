"""Download days of mybinder.org's public archive, complete and checked, or say in one sentence why not.

The archive is a folder on the web: `index.jsonl` has one {"name", "date", "count"} a line, each name a file beside it
with one launch a line. Source: mybinder.org-deploy's docs, "The Analytics Events Archive", and its publisher.
A file gets its name only once it is complete; until then it is NAME.part, which a later run continues.
"""

from __future__ import annotations

import fcntl
import os
import re
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, TypeVar
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import orjson
import urllib3

from roost_lab.traces.counts import TraceError, show
from roost_lab.traces.files import TOO_LONG, Breakage, open_bytes, read_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

_T = TypeVar("_T")
ARCHIVE: Final = "https://archive.analytics.mybinder.org/"
# DEFAULT_TRIES tries in a row that each bring fewer bytes end a download, and so do MOST_TRIES in all.
PROGRESS_BYTES: Final = 1 << 16
DEFAULT_TRIES: Final = 5
MOST_TRIES: Final = 100
_MOST_INDEX_BYTES: Final = 1 << 26
# The busiest day of the archive has about 30 MB.
_MOST_FILE_BYTES: Final = 1 << 31
_BLOCK_BYTES: Final = 1 << 16
_FIRST_PAUSE_SECONDS, _MOST_PAUSE_SECONDS = 0.5, 30.0
_TIMEOUT: Final = urllib3.Timeout(connect=10.0, read=30.0)
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
# Names of files in our folder, not paths.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}", re.ASCII)
_TAG: Final = re.compile(r"[ -~]{1,200}", re.ASCII)
_CONTENT_RANGE: Final = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+)", re.ASCII)
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


class DownloadError(Exception):
    """Something can't be downloaded; the text is one sentence for an operator."""


class Day(NamedTuple):
    """One file of the archive."""

    day: date
    name: str
    # Launches in it; None where the index doesn't say.
    records: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to download. `pause` gets seconds to wait, `say` a line for the user."""

    folder: Path
    pause: Callable[[float], None]
    say: Callable[[str], None]
    tries: int = DEFAULT_TRIES
    # False: accept files whose number of launches differs from the index.
    check_records: bool = True


class Archive:
    """The archive at a URL."""

    def __init__(self, url: str = ARCHIVE, *, allow_http: bool = False) -> None:
        """Raises DownloadError for anything but an https URL.

        allow_http: take plain http from anywhere, not from loopback alone.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise DownloadError(f"--archive: found {show(url)}, accepted are https:// addresses.")
        self._allow_http = allow_http
        self._check_scheme(url, "--archive")
        self.url = url if url.endswith("/") else f"{url}/"
        # Redirects only: this module repeats failed requests.
        retries = urllib3.Retry(
            total=3, connect=0, read=0, status=0, other=0, redirect=3, respect_retry_after_header=False
        )
        proxy = getproxies().get(parts.scheme)
        if proxy and not proxy_bypass(parts.hostname):
            self._pool: urllib3.PoolManager = urllib3.ProxyManager(proxy, timeout=_TIMEOUT, retries=retries)
        else:
            self._pool = urllib3.PoolManager(timeout=_TIMEOUT, retries=retries)

    def get(self, name: str, headers: dict[str, str]) -> urllib3.BaseHTTPResponse:
        """Request a file; the body is not read yet, nor decoded. Raises urllib3's errors."""
        url = urljoin(self.url, name)
        wanted = {"Accept-Encoding": "identity", "User-Agent": "roost-traces"} | headers
        response = self._pool.request("GET", url, headers=wanted, preload_content=False, decode_content=False)
        try:
            at = url
            for hop in response.retries.history if response.retries is not None else ():
                if hop.redirect_location:
                    at = urljoin(at, hop.redirect_location)
                    self._check_scheme(at, url)
        except DownloadError:
            response.close()
            raise
        return response

    def _check_scheme(self, url: str, where: str) -> None:
        """Raise DownloadError for plain http: anybody on the way could change the trace."""
        parts = urlsplit(url)
        if parts.scheme == "https" or self._allow_http or parts.hostname in _LOOPBACK:
            return
        raise DownloadError(
            f"{where}: found {show(url)}, accepted are https:// addresses: over plain http anybody on the way could "
            "change what is downloaded. --allow-http takes it all the same."
        )


def read_index(archive: Archive, options: Options) -> list[Day]:
    """All days of the archive, in order. Raises DownloadError."""
    content = _retried("index.jsonl", options, lambda: _index_content(archive))
    days: list[Day] = []
    faulty = 0
    for line in content.splitlines():
        if not line.strip():
            continue
        day = _read_day(line)
        if day is None:
            faulty += 1
        else:
            days.append(day)
    if faulty:
        options.say(f"{archive.url}index.jsonl: {faulty} lines skipped: no name, date and count")
    if not days:
        raise DownloadError(f"{archive.url}index.jsonl: found no day in it; is this the address of the archive?")
    return sorted(days)


def download(archive: Archive, wanted: Day, options: Options) -> Path:
    """The day's file in the folder, downloaded unless it is complete already. Raises DownloadError."""
    target = options.folder / wanted.name
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
        if target.exists():
            fault = find_fault(target, wanted.records if options.check_records else None)
            if fault is None:
                options.say(f"{target}: is there already, {_records(wanted)}")
                return target
            options.say(f"{target}: {fault}; downloading it anew")
        with _open_part(options.folder / f"{wanted.name}.part") as part:
            _lock(part, options.folder / f"{wanted.name}.part")
            try:
                _bring(archive, wanted, part, options)
            except DownloadError:
                if not part.seek(0, os.SEEK_END):
                    (options.folder / f"{wanted.name}.part").unlink()
                raise
            part.flush()
            os.fsync(part.fileno())
            (options.folder / f"{wanted.name}.part").replace(target)
        _tag_of(options, wanted).unlink(missing_ok=True)
    except OSError as error:
        raise DownloadError(f"{error.filename or target}: {error.strerror or error}.") from error
    options.say(f"{target}: {_records(wanted)}")
    return target


def find_fault(path: Path, records: int | None) -> str | None:
    """Why a file isn't the expected day: damaged, not JSON lines, another number of launches; None: it is."""
    number = 0
    try:
        with open_bytes(path) as file:
            for batch in read_lines(path, file):
                for line in batch:
                    number += 1
                    if line == TOO_LONG or not isinstance(orjson.loads(line), dict):
                        return f"line {number} is not a JSON object"
    except orjson.JSONDecodeError:
        return f"line {number} is not a JSON object"
    except Breakage as breakage:
        return f"{breakage}, at line {number + 1}"
    except TraceError as error:
        return f"found {error.found}"
    if records is not None and number != records:
        return f"found {number} launches, the index says {records}"
    return None


def _bring(archive: Archive, wanted: Day, part: BinaryIO, options: Options) -> None:
    """Fill `part` with the whole day. A wrong file is discarded and downloaded once more from its beginning."""
    for is_last in (False, True):
        _retried(wanted.name, options, lambda: _go_on(archive, wanted, part, options), part)
        part.flush()
        fault = find_fault(options.folder / f"{wanted.name}.part", wanted.records if options.check_records else None)
        if fault is None:
            return
        part.truncate(0)
        _tag_of(options, wanted).unlink(missing_ok=True)
        if is_last:
            hint = " --no-check takes it as it is." if "the index says" in fault else ""
            raise DownloadError(f"{urljoin(archive.url, wanted.name)}: {fault}, twice.{hint}")
        options.say(f"{wanted.name}: {fault}; trying once more from its beginning")


class _TransientFault(Exception):  # noqa: N818 - a try that failed, of several
    """A failure that may pass."""

    def __init__(self, why: str, pause_seconds: float = 0.0) -> None:
        super().__init__(why)
        self.pause_seconds = pause_seconds


def _retried(name: str, options: Options, attempt: Callable[[], _T], part: BinaryIO | None = None) -> _T:
    """The result of `attempt`, repeated after transient failures; tries that make `part` grow don't count.

    Raises DownloadError if every try failed.
    """
    failed, pause_seconds = 0, 0.0
    for _ in range(MOST_TRIES):
        before = part.seek(0, os.SEEK_END) if part is not None else 0
        try:
            return attempt()
        except _TransientFault as passing:
            why, pause_seconds = str(passing), passing.pause_seconds
        except (urllib3.exceptions.HTTPError, UnicodeError) as error:
            why, pause_seconds = _short(error), 0.0
        grown = part.seek(0, os.SEEK_END) - before if part is not None else 0
        failed = 0 if grown >= PROGRESS_BYTES else failed + 1
        if failed >= options.tries:
            break
        wait = min(_MOST_PAUSE_SECONDS, max(pause_seconds, _FIRST_PAUSE_SECONDS * 2**failed))
        options.say(f"{name}: {why}; trying again in {wait:g} s")
        options.pause(wait)
    raise DownloadError(
        f"{name}: {why}, after {failed} tries; is there a network that reaches the archive? "
        "What has been downloaded stays, and the same command goes on with it."
    )


def _short(error: Exception) -> str:
    """What went wrong, without urllib3's wrapping."""
    reason = getattr(error, "reason", None)
    while isinstance(reason, Exception):
        error, reason = reason, getattr(reason, "reason", None)
    if isinstance(error, urllib3.exceptions.NameResolutionError):
        return "the name can't be resolved"
    if isinstance(error, urllib3.exceptions.NewConnectionError):
        return "no connection"
    if isinstance(error, urllib3.exceptions.TimeoutError):
        return "no answer in time"
    if isinstance(error, urllib3.exceptions.IncompleteRead | urllib3.exceptions.ProtocolError):
        return "the connection was cut"
    return " ".join(str(error).split())[:200]


def _index_content(archive: Archive) -> bytes:
    response = archive.get("index.jsonl", {})
    try:
        _check_status(response, archive, "index.jsonl", (200,))
        content = b"".join(_blocks(response, _MOST_INDEX_BYTES))
    finally:
        response.close()
    return content


def _go_on(archive: Archive, wanted: Day, part: BinaryIO, options: Options) -> None:
    """Download the missing end of `part`. Raises _TransientFault, DownloadError, urllib3's and the disk's errors."""
    tag_file = _tag_of(options, wanted)
    have = part.seek(0, os.SEEK_END)
    is_noted = have and tag_file.is_file() and not tag_file.is_symlink()
    tag = tag_file.read_text("ascii", "replace").strip() if is_noted else ""
    if not _TAG.fullmatch(tag):
        # Without a tag the rest may be of another version of the file.
        part.truncate(0)
        have = 0
    headers = {"Range": f"bytes={have}-", "If-Range": tag} if have else {}
    response = archive.get(wanted.name, headers)
    try:
        if response.status == 416:
            match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if match is not None and int(match[2]) == have:
                return
            part.truncate(0)
            raise _TransientFault("the part that is here is no beginning of it")
        _check_status(response, archive, wanted.name, (200, 206))
        total = _expected_total(response, have)
        if response.status == 200:
            part.truncate(0)
            # Never through somebody's link: the name is easy to guess.
            tag_file.unlink(missing_ok=True)
            with _create(tag_file) as file:
                file.write((response.headers.get("ETag") or response.headers.get("Last-Modified") or "").encode())
        part.writelines(_blocks(response, _MOST_FILE_BYTES))
    finally:
        response.close()
    size = part.seek(0, os.SEEK_END)
    if total is not None and size != total:
        raise _TransientFault(f"found {size} of {total} bytes")


def _expected_total(response: urllib3.BaseHTTPResponse, have: int) -> int | None:
    """Bytes of the whole file, by the response's headers. Raises _TransientFault for another range than requested."""
    if response.status == 206:
        match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if match is None or match[1] is None or int(match[1]) != have:
            raise _TransientFault("the server sent another part than was asked for")
        return int(match[2])
    length = response.headers.get("Content-Length", "")
    return int(length) if length.isascii() and length.isdecimal() else None


def _check_status(response: urllib3.BaseHTTPResponse, archive: Archive, name: str, accepted: Iterable[int]) -> None:
    if response.status in accepted:
        return
    found = f"{urljoin(archive.url, name)}: HTTP {response.status}"
    if response.status not in _PASSING:
        raise DownloadError(f"{found}, expected 200.")
    after = response.headers.get("Retry-After", "")
    raise _TransientFault(f"HTTP {response.status}", float(after) if after.isascii() and after.isdecimal() else 0.0)


def _blocks(response: urllib3.BaseHTTPResponse, most: int) -> Iterable[bytes]:
    read = 0
    for block in response.stream(_BLOCK_BYTES, decode_content=False):
        read += len(block)
        if read > most:
            raise DownloadError(f"{response.geturl()}: more than {most} bytes, which no file of the archive has.")
        yield block


def _read_day(line: bytes) -> Day | None:
    try:
        entry = orjson.loads(line)
        name, count = entry["name"], entry.get("count")
        day = date.fromisoformat(entry["date"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return None
    # The archive's index has counts as strings: they come from the storage's metadata.
    if isinstance(count, str) and count.isascii() and count.isdecimal() and len(count) < 15:
        count = int(count)
    is_number = isinstance(count, int) and not isinstance(count, bool) and count >= 0
    return Day(day, name, count if is_number else None)


def _records(wanted: Day) -> str:
    return "number of launches unknown" if wanted.records is None else f"{wanted.records} launches"


def _tag_of(options: Options, wanted: Day) -> Path:
    """The file with the ETag of the version that the part belongs to."""
    return options.folder / f"{wanted.name}.part.tag"


def _open_part(path: Path) -> BinaryIO:
    """Open the part that an earlier run left, or a new one; never through a link."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if path.is_symlink():
            text = f"{path}: found a symbolic link, accepted is a file or nothing. Remove it."
            raise DownloadError(text) from error
        raise
    return os.fdopen(descriptor, "a+b")


def _create(path: Path) -> BinaryIO:
    """Create a file; raises FileExistsError if the name is taken, also by a link."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666), "wb")


def _lock(part: BinaryIO, path: Path) -> None:
    try:
        fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise DownloadError(f"{path}: another roost traces is downloading it.") from error
