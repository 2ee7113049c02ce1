"""What every program does as a process."""

import signal
import threading
from collections.abc import Iterator
from importlib import metadata

import pytest

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
