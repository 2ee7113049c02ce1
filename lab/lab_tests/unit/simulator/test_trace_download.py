"""`roost traces` brings whole days or says why not, whatever the server does to it."""

from __future__ import annotations

import fcntl
import gzip
import json
import threading
from contextlib import contextmanager
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from roost.cli import run
from roost_lab.traces import download as trace_download
from roost_lab.traces.download import Archive, Day, DownloadError, Options, download, read_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NAME = "events-2019-05-22.jsonl"


def day_of(launches: int, name: str = "r") -> bytes:
    line = {"schema": "binderhub.jupyter.org/launch", "version": 2, "provider": "GitHub", "status": "success"}
    more = ({"timestamp": f"2019-05-22T{i % 24:02}:00:00+00:00", "spec": f"o/{name}{i}/m"} for i in range(launches))
    return b"".join(json.dumps(line | one).encode() + b"\n" for one in more)


class Web:
    """A server on loopback with the archive's files, whose answers a test may spoil."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.counts: dict[str, object] = {}
        self.index: bytes | None = None
        # Every request for a day: its Range header, or "".
        self.ranges: list[str] = []
        # Called with the request's number (from 0) and the handler; True: it has answered.
        self.spoil: Callable[[int, Any], bool] = lambda _number, _handler: False
        self.etag = '"one"'
        self.url = ""

    def add(self, name: str, content: bytes, count: object = None) -> None:
        self.files[name] = content
        self.counts[name] = content.count(b"\n") if count is None else count

    def index_content(self) -> bytes:
        if self.index is not None:
            return self.index
        entries = [{"name": name, "date": name[7:17], "count": str(self.counts[name])} for name in sorted(self.files)]
        return "\n".join(json.dumps(entry) for entry in entries).encode()


@contextmanager
def serving(web: Web) -> Iterator[Web]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            name = self.path.lstrip("/")
            if name == "index.jsonl":
                self.answer(200, web.index_content())
                return
            number = len(web.ranges)
            web.ranges.append(self.headers.get("Range", ""))
            if web.spoil(number, self):
                return
            content = web.files.get(name)
            if content is None:
                self.answer(404, b"")
                return
            wanted = self.headers.get("Range")
            if wanted and self.headers.get("If-Range", web.etag) == web.etag:
                begin = int(wanted.removeprefix("bytes=").rstrip("-"))
                if begin >= len(content):
                    self.answer(416, b"", {"Content-Range": f"bytes */{len(content)}"})
                    return
                span = {"Content-Range": f"bytes {begin}-{len(content) - 1}/{len(content)}"}
                self.answer(206, content[begin:], span)
                return
            self.answer(200, content)

        def answer(
            self, status: int, body: bytes, headers: dict[str, str] | None = None, length: int | None = None
        ) -> None:
            """Answer; with a length above the body's the connection is cut behind it."""
            self.send_response(status)
            told = len(body) if length is None else length
            for key, value in ({"Content-Length": str(told), "ETag": web.etag} | (headers or {})).items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(body)
            if told > len(body):
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    web.url = f"http://127.0.0.1:{server.server_port}/"
    try:
        yield web
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def web() -> Iterator[Web]:
    with serving(Web()) as web:
        web.add(NAME, day_of(3000))
        yield web


