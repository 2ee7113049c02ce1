"""What every program does: it ends when asked, and knows the cluster's minor."""

import signal
import threading
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import pytest

from roost_core.kube.client import Client, ClusterError
from roost_core.kube.kube_version import follow_minor, read_minor, wait_for_minor
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
