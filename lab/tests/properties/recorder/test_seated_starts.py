"""Whose starts are seating's, whatever the order in which pods and a hub's log arrive."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.tests.recorded import empty_store, phase_record, pod_record
from roost_lab.recorder.importing.history import ImportedHistory
from roost_lab.recorder.importing.hub_log import SEVERAL, news_records
from roost_lab.recorder.importing.objects import Unusable
from roost_lab.recorder.recording.hub_log import HubNews
from roost_lab.recorder.recording.reading import Step
from roost_lab.recorder.recording.seated_starts import SeatedStarts
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.records import Phase, PhaseRecord, Record
from roost_lab.units import US

MS = 1_000


class Start(NamedTuple):
    """One start of a user's server, as it really was. Times in µs."""

    uid: str
    is_seated: bool
    asked_us: int
    # None: it failed without a pod.
    created_us: int | None
    verdict: Phase
    verdict_us: int
    # Whether the hub answers the request at once, or when the start has ended.
    is_pending: bool
    is_opened: bool
    end_us: int


@st.composite
def lives(draw: st.DrawFn) -> list[Start]:
    """Starts of one server, one after the other: a person may try again at once."""
    now_us = 1_000_000 * US
    starts = []
    for number in range(draw(st.integers(1, 5))):
        now_us += draw(st.sampled_from([1_500, 5_000, 40_000, 3_000_000])) * MS
        asked_us = now_us
        created_us = asked_us + draw(st.integers(50, 20_000)) * MS
        verdict_us = created_us + draw(st.integers(100, 300_000)) * MS
        end_us = verdict_us + draw(st.integers(2_000, 2_000_000)) * MS
        verdict = draw(st.sampled_from([Phase.ANSWERED, Phase.ANSWERED, Phase.FAILED]))
        has_pod = verdict is Phase.ANSWERED or draw(st.booleans())
        now_us = end_us if verdict is Phase.ANSWERED else verdict_us + 300 * MS
        starts.append(
            Start(
                f"pod-{number}",
                draw(st.booleans()),
                asked_us,
                created_us if has_pod else None,
                verdict,
                verdict_us,
                draw(st.booleans()),
                draw(st.booleans()),
                end_us,
            )
        )
    return starts


def log_of(starts: list[Start]) -> list[HubNews]:
    """What the hub's log says, in its order."""
    lines: list[HubNews] = []
    for start in starts:
        asked_us = start.asked_us - 100 * MS
        said_us = start.asked_us + 50 * MS if start.is_pending else start.verdict_us + 1
        if start.is_seated:
            lines.append(
                HubNews(
                    Step(said_us, MS), Phase.SEATED, "ada", said_us - asked_us, start.is_pending
                )
            )
        is_answered = start.verdict is Phase.ANSWERED
        span_us = start.verdict_us - start.asked_us if is_answered else None
        lines.append(HubNews(Step(start.verdict_us, MS), start.verdict, "ada", span_us))
        if is_answered and start.is_opened:
            lines.append(HubNews(Step(start.verdict_us + US, MS), Phase.OPENED, "ada"))
        elif is_answered and start.is_seated:
            lines.append(HubNews(Step(start.end_us, MS), Phase.UNUSED, "ada", 500 * MS))
    return sorted(lines, key=lambda news: news.when.at_us)


def seated(records: list[Record]) -> dict[str, set[str]]:
    """Pods, by what was told of them."""
    found: dict[str, set[str]] = {}
    for record in records:
        assert isinstance(record, PhaseRecord)
        found.setdefault(str(record.phase), set()).add(record.pod_uid)
    return found


def merged(starts: list[Start], shift_us: int) -> Iterator[list[Record]]:
    """Follow both streams, each in its order; the log so long after the pods' watch."""
    seats = SeatedStarts()
    news = log_of(starts)
    pods = [
        (at_us, start)
        for start in starts
        if start.created_us is not None
        for at_us in (start.created_us, start.created_us + 50 * MS, start.verdict_us - 1)
    ]
    events = [(at_us, 0, start) for at_us, start in pods]
    events += [(item.when.at_us + shift_us, 1, item) for item in news]  # type: ignore[misc]
    for _, _, what in sorted(events, key=lambda event: event[:2]):
        if isinstance(what, Start):
            # Pods have whole seconds.
            created_us = (what.created_us or 0) // US * US
            yield seats.pod_changed("hub", "ada", what.uid, created_us)[1]
        else:
            yield seats.told("hub", what)