class Talk:
    """What was said, and how long was waited."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.pauses: list[float] = []


@pytest.fixture
def talk() -> Talk:
    return Talk()


def options(folder: Path, talk: Talk, **more: Any) -> Options:
    return Options(folder=folder, pause=talk.pauses.append, say=talk.said.append, **more)


def bring(web: Web, folder: Path, talk: Talk, **more: Any) -> bytes:
    archive = Archive(web.url)
    wanted = {day.name: day for day in read_index(archive, options(folder, talk))}[NAME]
    path = download(archive, wanted, options(folder, talk, **more))
    assert sorted(one.name for one in folder.iterdir()) == [NAME]
    return path.read_bytes()


def cut_after(size: int) -> Callable[[int, Any], bool]:
    """The first answer ends early."""

    def spoil(number: int, handler: Any) -> bool:
        if number == 0:
            handler.answer(200, day_of(3000)[:size], length=len(day_of(3000)))
        return number == 0

    return spoil


def test_a_day_is_downloaded_whole(web: Web, tmp_path: Path, talk: Talk) -> None:
    assert bring(web, tmp_path, talk) == web.files[NAME]
    assert web.ranges == [""]
    assert not talk.pauses


def test_a_day_that_is_there_is_checked_and_not_brought_again(web: Web, tmp_path: Path, talk: Talk) -> None:
    bring(web, tmp_path, talk)
    assert bring(web, tmp_path, talk) == web.files[NAME]
    assert len(web.ranges) == 1


@pytest.mark.parametrize("damage", [lambda found: found[:-100], lambda found: found + b"{}\n", lambda _: b"\0"])
def test_a_damaged_day_that_is_there_is_brought_anew(web: Web, tmp_path: Path, talk: Talk, damage: Any) -> None:
    bring(web, tmp_path, talk)
    (tmp_path / NAME).write_bytes(damage(web.files[NAME]))
    assert bring(web, tmp_path, talk) == web.files[NAME]
    assert len(web.ranges) == 2


def test_a_cut_connection_is_gone_on_from_where_it_was_cut(web: Web, tmp_path: Path, talk: Talk) -> None:
    web.spoil = cut_after(100_000)
    assert bring(web, tmp_path, talk) == web.files[NAME]
    assert web.ranges == ["", "bytes=100000-"]
    assert len(talk.pauses) == 1


def test_a_later_run_goes_on_too(web: Web, tmp_path: Path, talk: Talk) -> None:
    web.spoil = cut_after(100_000)
    with pytest.raises(DownloadError, match=r"the connection was cut|of .* bytes"):
        bring(web, tmp_path, talk, tries=0)
    assert not (tmp_path / NAME).exists()
    assert bring(web, tmp_path, talk) == web.files[NAME]
    assert web.ranges == ["", "bytes=100000-"]


def test_a_file_that_has_changed_meanwhile_is_begun_anew(web: Web, tmp_path: Path, talk: Talk) -> None:
    web.spoil = cut_after(100_000)
    with pytest.raises(DownloadError):
        bring(web, tmp_path, talk, tries=0)
    web.add(NAME, day_of(2000, "changed"))
    web.etag = '"two"'
    assert bring(web, tmp_path, talk) == web.files[NAME]
    assert web.ranges == ["", "bytes=100000-"]


def test_a_server_that_ignores_ranges_is_asked_for_all_of_it(web: Web, tmp_path: Path, talk: Talk) -> None:
    cut = cut_after(100_000)

    def spoil(number: int, handler: Any) -> bool:
        if not cut(number, handler):
            handler.answer(200, web.files[NAME])
        return True

    web.spoil = spoil
    assert bring(web, tmp_path, talk) == web.files[NAME]


def test_a_server_that_sends_another_part_is_not_believed(web: Web, tmp_path: Path, talk: Talk) -> None:
    cut = cut_after(100_000)

    def spoil(number: int, handler: Any) -> bool:
        if number == 1:
            size = len(web.files[NAME])
            handler.answer(206, web.files[NAME][50:], {"Content-Range": f"bytes 50-{size - 1}/{size}"})
        return number == 1 or cut(number, handler)

    web.spoil = spoil
    assert bring(web, tmp_path, talk) == web.files[NAME]
    assert web.ranges == ["", "bytes=100000-", "bytes=100000-"]


def test_a_part_that_is_longer_than_the_file_is_thrown_away(web: Web, tmp_path: Path, talk: Talk) -> None:
    (tmp_path / f"{NAME}.part").write_bytes(b"x" * 10_000_000)
    (tmp_path / f"{NAME}.part.tag").write_text(web.etag)
    assert bring(web, tmp_path, talk) == web.files[NAME]


def test_a_part_that_is_whole_already_is_taken(web: Web, tmp_path: Path, talk: Talk) -> None:
    (tmp_path / f"{NAME}.part").write_bytes(web.files[NAME])
    (tmp_path / f"{NAME}.part.tag").write_text(web.etag)
    assert bring(web, tmp_path, talk) == web.files[NAME]


@pytest.mark.parametrize("tag", ["", "two\r\nlines: x", "ä"])
def test_a_part_of_an_unknown_version_is_not_built_on(web: Web, tmp_path: Path, talk: Talk, tag: str) -> None:
    (tmp_path / f"{NAME}.part").write_bytes(b"x" * 100)
    (tmp_path / f"{NAME}.part.tag").write_text(tag, encoding="utf-8")
    assert bring(web, tmp_path, talk) == web.files[NAME]
    assert web.ranges == [""]


def test_a_part_with_the_wrong_bytes_is_found_out_and_brought_anew(web: Web, tmp_path: Path, talk: Talk) -> None:
    (tmp_path / f"{NAME}.part").write_bytes(b"x" * 1000)
    (tmp_path / f"{NAME}.part.tag").write_text(web.etag)
    assert bring(web, tmp_path, talk) == web.files[NAME]
    assert web.ranges == ["bytes=1000-", ""]


@pytest.mark.parametrize("length", [10**9, 100])
def test_a_server_that_lies_about_the_size_ends_in_an_error(web: Web, tmp_path: Path, talk: Talk, length: int) -> None:
    def spoil(number: int, handler: Any) -> bool:
        handler.answer(200, web.files[NAME][: min(length, 10**6)], length=length)
        handler.close_connection = True
        return True

    web.spoil = spoil
    with pytest.raises(DownloadError):
        bring(web, tmp_path, talk)
    assert not (tmp_path / NAME).exists()
    assert len(web.ranges) < 10


def test_a_day_without_a_size_is_checked_by_its_launches(web: Web, tmp_path: Path, talk: Talk) -> None:
    def spoil(number: int, handler: Any) -> bool:
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        content = web.files[NAME]
        handler.wfile.write(content if number else content[: content.index(b"\n", 1000) + 1])
        handler.close_connection = True
        return True

    web.spoil = spoil
    assert bring(web, tmp_path, talk) == web.files[NAME]
    assert len(web.ranges) == 2


def test_another_number_of_launches_than_indexed_is_an_error_unless_allowed(
    web: Web, tmp_path: Path, talk: Talk
) -> None:
    web.counts[NAME] = 2999
    with pytest.raises(DownloadError, match=r"found 3000 launches, the index says 2999, twice.*--no-check"):
        bring(web, tmp_path, talk)
    assert len(web.ranges) == 2
    assert not (tmp_path / NAME).exists()
    assert bring(web, tmp_path, talk, check_records=False) == web.files[NAME]


def test_a_page_instead_of_launches_is_an_error(web: Web, tmp_path: Path, talk: Talk) -> None:
    web.add(NAME, b"<html>sign in</html>\n", count=3000)
    with pytest.raises(DownloadError, match="line 1 is not a JSON object"):
        bring(web, tmp_path, talk, check_records=False)


def test_a_packed_day_is_kept_packed_and_checked(web: Web, tmp_path: Path, talk: Talk) -> None:
    packed = gzip.compress(day_of(3000))
    web.add(NAME, packed, count=3000)
    assert bring(web, tmp_path, talk) == packed
    web.add(NAME, packed[:-20], count=3000)
    (tmp_path / NAME).unlink()
    with pytest.raises(DownloadError, match="the compressed data breaks off"):
        bring(web, tmp_path, talk)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_passing_errors_are_tried_again_a_bounded_number_of_times(
    web: Web, tmp_path: Path, talk: Talk, status: int
) -> None:
    def spoil(number: int, handler: Any) -> bool:
        handler.answer(status, b"", {"Retry-After": "3"})
        return True

    web.spoil = spoil
    with pytest.raises(DownloadError, match=f"HTTP {status}, after 4 tries"):
        bring(web, tmp_path, talk, tries=4)
    assert len(web.ranges) == 4
    assert talk.pauses == [3.0, 3.0, 4.0]
    assert not list(tmp_path.iterdir())


def test_a_server_that_drips_is_given_up_in_the_end(
    web: Web, tmp_path: Path, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_download, "MOST_TRIES", 8)
    monkeypatch.setattr(trace_download, "PROGRESS_BYTES", 100)

    def spoil(number: int, handler: Any) -> bool:
        content, begin = web.files[NAME], 1000 * number
        span = {"Content-Range": f"bytes {begin}-{len(content) - 1}/{len(content)}"}
        handler.answer(206 if number else 200, content[begin : begin + 1000], span, len(content) - begin)
        return True

    web.spoil = spoil
    with pytest.raises(DownloadError):
        bring(web, tmp_path, talk, tries=2)
    assert len(web.ranges) == 8
    assert (tmp_path / f"{NAME}.part").stat().st_size == 8000


def test_a_file_that_is_not_there_is_not_asked_for_twice(web: Web, tmp_path: Path, talk: Talk) -> None:
    web.index = json.dumps({"name": "events-absent.jsonl", "date": "2019-05-22", "count": "1"}).encode()
    archive = Archive(web.url)
    (day,) = read_index(archive, options(tmp_path, talk))
    with pytest.raises(DownloadError, match=r"events-absent.jsonl: HTTP 404"):
        download(archive, day, options(tmp_path, talk))
    assert len(web.ranges) == 1


def test_two_downloads_of_one_file_do_not_mix(web: Web, tmp_path: Path, talk: Talk) -> None:
    with (tmp_path / f"{NAME}.part").open("a+b") as part:
        fcntl.flock(part, fcntl.LOCK_EX)
        with pytest.raises(DownloadError, match="another roost traces"):
            bring(web, tmp_path, talk)


def test_a_name_in_the_index_never_leaves_the_folder(web: Web, tmp_path: Path, talk: Talk) -> None:
    names = ["../x", "/etc/passwd", "a/b", ".hidden", "", "x" * 200, 7, None]
    lines = [json.dumps({"name": name, "date": "2019-05-22", "count": 1}) for name in names]
    web.index = "\n".join([*lines, "{", "[]", json.dumps({"name": "good", "date": "2019-05-22"})]).encode()
    assert [day.name for day in read_index(Archive(web.url), options(tmp_path, talk))] == ["good"]
    assert talk.said == [f"{web.url}index.jsonl: 10 lines skipped: no name, date and count"]


def test_a_planted_link_is_never_written_through(web: Web, tmp_path: Path, talk: Talk) -> None:
    folder, victim = tmp_path / "traces", tmp_path / "victim"
    folder.mkdir()
    victim.write_text("mine")
    (folder / f"{NAME}.part").symlink_to(victim)
    with pytest.raises(DownloadError, match="found a symbolic link, accepted is a file or nothing") as error:
        download(Archive(web.url), Day(date(2019, 5, 22), NAME, None), options(folder, talk))
    assert str(error.value).startswith(str(folder / f"{NAME}.part"))
    assert victim.read_text() == "mine"

    (folder / f"{NAME}.part").unlink()
    (folder / f"{NAME}.part.tag").symlink_to(victim)
    (folder / NAME).symlink_to(tmp_path / "nothing")
    assert bring(web, folder, talk) == day_of(3000)
    assert victim.read_text() == "mine"
    assert not (tmp_path / "nothing").exists()
    assert not (folder / NAME).is_symlink()


@pytest.mark.parametrize("url", ["http://example.org/", "http://127.0.0.1.example.org/", "http://10.0.0.1/"])
def test_plain_http_is_refused_but_from_loopback_or_when_it_is_asked_for(url: str) -> None:
    with pytest.raises(DownloadError, match="accepted are https:// addresses") as error:
        Archive(url)
    assert f'found "{url}"' in str(error.value)
    assert Archive(url, allow_http=True).url == url
    for safe in ("https://example.org/", "http://127.0.0.1:8000/", "http://localhost/", "http://[::1]/"):
        assert Archive(safe).url == safe


def test_a_redirect_to_plain_http_is_refused(web: Web, tmp_path: Path, talk: Talk, monkeypatch: Any) -> None:
    """Loopback stands for a server on the way that isn't: its name is taken from the list of those that are."""

    def redirect(_number: int, handler: Any) -> bool:
        handler.answer(302, b"", {"Location": f"http://localhost:{web.url.split(':')[2]}elsewhere.jsonl"})
        return True

    monkeypatch.setattr(trace_download, "_LOOPBACK", frozenset({"127.0.0.1"}))
    asked = Day(date(2019, 5, 22), NAME, None)
    web.add("elsewhere.jsonl", day_of(10))
    spoilt = [True]
    web.spoil = lambda number, handler: spoilt[0] and number == 0 and redirect(number, handler)
    with pytest.raises(DownloadError, match="accepted are https:// addresses"):
        download(Archive(web.url), asked, options(tmp_path, talk))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("index", [b"", b"<html></html>", b"\xff\xfe"])
