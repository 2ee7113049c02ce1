"""What every program logs: each thing once a minute, whatever somebody sends."""

import io
import logging
from collections.abc import Iterator

import pytest

from roost_core.kube.logs import (
    QUIET_SECONDS,
    TEXTS_A_CAUSE,
    LimitedHandler,
    OneLineFormatter,
    configure,
)


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
