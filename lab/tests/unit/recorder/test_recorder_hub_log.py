"""What hubs say of starts: read from their logs as they run, and from files of them."""

import gzip
import json
import tempfile
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from kubespawner import slugs

from lab.tests.history import BEGIN as START
from lab.tests.history import Events, listed
from lab.tests.moments import BEGIN
from lab.tests.told import cases
from roost.cli import run
from roost_lab.commands.records import command as records_command
from roost_lab.recorder.importing.hub_log import NO_POD, arrivals_us, pod_names
from roost_lab.recorder.recording.hub_log import is_hub_line, log_checkpoint, read_hub_line
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store

TIMED = "2027-01-15T09:00:00.250999999+01:00 "


@pytest.mark.parametrize(("line", "found"), cases("importing", "hub_lines"))
def test_a_line_tells_whose_start_ended_how_and_when(line: str, found: Any) -> None:
    news = read_hub_line(line)
    if found != "any":
        assert (news and [news.outcome, news.who, news.span_us]) == found
    if isinstance(found, list):
        assert news is not None
        assert news.when == (BEGIN + 250_000 + (999 if line.startswith(TIMED) else 0), 1000)


def test_a_log_in_another_format_is_none_of_jupyterhubs() -> None:
    assert not is_hub_line('{"level": "INFO", "message": "User ada took 3.250 seconds to start"}')


def line(second: float, said: str) -> str:
    at = START + timedelta(seconds=second)
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}Z [I {at:%Y-%m-%d %H:%M:%S}.000 JupyterHub base:1192] {said}"


def imported(
    folder: Path,
    lines: list[str],
    users: Iterable[str] = ("ada", "bob-x", "eve@uni.org"),
    wrapped: Callable[[str], str] = str,
) -> str:
    """A database of starts, one a minute, each running 5 s after its creation, and of a hub's
    log.
    """
    events, database = Events(), str(folder / "h.db")
    for number, user in enumerate(users):
        events.start(pod_names(user)[0], START + timedelta(minutes=number), end=600)
    (folder / "events.json").write_text(listed(events.items))
    with gzip.open(folder / "hub.log", "wt") as file:
        file.write("\n".join(map(wrapped, [line(0, "Running JupyterHub version 5.5.0"), *lines])))
    # In any order.
    assert (
        run(
            [
                "records",
                "import",
                str(folder / "hub.log"),
                str(folder / "events.json"),
                "--database",
                database,
            ]
        )
        == 0
    )
    return database


@pytest.mark.parametrize(
    "wrapped", [str, lambda text: json.dumps({"log": f"{text}\n", "stream": "stderr"})]
)
def test_a_hubs_log_file_tells_when_servers_answered_and_which_starts_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wrapped: Callable[[str], str]
) -> None:
    log = [
        line(30.5, "User ada took 31.000 seconds to start"),
        line(120, "bob-x's server failed to start in 60 seconds, giving up."),
        "Traceback (most recent call last):",
        line(150, "User eve@uni.org took 30.250 seconds to start"),
        line(151, "User nobody took 30.250 seconds to start"),
    ]
    database = imported(tmp_path, log, wrapped=wrapped)
    out, err = capsys.readouterr()
    assert "Events, 3 starts in hubs' logs read: 3 pods (3 user)" in out
    assert (
        "Users waited from the click until servers answer, in 2 starts: median 30.3 s, 95 % within"
        " 31 s" in out
    )
    assert "  until it answers: median " in out
    assert f"hub.log:6: 1 skipped: {NO_POD}" in err
    said = {}
    for user in ("ada", "bob-x"):
        assert run(["why", f"jupyter-{user}", "--database", database]) == 0
        said[user] = capsys.readouterr().out
    assert "; it answered 31 s after its user had asked for it." in said["ada"]
    # Of Events alone: when it was created is not known, and the first Event is dated to a second.
    assert "  500 ms to 1.5 s until its first Event\n" in said["ada"]
    assert " s until it answered\n" in said["ada"]
    assert "; the start failed: its hub gave the start up 1 min later." in said["bob-x"]
    assert "ready" not in said["bob-x"].splitlines()[1]
    assert run(["report", "--database", database, "--format", "text"]) == 0
    head = capsys.readouterr().out
    assert "1 more start failed." in head
    assert "from the click until servers answer" in head
    assert [row.split()[2] for row in head.splitlines() if row.startswith("Failed starts")] == ["1"]