def test_an_index_without_days_is_an_error(web: Web, tmp_path: Path, talk: Talk, index: bytes) -> None:
    web.index = index
    with pytest.raises(DownloadError, match="found no day in it"):
        read_index(Archive(web.url), options(tmp_path, talk))


# The command


def test_the_command_prints_the_files_of_the_days_asked_for(
    web: Web, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for day in (23, 24):
        web.add(f"events-2019-05-{day}.jsonl", day_of(10))
    asked = ["traces", "--archive", web.url, "--folder", str(tmp_path / "new"), "--from", "2019-05-22"]
    assert run([*asked, "--to", "2019-05-23"]) == 0
    names = [NAME, "events-2019-05-23.jsonl"]
    assert capsys.readouterr().out.splitlines() == [str(tmp_path / "new" / name) for name in names]
    assert run([*asked, "--to", "2019-05-25"]) == 1
    said = capsys.readouterr()
    assert "1 of the days aren't in the archive, which has 2019-05-22 to 2019-05-24" in said.err
    assert len(said.out.splitlines()) == 3


def test_the_command_lists_days_with_their_launches(web: Web, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["traces", "--archive", web.url, "--list"]) == 0
    assert capsys.readouterr().out == f"2019-05-22\t{NAME}\t3000\n"


def test_without_a_network_there_is_one_clear_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["traces", "--archive", "http://127.0.0.1:1/", "--folder", str(tmp_path / "no"), "--from", "2019-05-22"]
    assert run([*asked, "--tries", "1"]) == 1
    said = capsys.readouterr()
    assert len(said.err.splitlines()) == 1
    assert "no connection" in said.err
    assert "is there a network" in said.err
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--to", "2019-05-22", "--list"],
        ["--from", "soon"],
        ["--from", "2019-05-22", "--to", "2019-05-21"],
        ["--from", "2019-05-22", "--tries", "0"],
    ],
)
def test_wrong_usage_is_told_before_anything_is_asked(arguments: list[str]) -> None:
    assert run(["traces", "--archive", "http://127.0.0.1:1/", *arguments]) == 2
