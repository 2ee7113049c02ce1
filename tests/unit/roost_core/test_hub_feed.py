"""How often a hub's documents are taken in, whatever its admins write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from roost_core.kube.hub_feed import CHANGE_SECONDS, DocumentPace

if TYPE_CHECKING:
    from collections.abc import Mapping


class Paced:
    """A pace whose clock a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.pace = DocumentPace(lambda: self.now)

    def at(self, seconds: float, **newest: bytes) -> Mapping[str, bytes]:
        """What is followed so many seconds after the beginning."""
        self.now = 1000.0 + seconds
        return self.pace.take_in(newest)


def test_a_first_document_is_taken_in_at_once_and_a_change_of_an_old_one_too() -> None:
    paced = Paced()
    assert paced.at(0, a=b"1") == {"a": b"1"}
    assert paced.at(1, a=b"1", b=b"1") == {"a": b"1", "b": b"1"}
    assert not paced.pace.is_due
    assert paced.at(CHANGE_SECONDS, a=b"2", b=b"1") == {"a": b"2", "b": b"1"}


def test_the_newest_of_many_changes_is_taken_in_when_the_time_is_over() -> None:
    paced = Paced()
    paced.at(0, a=b"1", b=b"1")
    assert paced.at(5, a=b"2", b=b"1") == {"a": b"1", "b": b"1"}
    assert paced.at(6, a=b"3", b=b"1") == {"a": b"1", "b": b"1"}
    assert not paced.pace.is_due
    paced.now = 1000.0 + CHANGE_SECONDS
    assert paced.pace.is_due
    assert paced.at(CHANGE_SECONDS, a=b"3", b=b"1") == {"a": b"3", "b": b"1"}
    assert not paced.pace.is_due


def test_a_change_that_is_taken_back_waits_for_nothing() -> None:
    paced = Paced()
    paced.at(0, a=b"1")
    paced.at(5, a=b"2")
    assert paced.at(6, a=b"1") == {"a": b"1"}
    paced.now += 10 * CHANGE_SECONDS
    assert not paced.pace.is_due


def test_a_hub_goes_at_once_and_comes_back_no_sooner_than_it_may_change() -> None:
    paced = Paced()
    paced.at(0, a=b"1")
    assert paced.at(1) == {}
    assert paced.at(2, a=b"1") == {}
    assert paced.at(CHANGE_SECONDS, a=b"1") == {"a": b"1"}
    # One that went long ago is forgotten.
    paced.at(CHANGE_SECONDS + 1)
    paced.at(2 * CHANGE_SECONDS + 1)
    assert paced.pace._taken == {}


@given(st.lists(st.tuples(st.floats(0.1, 15), st.sampled_from([b"1", b"2", b"3", None])), max_size=40))
def test_no_order_of_writes_brings_more_changes_than_one_in_twenty_seconds(
    writes: list[tuple[float, bytes | None]],
) -> None:
    paced, passed, in_use, taken_at = Paced(), 0.0, b"", [-CHANGE_SECONDS]
    for pause, document in writes:
        passed += pause
        found = paced.at(passed, **({} if document is None else {"a": document}))
        if document is None:
            assert found == {}
            in_use = b""
        elif found and found["a"] != in_use:
            in_use = found["a"]
            # To a millionth: the clock counts from another moment.
            assert passed - taken_at[-1] >= CHANGE_SECONDS - 1e-6
            taken_at.append(passed)
    if writes and writes[-1][1] is not None:
        assert paced.at(passed + CHANGE_SECONDS, a=writes[-1][1]) == {"a": writes[-1][1]}