def test_a_hubs_log_file_tells_which_starts_seating_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the lines that JupyterHub 5.5 wrote: ada came, bob-x didn't; eve started her own, as what
    seating had asked for had failed.
    """
    seating = "(roost-seating@10.0.0.1)"
    log = [
        line(-0.5, f"202 POST /hub/api/users/ada/server {seating} 775.70ms"),
        line(4, "User ada took 5.000 seconds to start"),
        line(59.5, f"202 POST /hub/api/users/bob-x/server {seating} 765.96ms"),
        line(65, "User bob-x took 6.000 seconds to start"),
        line(100, f"202 POST /hub/api/users/eve%40uni.org/server {seating} 765.55ms"),
        line(110, "Unhandled error starting eve@uni.org's server: no quota"),
        line(125, "User eve@uni.org took 6.000 seconds to start"),
        line(300, "302 GET /hub/spawn/eve@uni.org -> /user/eve@uni.org/ (eve@uni.org@::1) 44.47ms"),
        line(400, "302 GET /hub/spawn/ada -> /user/ada/ (ada@::1) 44.47ms"),
        line(400, "302 GET /hub/spawn/nobody -> /user/nobody/ (nobody@::1) 44.47ms"),
        line(600, f"204 DELETE /hub/api/users/bob-x/server {seating} 296.88ms"),
    ]
    database = imported(tmp_path, log)
    out, err = capsys.readouterr()
    assert "Events, 3 starts in hubs' logs read: 3 pods (3 user)" in out
    # Of a start that failed without a pod; who opens a server of their own is no news.
    assert f"hub.log:7: 1 skipped: {NO_POD}" in err
    assert "Users waited from the click until servers answer, in 1 starts: median 6 s" in out
    said = {}
    for user in ("ada", "bob-x", "eve"):
        name = pod_names("eve@uni.org")[0] if user == "eve" else f"jupyter-{user}"
        assert run(["why", name, "--database", database]) == 0
        said[user] = capsys.readouterr().out
    assert "after seating had asked for it." in said["ada"]
    assert "Its user came" in said["ada"]
    assert "Nobody used it: seating stopped it" in said["bob-x"]
    assert "eating" not in said["eve"]
    assert run(["report", "--database", database, "--format", "text"]) == 0
    head = capsys.readouterr().out
    assert (
        "Before classes 2 servers started with nobody waiting: 1 opened, 1 stopped unused." in head
    )


@given(
    st.lists(
        st.sampled_from(["seated", "answered", "opened", "unused", "own failure"]),
        min_size=1,
        unique=True,
    ),
    st.integers(1, 2),
)
@settings(max_examples=20, deadline=None)
def test_a_log_of_which_anything_was_stored_is_not_refused(said: list[str], times: int) -> None:
    """Pods are known from an earlier import; each start counts once."""
    seating = "(roost-seating@10.0.0.1)"
    lines = {
        "seated": line(-0.5, f"202 POST /hub/api/users/ada/server {seating} 775.70ms"),
        "answered": line(4, "User ada took 5.000 seconds to start"),
        "opened": line(400, "302 GET /hub/spawn/ada -> /user/ada/ (ada@::1) 44.47ms"),
        "unused": line(600, f"204 DELETE /hub/api/users/ada/server {seating} 296.88ms"),
        "own failure": line(120, "bob-x's server failed to start in 60 seconds, giving up."),
    }
    with tempfile.TemporaryDirectory() as folder:
        database = imported(Path(folder), [])
        log = Path(folder) / "more.log"
        log.write_text("\n".join(lines[kind] for kind in said for _ in range(times)))
        before = phases_in(database)
        result = CliRunner().invoke(
            records_command, ["import", str(log), "--database", database], standalone_mode=False
        )
        is_stored = phases_in(database) > before
    starts = ("seated" in said or "answered" in said) + ("own failure" in said)
    assert is_stored == bool(starts)
    assert result.return_value == (0 if is_stored else 2)
    found = f"{starts} starts in hubs' logs" if starts else "Nothing"
    assert f"{found} read: 0 pods\n" in result.output


def phases_in(database: str) -> int:
    store = Store.open(database)
    with store.reading() as connection:
        number = connection.execute(sa.select(sa.func.count()).select_from(schema.phase)).scalar()
    store.close()
    return number or 0


def test_a_log_that_is_not_a_hubs_is_refused_by_name_and_the_rest_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "hub.json"
    path.write_text('{"level": "INFO", "message": "User ada took 3.250 seconds to start"}\n')
    assert run(["records", "import", str(path), "--database", str(tmp_path / "h.db")]) == 2
    assert f"{path}: found no pod's Event" in (err := capsys.readouterr().err)
    assert "a hub's log in JupyterHub's own format" in err


def test_people_come_when_they_ask_or_when_they_open_what_seating_asked_for() -> None:
    log = [
        "202 POST /hub/api/users/ada/server (roost-seating@::1) 500.00ms",
        "202 POST /hub/api/users/bob/server (roost-seating@::1) 500.00ms",
        "User ada took 1.000 seconds to start",
        "User bob took 2.000 seconds to start",
        "302 GET /hub/ -> /user/ada/ (ada@::1) 4.00ms",
        "302 GET /hub/ -> /user/ada/ (ada@::1) 4.00ms",
        "204 DELETE /hub/api/users/bob/server (roost-seating@::1) 500.00ms",
        "User bob took 1.000 seconds to start",
        "302 GET /hub/ -> /user/bob/ (bob@::1) 4.00ms",
    ]
    seconds = [0, 0, 0.9, 1.9, 60, 70, 100, 200, 201]
    news = [read_hub_line(line(second, said)) for second, said in zip(seconds, log, strict=True)]
    arrivals = arrivals_us(item for item in news if item is not None)
    begin_us = round(START.timestamp() * 1_000_000)
    assert [(at_us - begin_us) / 1_000_000 for at_us in arrivals] == [60, 199]


def test_names_of_pods_are_kubespawners() -> None:
    """Of plain names, of others, and as KubeSpawner before 7 escaped them."""
    for user in ("ada", "eve@uni.org", "1st", "Ümlaut " * 9, "a--b"):
        names = pod_names(user)
        assert f"jupyter-{slugs.safe_slug(user, max_length=48)}" in names
        assert f"jupyter-{slugs.escape_slug(user)}" in names


def test_logs_of_hubs_whose_long_namespaces_begin_alike_are_told_apart() -> None:
    kinds = [log_checkpoint(f"jupyterhub-of-the-department-of-{name}") for name in ("art", "law")]
    assert len({*kinds}) == 2
    # What the schema allows.
    assert max(map(len, kinds)) <= 32
