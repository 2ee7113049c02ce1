"""What every program does: it ends when asked, knows the cluster's minor, and logs each thing once
a minute.
"""

import io
import logging
import signal
import threading
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import pytest

from roost_core.kube.client import Client, ClusterError
from roost_core.kube.kube_version import follow_minor, read_minor, wait_for_minor
from roost_core.kube.logs import (
    QUIET_SECONDS,
    TEXTS_A_CAUSE,
    LimitedHandler,
    OneLineFormatter,
    configure,
)
from roost_core.kube.process import stop_on_signals, version

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@pytest.fixture(autouse=True)
def _handlers_as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_process_that_is_asked_to_end_is_told_so(number: signal.Signals) -> None:
    stop = threading.Event()
    stop_on_signals(stop)
    signal.raise_signal(number)
    assert stop.wait(5)


def test_a_bare_checkout_has_no_version_and_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert version() == "unknown"


class Server(Client):
    """Answers /version with these minors in turn, the last one for ever; an error is raised."""

    def __init__(self, *minors: str | ClusterError) -> None:
        self._minors = list(minors)
        self.asked = 0

    def get(self, path: str, query: Any = None, *, read_seconds: float = 0) -> Any:
        assert path == "/version"
        self.asked += 1
        answer = self._minors.pop(0) if len(self._minors) > 1 else self._minors[0]
        if isinstance(answer, ClusterError):
            raise answer
        return {"major": "1", "minor": answer}


@pytest.mark.parametrize(("minor", "expected"), [("36", 36), ("35+", 35), ("34.1-gke", 34)])
def test_the_minor_is_read(minor: str, expected: int) -> None:
    assert read_minor(Server(minor)) == expected


@pytest.mark.parametrize("minor", ["", "+", "None"])
def test_an_answer_without_a_minor_is_an_error(minor: str) -> None:
    with pytest.raises(ClusterError, match="expected a number"):
        read_minor(Server(minor))


def test_a_server_that_comes_up_is_waited_for() -> None:
    away = ClusterError("away")
    assert wait_for_minor(Server(away, away, "36"), 60, interval_seconds=0) == 36
    with pytest.raises(ClusterError, match="away"):
        wait_for_minor(Server(away), 0, interval_seconds=0)


def test_an_upgrade_is_told_once_two_answers_agree() -> None:
    # Behind a load balancer, API servers of both minors answer; one of them is away for a moment.
    server, told = Server("36", "37", "36", ClusterError("away"), "37", "37"), list[int]()
    follow_minor(server, 36, threading.Event(), told.append, seconds=0)
    assert told == [37]
    assert server.asked == 6


def test_nobody_asks_after_the_end() -> None:
    server, stop, told = Server("37"), threading.Event(), list[int]()
    stop.set()
    follow_minor(server, 36, stop, told.append, seconds=0)
    assert (server.asked, told) == (0, [])


class Log:
    def __init__(self) -> None:
        self.now = 0.0
        self._stream = io.StringIO()
        self.handler = LimitedHandler(self._stream, lambda: self.now)
        self.handler.setFormatter(OneLineFormatter())
        self.logger = logging.Logger("webhook.test", logging.DEBUG)
        self.logger.addHandler(self.handler)

    @property
    def lines(self) -> list[str]:
        """What was written, without the time."""
        return [line.partition(" ")[2] for line in self._stream.getvalue().splitlines()]


@pytest.fixture
def log() -> Iterator[Log]:
    made = Log()
    yield made
    made.handler.close()


def test_the_same_warning_is_written_once_a_minute_and_counted(log: Log) -> None:
    for second in range(150):
        log.now = float(second)
        log.logger.warning("watch broken kind=%s", "nodes")
    warning = "WARNING webhook.test watch broken kind=nodes"
    left_out = "WARNING webhook.test left out 59 more like: watch broken kind=%s"
    assert log.lines == [warning, left_out, warning, left_out, warning]


def test_what_one_place_says_of_different_things_is_written_up_to_a_bound(log: Log) -> None:
    for number in range(1000):
        log.logger.error("pod admitted unchanged: uid=%s", number)
    assert len(log.lines) == TEXTS_A_CAUSE
    log.now = QUIET_SECONDS
    log.logger.info("anything")
    assert (
        log.lines[-2]
        == f"ERROR webhook.test left out {1000 - TEXTS_A_CAUSE} more like: pod admitted unchanged:"
        " uid=%s"
    )


def test_other_causes_and_what_was_done_are_always_written(log: Log) -> None:
    for number in range(100):
        log.logger.info("done: evicted pod-%s", number)
        log.logger.warning("watch broken kind=%s", "nodes")
    log.logger.warning("lease can't be had: %s", "timeout")
    assert len(log.lines) == 102


def test_faults_at_different_places_are_different(log: Log) -> None:
    def fail(depth: int) -> None:
        if depth:
            fail(depth - 1)
        raise ValueError

    for depth in (0, 0, 1, 1):
        try:
            fail(depth)
        except ValueError:
            log.logger.exception("turn failed")
    assert len(log.lines) == 2


def test_what_was_left_out_is_told_at_the_end(log: Log) -> None:
    log.logger.warning("twice")
    log.logger.warning("twice")
    log.handler.close()
    assert log.lines[-1] == "WARNING webhook.test left out 1 more like: twice"


def test_however_many_causes_there_are_few_are_remembered(log: Log) -> None:
    for number in range(2000):
        log.logger.warning("cause " + str(number))
    assert len(log.handler._causes) <= 256
    assert len(log.lines) == 2000


@pytest.mark.parametrize("program", ["the first", "the next"])
def test_a_program_that_is_run_in_a_test_silences_no_other_test(
    program: str, caplog: pytest.LogCaptureFixture
) -> None:
    handlers = logging.getLogger().handlers
    assert not any(isinstance(handler, LimitedHandler) for handler in handlers)
    logging.getLogger("roost").warning("%s is late", program)
    assert f"{program} is late" in caplog.text
    configure("Error")
