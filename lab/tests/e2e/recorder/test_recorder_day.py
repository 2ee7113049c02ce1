"""The recorder over the busiest half hour of a day, played at speed on a real control plane with one real kubelet.

What it stored stands against what the test saw beside it. A whole day: `python -m benchmarks.recorder_day`.
"""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lab.tests.e2e.recorder.day_comparison import compare
from lab.tests.e2e.recorder.played_day import PlayedDay, Size, busiest, launches_of, plan_sessions, real_images
from roost_lab.recorder.recording.live_starts import StartResult
from roost_lab.recorder.store.records import Phase, Verdict
from tests.harness.fixtures import or_give_up
from tests.harness.talk import say
from tests.recorded_data import LAUNCHES

pytestmark = pytest.mark.e2e

SPEED = 24.0
SPAN_SECONDS = 1800.0
# Of the trace: a Wednesday.
DAY = 7


@pytest.fixture(scope="module")
def day() -> Iterator[PlayedDay]:
    """Half an hour, played and over; the cluster is still there."""
    launches = launches_of(LAUNCHES, DAY)
    images = real_images(8)
    sessions = plan_sessions(busiest(launches, SPAN_SECONDS), SPEED, 0.07, images)
    size = Size(sessions=sessions, speed=SPEED, placeholders=25, real_images=images)
    with or_give_up(), PlayedDay(size, say=say) as played:
        played.play()
        yield played


def test_nothing_is_lost_or_doubled_and_every_moment_is_that_of_its_source(day: PlayedDay) -> None:
    found = compare(day)
    for line in found.lines():
        say(line)
    assert found.differences == []
    # All of it was there to be compared.
    assert len(day.launched) + day.refused == len(day.size.sessions)
    counts = found.counts
    kinds = ("decisions of kind fail", "decisions of kind preempt", "pulls, cold", "pulls, warm", "pods that ended")
    assert {kind: counts[kind] for kind in kinds if not counts[kind]} == {}
    assert {pod_class for pod_class, _ in found.model} == {"user", "placeholder"}
    # Each binding was judged; the rate itself is told, not asked for.
    assert {word for _, word in found.model} <= set(Verdict)
    assert found.agreement > 0.5


def test_live_metrics_count_each_start_that_was_recorded_once(day: PlayedDay) -> None:
    with closing(sqlite3.connect(day.database)) as connection:
        starts = connection.execute(
            "SELECT ready_seconds, is_cold, gone IS NOT NULL FROM v_start WHERE pod_class = 'user'"
        ).fetchall()
    ready = [(seconds, is_cold) for seconds, is_cold, _ in starts if seconds is not None]
    assert day.whole_starts == (len(ready), sum(seconds for seconds, _ in ready))
    assert day.starts[StartResult.COLD] == sum(is_cold == 1 for _, is_cold in ready) > 0
    assert day.starts[StartResult.WARM] == sum(is_cold == 0 for _, is_cold in ready) > 0
    assert day.starts[StartResult.FAILED] == sum(seconds is None and bool(gone) for seconds, _, gone in starts)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("UPDATE phase SET at_us = at_us + 1 WHERE phase = {scheduled} AND {of_pod}", "scheduled"),
        ("UPDATE phase SET at_us = at_us - 1000000 WHERE phase = {ready} AND {of_pod}", "ready"),
        ("DELETE FROM decision WHERE kind = 'bind' AND pod_uid = {uid}", "its binding"),
        ("DELETE FROM pod WHERE uid = {uid}", "lost or doubled"),
        ("UPDATE pull SET image_bytes = image_bytes + 1 WHERE warm = 0", "cold pull as its kubelet tells"),
    ],
)
def test_a_row_that_is_off_by_its_resolution_would_be_found(
    day: PlayedDay, tmp_path: Path, change: str, told: str
) -> None:
    spoilt = tmp_path / "spoilt.db"
    shutil.copy(day.database, spoilt)
    started = "(SELECT max(pod_uid) FROM v_phase WHERE phase = 'ready')"
    named = {
        "uid": started,
        "of_pod": f"pod_uid = {started}",
        "scheduled": f"'{Phase.SCHEDULED}'",
        "ready": f"'{Phase.READY}'",
    }
    with closing(sqlite3.connect(spoilt)) as connection, connection:
        assert connection.execute(change.format(**named)).rowcount > 0
    assert any(told in one for one in compare(day, str(spoilt)).differences)