@given(lives(), st.integers(-40 * MS, 40 * MS))
def test_a_start_is_seatings_if_seating_asked_for_it(starts: list[Start], shift_us: int) -> None:
    found = seated([record for records in merged(starts, shift_us) for record in records])
    with_pod = [start for start in starts if start.created_us is not None]
    expected = {start.uid for start in with_pod if start.is_seated}
    assert found.get("seated", set()) == expected
    answered = [start for start in with_pod if start.verdict is Phase.ANSWERED and start.is_seated]
    assert found.get("opened", set()) == {start.uid for start in answered if start.is_opened}
    assert found.get("unused", set()) == {start.uid for start in answered if not start.is_opened}


@given(lives())
def test_a_log_that_is_read_again_says_nothing_of_the_pod_that_a_person_asked_for(
    starts: list[Start],
) -> None:
    """After a restart of the recorder only the last pod is there."""
    last = starts[-1]
    if last.created_us is None:
        return
    seats = SeatedStarts()
    created_us = last.created_us // US * US
    records = [*seats.pod_changed("hub", "ada", last.uid, created_us)[1]]
    for news in log_of(starts):
        records += seats.told("hub", news)
    records += seats.pod_changed("hub", "ada", last.uid, created_us)[1]
    assert seated(records).get("seated", set()) == ({last.uid} if last.is_seated else set())


@given(lives())
@settings(max_examples=30, deadline=None)
def test_an_imported_log_tells_seatings_starts_from_a_persons(starts: list[Start]) -> None:
    pods = [
        pod_record(start.uid, name="jupyter-ada", created_us=start.created_us // US * US)
        for start in starts
        if start.created_us is not None
    ]
    with tempfile.TemporaryDirectory() as folder:
        store = empty_store(Path(folder))
        store.write(pods, {})
        history = ImportedHistory(store)
        history._news += [(news, "hub.log:1") for news in log_of(starts)]
        history._take_news()
        with store.reading() as connection:
            query = sa.select(schema.phase.c.pod_uid).where(schema.phase.c.phase == Phase.SEATED)
            found = set(connection.execute(query).scalars())
        store.close()
    with_pod = [start for start in starts if start.created_us is not None]
    assert found == {start.uid for start in with_pod if start.is_seated}


@given(
    # Pods of one user: the minute, the namespace, and whether seating asked for it.
    st.lists(
        st.tuples(st.integers(1, 60), st.sampled_from(["art", "law"]), st.booleans()), max_size=4
    ),
    st.sampled_from([Phase.OPENED, Phase.UNUSED]),
)
@settings(max_examples=50, deadline=None)
def test_a_visit_to_a_server_that_is_not_seatings_is_no_news_in_however_many_namespaces(
    made: list[tuple[int, str, bool]], outcome: Phase
) -> None:
    begin_us = 1_000_000 * US
    newest: dict[str, tuple[int, str, bool]] = {}
    records: list[Record] = []
    for number, (minute, namespace, is_seated) in enumerate(made):
        uid = f"pod-{number}"
        # Of two in the same minute the later one.
        created_us = begin_us + minute * 60 * US + number
        records.append(
            pod_record(uid, name="jupyter-ada", namespace=namespace, created_us=created_us)
        )
        if is_seated:
            records.append(phase_record(uid, Phase.SEATED, created_us))
        newest[namespace] = max(newest.get(namespace, (0, "", False)), (created_us, uid, is_seated))
    news = HubNews(Step(begin_us + 3600 * US + US, MS), outcome, "ada")
    with tempfile.TemporaryDirectory() as folder:
        store = empty_store(Path(folder))
        store.write(records, {})
        seated_pods = [uid for _, uid, is_seated in newest.values() if is_seated]
        if seated_pods and len(newest) > 1:
            with pytest.raises(Unusable, match=re.escape(SEVERAL)):
                news_records(store, news)
        else:
            assert seated(news_records(store, news)) == (
                {str(outcome): set(seated_pods)} if seated_pods else {}
            )
        store.close()
