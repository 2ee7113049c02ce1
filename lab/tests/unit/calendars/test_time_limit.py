"""The limit of computing: it ends a loop, also where the first exception was lost."""

import time
from contextlib import suppress

import pytest

from roost_lab.calendars.time_limit import OutOfTimeError, processor_seconds


def _compute(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_what_computes_too_long_is_ended_and_what_comes_later_isnt() -> None:
    with pytest.raises(OutOfTimeError), processor_seconds(0.1):
        _compute(20.0)
    with processor_seconds(0.1):
        pass
    _compute(1.0)


def _compute_on() -> None:
    with suppress(OutOfTimeError):
        _compute(20.0)
    _compute(20.0)


def test_an_exception_that_was_ignored_comes_again() -> None:
    began = time.process_time()
    with pytest.raises(OutOfTimeError), processor_seconds(0.1):
        _compute_on()
    assert time.process_time() - began < 15.0
