"""How surely what a stream tells is new: by its watch, its lists, its gaps and its late news."""

from roost_lab.recorder.recording.streams import How, Observation, Streams
from roost_lab.recorder.store.records import NODES, PODS, GapRecord


def test_what_the_watch_tells_at_once_is_exact() -> None:
    observed = Streams({PODS: 10}).observe(PODS, 100)
    assert observed == Observation(100, 1, How.WATCHED)
    assert (observed.is_watched, observed.is_exact, observed.is_after_gap) == (True, True, False)


def test_late_news_may_be_as_old_as_the_last_until_news_come_in_time() -> None:
    streams = Streams({PODS: 10})
    assert streams.observe(PODS, 100, is_late=True) == Observation(100, 90)
    streams.mark_current(PODS, 100)
    # The stream is still catching up.
    assert streams.observe(PODS, 120, is_late=True) == Observation(120, 110)
    assert streams.observe(PODS, 130) == Observation(130, 1)
    assert streams.observe(PODS, 150, is_late=True) == Observation(150, 50)
    assert streams.observe(NODES, 150, is_late=True) == Observation(150, 1), "nothing came before"


def test_the_first_list_shows_what_was_there_and_a_later_one_what_may_have_changed() -> None:
    streams = Streams({})
    streams.begin_list(PODS)
    assert streams.observe(PODS, 5, is_listed=True) == Observation(5, 1, How.FOUND)
    streams.add_listed(PODS, "hub/p")
    assert streams.end_list(PODS, 6) == ({"hub/p"}, None)
    streams.mark_current(PODS, 6)
    streams.mark_lost(PODS, "forgotten")
    streams.begin_list(PODS)
    observed = streams.observe(PODS, 50, is_listed=True)
    assert observed == Observation(50, 44, How.LISTED)
    assert (observed.is_watched, observed.is_exact, observed.is_after_gap) == (False, False, True)
    gap = GapRecord(kind=PODS, from_us=6, to_us=60, why="forgotten")
    assert streams.end_list(PODS, 60) == (set(), gap)
    assert streams.observe(PODS, 70, is_listed=True).is_after_gap is False
